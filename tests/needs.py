"""What a test needs of the machine: another program, a module, something that only some machines
have.

A test that lacks it is skipped with its reason. In the nightly run (`AZERO_NIGHTLY=1`, see
docs/testing.md) that is a failure, unless the reason says `NOT_HERE`: what installing the declared
packages and opponents would not mend.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from types import ModuleType
from typing import NoReturn

import pytest
from packaging.requirements import Requirement

from azero.players.program import find_program

IS_NIGHTLY = os.environ.get("AZERO_NIGHTLY", "") not in ("", "0")
NOT_HERE = "not on this machine: "
"""Begins the reason of a skip that stays a skip in the nightly run."""


def not_here(reason: str) -> NoReturn:
    """Skip a test that this machine cannot run, whatever is installed (no root, no data, no such
    processor)."""
    pytest.skip(NOT_HERE + reason, allow_module_level=True)


def require_program(name: str) -> str:
    """Return the path of an opponent; without it the test is skipped."""
    try:
        return find_program(name)
    except ValueError:
        pytest.skip(
            f"{name} is not installed (Debian: apt-get install {name})", allow_module_level=True
        )


PACKAGES = {"sklearn": "scikit-learn"}
"""Packages that are not called like their modules."""


def require_module(name: str) -> ModuleType:
    """Return a module that azero itself can do without; without it the test is skipped."""
    try:
        return importlib.import_module(name)
    except ImportError:
        module = name.partition(".")[0]
        package = PACKAGES.get(module, module)
        if not is_declared(package):
            not_here(f"{package} is not among azero's packages for the tests on this Python")
        pytest.skip(
            f"{package} is not installed (pip install 'azero[test]')", allow_module_level=True
        )


def is_declared(package: str) -> bool:
    """Whether `azero[test]` installs `package` on this Python and machine."""
    lines = importlib.metadata.requires("azero") or []
    wanted = [Requirement(line) for line in lines]
    return any(
        one.name == package and (one.marker is None or one.marker.evaluate({"extra": "test"}))
        for one in wanted
    )


def fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In the nightly run: make a failure of a skip that something which the project declares would
    have prevented."""
    if IS_NIGHTLY and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not reason.removeprefix("Skipped: ").startswith(NOT_HERE):
            report.outcome = "failed"
            report.longrepr = f"skipped in the nightly run: {reason}"
