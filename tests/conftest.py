"""Every test runs with the package's shapes and types checked at run time.

Compiling takes most of the time of the tests. So most modules compile quickly, with few optimisations, and every
process finds what another one, or an earlier call, has compiled.
"""

import gc
import os
import sys
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Two workers on two cores: one thread each. NumPy's would wait for each other most of the time.
os.environ.setdefault("NPROC", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Programs are found by all that goes into them, so that a change in the package or in JAX compiles anew.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import jax
import pytest
from jax._src import compiler
from jaxtyping import config, install_import_hook

install_import_hook(["beliefscope", "benchmarks.known_information"], "numeric_tower.checked")

# Bytecode is kept as well, whatever the environment says: many tests start processes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

_COUNT = pytest.StashKey[int]()  # of tests so far
_MAPS = Path("/proc/self/maps")
_MOST_MAPS = 30_000  # Linux allows 65,530 to a process


@pytest.fixture
def types_unchecked():
    """As it is outside of the tests: NumPy's numbers pass where Python's are expected."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


def pytest_runtest_teardown(item, nextitem):
    """Every compiled program takes some memory maps, and XLA breaks down where a process has too many of them."""
    count = item.session.stash[_COUNT] = item.session.stash.get(_COUNT, 0) + 1
    if count % 10 == 0 and _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > _MOST_MAPS:
        jax.clear_caches()
        gc.collect()


def pytest_addoption(parser):
    parser.addoption("--kills", type=int, default=4, help="how often the study of the kill test is killed")
    parser.addoption("--kill-seed", type=int, default=0, help="which moments it draws")


# These modules compare results bit by bit, or to the last digits, and compile as users do; so do all processes.
BIT_BY_BIT = (
    "agent/test_cells.py",
    "agent/test_kill.py",
    "agent/test_last_network.py",
    "agent/test_learning.py",
    "agent/test_train.py",
    "information/test_neural.py",
    "interventions/test_parts.py",
    "test_fast_keys.py",
)
# These compute for longer than they compile, and need fast programs.
COMPUTING = (
    "auditing",
    "information/test_atoms.py",
    "information/test_best_bound.py",
    "information/test_calibrate.py",
    "information/test_sufficiency.py",
    "information/test_warning_signs.py",
    "interventions/test_ground_truth.py",
    "measurement/test_checkpoints.py",
    "test_trained_study.py",
)
# As fast to run, and a quarter faster to compile. JAX 0.11 has the first of them alone.
WITHOUT_EMITTERS = {"xla_cpu_parallel_codegen_split_count": "1"}
if jax.__version_info__ < (0, 11):
    WITHOUT_EMITTERS["xla_cpu_use_fusion_emitters"] = "False"
# Several times faster to compile, and several times slower to run.
QUICKLY = WITHOUT_EMITTERS | {"xla_backend_optimization_level": "0", "xla_llvm_disable_expensive_passes": "True"}

_compile_options = compiler.get_compile_options
_chosen: dict[str, str] = {}


def with_chosen_options(*arguments, env_options_overrides=None, **keywords):
    """JAX's options for the compiler, with those of the module where the call does not give its own."""
    return _compile_options(*arguments, env_options_overrides=_chosen | dict(env_options_overrides or {}), **keywords)


compiler.get_compile_options = with_chosen_options


def options_of(module: Path) -> dict[str, str]:
    here = module.relative_to(Path(__file__).parent)

    def is_in(paths: tuple[str, ...]) -> bool:
        return any(here.is_relative_to(path) for path in paths)

    return {} if is_in(BIT_BY_BIT) else WITHOUT_EMITTERS if is_in(COMPUTING) else QUICKLY


def pytest_collection_modifyitems(items):
    """Those that compile in the same way come one after another; those that take longest come first."""
    items.sort(key=lambda item: len(options_of(item.path)))


@pytest.fixture(scope="module", autouse=True)
def compiled_as_the_module_needs(request):
    """Programs of other modules are let go of where they were compiled otherwise."""
    options = options_of(request.path)
    if _chosen != options:
        _chosen.clear()
        _chosen.update(options)
        jax.clear_caches()
