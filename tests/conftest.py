"""Every test runs with the package's shapes and types checked at run time.

Compiling takes most of the time of the tests. So most modules compile quickly, with few optimisations, and every
process finds what another one, or an earlier call, has compiled.
"""

import gc
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Two workers on two cores: one thread each. NumPy's would wait for each other most of the time.
os.environ.setdefault("NPROC", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import pytest
from jax._src import compiler
from jaxtyping import install_import_hook

install_import_hook("beliefscope", "beartype.beartype")

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


# These modules compile as users do: they compute for longer than they compile, or they compare results bit by bit.
# So do all processes that tests start.
AS_USERS_DO = (
    "agent/test_kill.py",
    "agent/test_last_network.py",
    "agent/test_learning.py",
    "agent/test_train.py",
    "auditing",
    "information/test_atoms.py",
    "information/test_best_bound.py",
    "information/test_calibrate.py",
    "information/test_neural.py",
    "information/test_sufficiency.py",
    "interventions/test_ground_truth.py",
    "interventions/test_parts.py",
    "study",
    "test_fast_keys.py",
    "test_trained_study.py",
)
# Several times faster to compile, several times slower to run.
QUICKLY = {
    "xla_backend_optimization_level": "0",
    "xla_cpu_parallel_codegen_split_count": "1",
    "xla_cpu_use_fusion_emitters": "False",
    "xla_llvm_disable_expensive_passes": "True",
}
compiler_options = compiler.get_compile_options


def quick_options(*arguments, env_options_overrides=None, **keywords):
    """JAX's options for the compiler, with those above where the call does not give its own."""
    return compiler_options(*arguments, env_options_overrides=QUICKLY | dict(env_options_overrides or {}), **keywords)


@pytest.fixture(scope="module", autouse=True)
def quickly_compiled(request):
    """Programs of other modules are let go of where they were compiled otherwise."""
    here = request.path.relative_to(Path(__file__).parent)
    quickly = not any(here.is_relative_to(path) for path in AS_USERS_DO)
    options = quick_options if quickly else compiler_options
    if compiler.get_compile_options is not options:
        compiler.get_compile_options = options
        jax.clear_caches()
