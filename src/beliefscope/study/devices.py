"""What the workers of one machine share: the compiled programs, and a GPU.

Compiled programs are kept on disk, so that the next worker and the next call do not compile them again. A GPU is shared
by MPS, NVIDIA's service that lets several processes compute at the same time; how many workers there are and how much
memory each has is settled before JAX starts in a worker and takes the GPU.
"""

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import jax

_LEAST_COMPILATION = 0.3  # seconds: what compiles faster is not kept
_MEMORY = 0.75  # of a GPU, for all that share it together: JAX's own default for one process
_WORKER_MEMORY = 6  # GiB for a worker: 20,000 sets of 1,000 particles, and what is made of them
_MOST_WORKERS = 10  # as many as have been measured on an H200 (docs/benchmarks.md)
_WORKERS_WITHOUT_MPS = 4  # in turn: one computes while others sample, check and write
_CONTROL = "nvidia-cuda-mps-control"
_TIMEOUT = 20  # seconds for a command of NVIDIA's


def keep_compiled_programs() -> None:
    """Keep them in the user's cache folder, one for each kind of processor; JAX_COMPILATION_CACHE_DIR names another."""
    jax.config.update("jax_compilation_cache_dir", str(_cache_folder()))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_COMPILATION)


@contextlib.contextmanager
def first_compiles_alone(kind: object) -> Iterator[None]:
    """On a GPU the first worker that does this kind of work does it alone; the others wait, and find it compiled.

    Workers that compile the same programs at the same time slow each other down.
    """
    folder = _cache_folder() / "kinds"
    name = hashlib.sha256(f"{jax.__version__} {kind!r}".encode()).hexdigest()[:16]
    done = folder / f"{name}.done"
    if jax.default_backend() != "gpu" or done.exists():
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as held:  # the kernel releases it when the process ends
        fcntl.flock(held, fcntl.LOCK_EX)
        if not done.exists():
            yield
            done.touch()
            return
    yield


def has_gpu() -> bool:
    """JAX's CUDA plugin is installed, a GPU is there, and nobody has chosen another platform."""
    chosen = os.environ.get("JAX_PLATFORMS", "")
    plugin = any(importlib.util.find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
    return plugin and chosen in ("", "cuda", "gpu", "cuda,cpu") and Path("/dev/nvidia0").exists()


def can_pin() -> bool:
    """Can a process be kept to some cores? (Linux)"""
    return hasattr(os, "sched_setaffinity")


def cores() -> list[int]:
    """The cores that this process may run on; all of them where the system does not say which (macOS)."""
    return sorted(os.sched_getaffinity(0)) if can_pin() else list(range(os.cpu_count() or 1))


def gpu_share(share: float) -> dict[str, str]:
    """The environment of a process that takes no more of the memory than its share, and that as it needs it."""
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        # Trying Triton's products takes three quarters of a compilation, and gains a fifth at most (design.md).
        "XLA_FLAGS": f"--xla_gpu_enable_triton_gemm=false {flags}".strip(),
        "XLA_PYTHON_CLIENT_MEM_FRACTION": str(_MEMORY * share),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # the process that read the study may hold memory too
    }


class SharedGPU:
    """The GPU of this machine while a study runs on it."""

    def __init__(self, workers: int | None, *, cores: int, say: Callable[[str], None]):
        """`workers` are by default as many as its memory and the cores allow; `say` is told what slows them down."""
        self._folder: Path | None = None
        trouble = None if workers == 1 or _mps_is_running() else self._start_mps()
        most = _WORKERS_WITHOUT_MPS if trouble else _MOST_WORKERS
        self.workers = workers or max(1, min(most, cores, _workers_by_memory()))
        if trouble and self.workers > 1:
            say(
                f"The {self.workers} workers compute in turn on the GPU, not at the same time, since {trouble}; "
                f"`{_CONTROL} -d`, called before, starts NVIDIA's MPS, which makes a study faster."
            )

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a worker."""
        return gpu_share(1 / self.workers) | ({} if self._folder is None else _directories(self._folder))

    def close(self) -> None:
        """Stop MPS if it was started here. What a killed study leaves is idle, and gone when the machine restarts."""
        if self._folder is not None:
            _call([_CONTROL], self._folder, "quit\n")
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _start_mps(self) -> str | None:
        """Why it could not be started, if so."""
        if shutil.which(_CONTROL) is None:
            return f"there is no {_CONTROL}"
        folder = Path(tempfile.mkdtemp(prefix="beliefscope-mps-"))
        trouble = _call([_CONTROL, "-d"], folder)
        if trouble is None:
            self._folder = folder
        else:
            shutil.rmtree(folder, ignore_errors=True)
        return trouble


def _cache_folder() -> Path:
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


def _mps_is_running() -> bool:
    """Has a user started it, or said where it is?"""
    folder = os.environ.get("CUDA_MPS_PIPE_DIRECTORY")
    return folder is not None or Path("/tmp/nvidia-mps/control").exists()


def _workers_by_memory() -> int:
    """For how many workers the free memory of the GPU suffices."""
    query = ["nvidia-smi", "--id=0", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True, timeout=_TIMEOUT)
        return int(_MEMORY * int(answer.stdout.split()[0]) / 1024 / _WORKER_MEMORY)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 1


def _call(command: list[str], folder: Path, given: str = "") -> str | None:
    """What went wrong, if anything."""
    output = folder / "output.txt"  # a pipe would stay open as long as the service that is started
    try:
        with output.open("w") as file:
            ended = subprocess.run(
                command,
                env=os.environ | _directories(folder),
                input=given,
                stdout=file,
                stderr=file,
                text=True,
                check=False,
                timeout=_TIMEOUT,
            )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    text = " ".join(output.read_text(errors="replace").split())
    return None if ended.returncode == 0 else f"{command[0]} ended with status {ended.returncode} ({text[:200]})"


def _directories(folder: Path) -> dict[str, str]:
    return {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
