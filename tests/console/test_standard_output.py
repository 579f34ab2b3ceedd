"""Standard output that is closed."""

import pytest

from azero.console.standard_output import end_with_reader


def test_a_closed_standard_output_is_no_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdout", None)  # as Python starts after `>&-`
    with end_with_reader():
        print("nobody reads this")
