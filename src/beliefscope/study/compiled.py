"""Keeps compiled programs on this machine, so that the next worker, and the next call, need not compile them again."""

import contextlib
import fcntl
import functools
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import jax

_WORTH_KEEPING = 0.3  # seconds of compilation


def keep_compiled() -> None:
    """In the user's cache folder, apart for each kind of processor; JAX_COMPILATION_CACHE_DIR chooses another."""
    jax.config.update("jax_compilation_cache_dir", str(_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _WORTH_KEEPING)


@contextlib.contextmanager
def first_alone(kind: object) -> Iterator[None]:
    """The first worker of a GPU that does this kind of work does it alone; the others wait, and find it compiled.

    Workers that compile the same programs at the same time slow each other down.
    """
    folder = _folder() / "kinds"
    name = hashlib.sha256(f"{jax.__version__} {kind!r}".encode()).hexdigest()[:16]
    done = folder / f"{name}.done"
    if jax.default_backend() != "gpu" or done.exists():
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as held:  # let go when the process ends, however it does
        fcntl.flock(held, fcntl.LOCK_EX)
        if not done.exists():
            yield
            done.touch()
            return
    yield


def _folder() -> Path:
    chosen = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(chosen) if chosen else home / "beliefscope" / f"xla-{_processor()}"


@functools.cache
def _processor() -> str:
    """A digest of what the processor can do: a program compiled for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    described = sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    return hashlib.sha256("\n".join(described).encode()).hexdigest()[:8]
