"""Is there a GPU for the workers, and how much of its memory has each? Settled before JAX starts and takes it."""

import importlib.util
import os
from pathlib import Path

_MEMORY = 0.75  # of a GPU, for all that share it together: JAX's own default for one process


def has_gpu() -> bool:
    """JAX's CUDA plugin is installed, a GPU is there, and nobody has chosen another platform."""
    chosen = os.environ.get("JAX_PLATFORMS", "")
    plugin = any(importlib.util.find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
    return plugin and chosen in ("", "cuda", "gpu", "cuda,cpu") and Path("/dev/nvidia0").exists()


def gpu_share(share: float) -> dict[str, str]:
    """The environment of a process that takes no more of the GPU's memory than its share, and that as it needs it."""
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        # Trying Triton's products takes three quarters of a compilation, and gains nothing at our sizes.
        "XLA_FLAGS": f"--xla_gpu_enable_triton_gemm=false {flags}".strip(),
        "XLA_PYTHON_CLIENT_MEM_FRACTION": str(_MEMORY * share),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # whoever read the study may hold memory too
    }
