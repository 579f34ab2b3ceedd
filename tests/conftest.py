"""Settings of the test session: CPU only, eight virtual devices, a persistent compilation cache,
strict promotion; seeds; skips that are failures at night."""

import dataclasses
import functools
import gc
import os
import time
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".jax_cache"))
# Keeping a program takes 0.1 s and finding it again 0.1 to 0.2 s; a third of those kept are met again.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
if not os.environ.get("AZERO_NIGHTLY"):
    # Programs compile faster without their source lines, which only tests/plan needs.
    os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

import jax
import pytest
from hypothesis import settings
from needs import fail_if_skipped

from azero.xla_flags import jaxlib_contains  # Adds its own flag to XLA_FLAGS.

# The suite's time is compiling; without LLVM's optimisations that takes half as long, and with
# XLA's older emitters of fusions, which go without MLIR, a quarter less again (processor time of
# two iterations of chess: 34 and 27 s). One LLVM module a program instead of 32 in parallel, and no
# expensive passes, save a fifth more (searches of 19x19 Go: 17.3 and 13.5 s): both workers' cores
# are busy anyway. With the preset, fusions repeat fewer instructions: searches of chess, animal
# shogi and 19x19 Go have a fifth, almost half and a quarter less of them. Two iterations of animal
# shogi and 19x19 Go take a tenth less processor time. JAX reads the flags when it starts, and XLA
# ends the process at one that it does not know: jaxlib 0.12 has no older emitters.
# Set XLA_FLAGS to something else to test the programs that users run.
FAST_COMPILING = (
    "xla_cpu_use_fusion_emitters=false",
    "xla_llvm_disable_expensive_passes=true",
    "xla_cpu_parallel_codegen_split_count=1",
    "xla_cpu_opt_preset=CPU_OPT_PRESET_FAST_COMPILE",
)
if (
    "optimization_level=0" in os.environ["XLA_FLAGS"]
    and "xla_cpu_opt_preset" not in os.environ["XLA_FLAGS"]
):
    for name, value in (flag.split("=") for flag in FAST_COMPILING):
        if jaxlib_contains(f"\0{name}\0") and jaxlib_contains(value):
            os.environ["XLA_FLAGS"] += f" --{name}={value}"

# Tracing makes objects by the million that live long: with Python's own thresholds the collector
# takes 5% of the processor time of tracing and compiling one program, 0.7% with these.
gc.freeze()
gc.set_threshold(100_000, 50, 100)

SEED = int(os.environ.get("AZERO_TEST_SEED", "0"))


@pytest.fixture(scope="session")
def seed() -> int:
    """The seed of the tests that draw games, positions and moments: `AZERO_TEST_SEED`, another one
    every night."""
    return SEED


MOST_MAPS = 30_000
"""Memory maps of a process from which on compiled programs are let go; Linux allows 65,530
(vm.max_map_count), and one test with XLA's default flags has added 11,000."""

# "ci" draws the same few examples every time; HYPOTHESIS_PROFILE=nightly draws many from a seed
# that changes, and prints how to repeat what failed.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=30, database=None)
settings.register_profile("nightly", deadline=None, max_examples=3000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def release_programs():
    """Let go of compiled programs once there are many: XLA aborts a process that has no memory maps
    left. Counting takes up to 30 ms and is left out after short tests, which compile little."""
    started = time.monotonic()
    yield
    maps = Path("/proc/self/maps")
    if time.monotonic() - started < 0.2 or not maps.exists():
        return
    if maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="module")
def shared_programs():
    """Let the runs of a module share the programs that their settings have in common; each run has
    its own loop, state and files."""
    from azero.config import Kind
    from azero.data.settings import ReplayConfig
    from azero.train import loop, programs, supervised
    from azero.train.settings import CheckpointConfig, RunConfig

    match_leaf = functools.cache(programs.match_leaf)

    def leaf_of_matches(config, game, network):
        return match_leaf(
            dataclasses.replace(
                config, replay=ReplayConfig(), checkpoint=CheckpointConfig(), run=RunConfig()
            ),
            game,
            network,
        )

    with pytest.MonkeyPatch.context() as patch:
        for name in ("network_leaf", "make_selfplay", "make_match"):
            patch.setattr(programs, name, functools.cache(getattr(programs, name)))
        patch.setattr(Kind, "build", functools.cache(Kind.build))
        patch.setattr(programs, "match_leaf", leaf_of_matches)
        for module in (loop, supervised):
            patch.setattr(module, "make_learner", functools.cache(module.make_learner))
        yield


@pytest.fixture(scope="module")
def two_devices():
    """Let the runs of a module have two of the eight devices: sixteen and eight are met by tests of
    their own, and a program for eight takes a sixth more to compile and start."""
    from azero import mesh

    whole = mesh.make_mesh

    def make_mesh(devices=None):
        return whole(jax.devices()[:2] if devices is None else devices)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mesh, "make_mesh", make_mesh)
        yield


@pytest.fixture
def without_reports(monkeypatch):
    """Runs of which only the checkpoints count write no report."""
    monkeypatch.setattr("azero.train.driver.write_report", lambda workdir: workdir)


LONGEST = (
    "train/test_run.py",
    "games/test_contract.py",
    "networks/test_pooled.py",
    "test_docs.py",
    "numerics/test_golden.py",
    "players/test_any_board.py",
    "search/batched/test_tree.py",
    "train/cluster/test_ray.py",
    "commands/test_notebook.py",
    "interop/test_onnx.py",
    "train/test_runs_of_several_processes.py",
    "search/batched/test_gumbel.py",
    "interop/test_pgx.py",
    "train/test_board_sizes.py",
    "games/go/test_go_status.py",
    "engines/web/test_web_browser.py",
    "colab/test_notebooks.py",
    "games/test_hostile_text.py",
    "train/test_supervised.py",
    "players/test_players_and_estimates.py",
    "commands/test_tournament.py",
    "search/batched/test_exploration.py",
    "engines/web/test_web_guard.py",
    "search/batched/test_mctx_backend.py",
    "learn/test_learner.py",
    "faults/test_sweep.py",
)
"""The files that take longest (`--durations=0`); they come first, so that the workers end together,
with `--dist loadfile --no-loadscope-reorder`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    place = {here / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))
    long = frozenset((here / "long.txt").read_text().splitlines())
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        if long & {name, name.partition("[")[0], name.partition("::")[0]}:
            item.add_marker("long")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    fail_if_skipped(report)
    return report


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"seed of the random tests: AZERO_TEST_SEED={SEED}")
