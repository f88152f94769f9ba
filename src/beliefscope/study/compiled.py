"""Keeps compiled programs on this machine, so that the next worker, and the next call, need not compile them again."""

import hashlib
import os
from pathlib import Path

import jax

_WORTH_KEEPING = 0.3  # seconds of compilation


def keep_compiled() -> None:
    """In the user's cache folder, apart for each kind of processor; JAX_COMPILATION_CACHE_DIR chooses another."""
    if not os.environ.get("JAX_COMPILATION_CACHE_DIR"):
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(home / "beliefscope" / f"xla-{_processor()}"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _WORTH_KEEPING)


def _processor() -> str:
    """A digest of what the processor can do: a program compiled for one may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    described = sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    return hashlib.sha256("\n".join(described).encode()).hexdigest()[:8]
