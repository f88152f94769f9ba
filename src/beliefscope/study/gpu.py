"""A GPU that workers share: how many there are, how much of its memory each has, and MPS, NVIDIA's service that lets
them compute at the same time. All of it is settled before JAX starts in a worker and takes the GPU.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

_MEMORY = 0.75  # of a GPU, for all that share it together: JAX's own default for one process
_EACH = 6  # GiB for a worker: 20,000 sets of 1,000 particles, and what is made of them
_MOST = 10  # as many as have been measured on an H200 (docs/benchmarks.md)
_IN_TURN = 4  # workers without MPS: one computes while others sample, check and write
_CONTROL = "nvidia-cuda-mps-control"
_PATIENCE = 20  # seconds for a command of NVIDIA's


def has_gpu() -> bool:
    """JAX's CUDA plugin is installed, a GPU is there, and nobody has chosen another platform."""
    chosen = os.environ.get("JAX_PLATFORMS", "")
    plugin = any(importlib.util.find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
    return plugin and chosen in ("", "cuda", "gpu", "cuda,cpu") and Path("/dev/nvidia0").exists()


def gpu_share(share: float) -> dict[str, str]:
    """The environment of a process that takes no more of the memory than its share, and that as it needs it."""
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        # Trying Triton's products takes three quarters of a compilation, and gains a fifth at most (design.md).
        "XLA_FLAGS": f"--xla_gpu_enable_triton_gemm=false {flags}".strip(),
        "XLA_PYTHON_CLIENT_MEM_FRACTION": str(_MEMORY * share),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # whoever read the study may hold memory too
    }


class SharedGPU:
    """The GPU of this machine while a study runs on it."""

    def __init__(self, workers: int | None, *, cores: int, say: Callable[[str], None]):
        """`workers` are by default as many as its memory and the cores allow; `say` is told what slows them down."""
        self._folder: Path | None = None
        trouble = None if workers == 1 or _mps_is_running() else self._start_mps()
        self.workers = workers or max(1, min(_IN_TURN if trouble else _MOST, cores, _room()))
        if trouble and self.workers > 1:
            say(
                f"The {self.workers} workers compute in turn on the GPU, not at the same time, since {trouble}; "
                f"`{_CONTROL} -d`, called before, starts NVIDIA's MPS, which makes a study faster."
            )

    @property
    def environment(self) -> dict[str, str]:
        """That of a worker."""
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


def _mps_is_running() -> bool:
    """Somebody has started it, or told where it is."""
    folder = os.environ.get("CUDA_MPS_PIPE_DIRECTORY")
    return folder is not None or Path("/tmp/nvidia-mps/control").exists()


def _room() -> int:
    """For how many workers the free memory suffices."""
    query = ["nvidia-smi", "--id=0", "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True, timeout=_PATIENCE)
        return int(_MEMORY * int(answer.stdout.split()[0]) / 1024 / _EACH)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 1


def _call(command: list[str], folder: Path, given: str = "") -> str | None:
    """What went wrong, if anything."""
    said = folder / "said.txt"  # a pipe would stay open as long as the service that is started
    try:
        with said.open("w") as output:
            ended = subprocess.run(
                command,
                env=os.environ | _directories(folder),
                input=given,
                stdout=output,
                stderr=output,
                text=True,
                check=False,
                timeout=_PATIENCE,
            )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    text = " ".join(said.read_text(errors="replace").split())
    return None if ended.returncode == 0 else f"{command[0]} ended with status {ended.returncode} ({text[:200]})"


def _directories(folder: Path) -> dict[str, str]:
    return {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
