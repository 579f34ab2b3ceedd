"""Functions that Numba compiles and keeps on disk."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from numba.core.caching import CompileResultCacheImpl

MAIN = """
from pathlib import Path

from azero import native
from native_constant import STEP

compiled = native.compiler([__file__, Path(__file__).with_name("native_constant.py")])


@compiled
def step(x):
    return x + STEP
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A function that imports the two modules anew, as another process would, the second with the
    given constant."""
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "native_main.py"
    path.write_text(MAIN)

    def load(constant: int) -> ModuleType:
        (tmp_path / "native_constant.py").write_text(f"STEP = {constant}\n")
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        sys.modules.pop("native_constant", None)
        spec = importlib.util.spec_from_file_location("native_main", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load
    sys.modules.pop("native_constant", None)


def test_a_result_on_disk_is_used_until_a_source_changes(load) -> None:
    first, again, changed = load(1), load(1), load(2)
    for module, expected in ((first, 11), (again, 11), (changed, 12)):
        assert module.step(10) == expected
    assert not first.step.stats.cache_hits and first.step.stats.cache_misses
    assert again.step.stats.cache_hits and not again.step.stats.cache_misses
    assert not changed.step.stats.cache_hits


def test_functions_are_compiled_where_nothing_can_be_kept(load, monkeypatch) -> None:
    """A package that another user installed, and no home: importing the engines failed."""
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])
    assert load(1).step(10) == 11
