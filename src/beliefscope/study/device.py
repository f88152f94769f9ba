"""Is there a GPU for the workers? Asked without starting JAX on it, which would take its memory."""

import importlib.util
import os
from pathlib import Path


def has_gpu() -> bool:
    """JAX's CUDA plugin is installed, a GPU is there, and nobody has chosen another platform."""
    chosen = os.environ.get("JAX_PLATFORMS", "")
    plugin = any(importlib.util.find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
    return plugin and chosen in ("", "cuda", "gpu", "cuda,cpu") and Path("/dev/nvidia0").exists()
