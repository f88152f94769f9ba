"""Every test runs with the package's shapes and types checked at run time, and finds what was compiled before."""

import gc
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Two workers on two cores: one thread each. NumPy's would wait for each other most of the time.
os.environ.setdefault("NPROC", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import pytest
from jaxtyping import install_import_hook

install_import_hook(["beliefscope", "benchmarks.known_information"], "beartype.beartype")

# Compiling is most of the time of the tests: what one process compiles, the others find, and so does the next call.
# Programs are found by all that goes into them, so that a change in the package or in JAX compiles anew.
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parents[1] / ".pytest_cache" / "xla"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


_COUNT = pytest.StashKey[int]()  # of tests so far
_MAPS = Path("/proc/self/maps")
_MOST_MAPS = 30_000  # Linux allows 65,530 to a process


def pytest_runtest_teardown(item, nextitem):
    """Every compiled program takes some memory maps, and XLA breaks down where a process has too many of them."""
    count = item.session.stash[_COUNT] = item.session.stash.get(_COUNT, 0) + 1
    if count % 10 == 0 and _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > _MOST_MAPS:
        jax.clear_caches()
        gc.collect()


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=4, help="how often the study of the kill test is killed")
    parser.addoption("--kill-seed", type=int, default=0, help="which moments it draws")


@pytest.fixture(scope="module")
def quickly_compiled():
    """For modules that compile much and compute little, and where it is the same however hard the compiler tries."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
    jax.clear_caches()  # the modules behind compile as users do
