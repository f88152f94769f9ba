"""Every test runs with the package's shapes and types checked at run time."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("NPROC", "1")  # two workers on two cores: one thread each

from jaxtyping import install_import_hook

install_import_hook("beliefscope", "beartype.beartype")
