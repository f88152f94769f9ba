"""Every test runs with the package's shapes and types checked at run time."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("NPROC", "1")  # two workers on two cores: one thread each

from jaxtyping import install_import_hook

install_import_hook("beliefscope", "beartype.beartype")


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=4, help="how often the study of the kill test is killed")
    parser.addoption("--kill-seed", type=int, default=0, help="which moments it draws")
