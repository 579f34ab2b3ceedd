"""Skips: what is missing is named with how to get it, and is a failure at night unless nobody could
install it."""

import needs
import pytest


@pytest.mark.parametrize(
    ("reason", "is_nightly", "outcome"),
    [
        ("gnugo is not installed", True, "failed"),
        (f"{needs.NOT_HERE}no loop devices", True, "skipped"),
        ("gnugo is not installed", False, "skipped"),
    ],
)
def test_a_skip_at_night_is_a_failure_unless_nothing_could_be_installed(
    reason, is_nightly, outcome, monkeypatch
):
    monkeypatch.setattr(needs, "IS_NIGHTLY", is_nightly)
    report = pytest.TestReport(
        "test", ("file.py", 1, "test"), {}, "skipped", ("file.py", 1, f"Skipped: {reason}"), "call"
    )
    needs.fail_if_skipped(report)
    assert report.outcome == outcome and reason in str(report.longrepr)


def test_what_is_missing_is_named():
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not installed"):
        needs.require_program("no-such-program")
    with pytest.raises(
        pytest.skip.Exception, match=f"^{needs.NOT_HERE}no_such_module is not among"
    ):
        needs.require_module("no_such_module")
    assert needs.is_declared("sgfmill") and not needs.is_declared("libtpu"), (
        "the TPU compiler is in an extra of its own"
    )
