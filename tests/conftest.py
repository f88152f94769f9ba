"""Every test runs with the package's shapes and types checked at run time."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from jaxtyping import install_import_hook

install_import_hook("beliefscope", "beartype.beartype")
