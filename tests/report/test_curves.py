"""The picture of a run's curves."""

from pathlib import Path

import pytest

from azero.match.arena import evaluation_row
from azero.match.score import MatchResult, Tally
from azero.report.live import save_curves
from azero.report.metrics import MetricsWriter


def test_a_picture_of_a_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no metrics to plot yet"):
        save_curves(tmp_path, tmp_path / "curves.svg")
    with MetricsWriter(tmp_path) as writer:
        for iteration in range(1, 6):
            writer.write(
                {
                    "iteration": iteration,
                    "policy_loss": 3 / iteration,
                    "value_loss": None if iteration < 3 else 0.5,
                    "seconds": 2.0,
                }
            )
        writer.event(**evaluation_row(2, 0, MatchResult(Tally(9, 0, 1), Tally(8, 1, 1))))
    save_curves(tmp_path, tmp_path / "curves.svg")
    picture = (tmp_path / "curves.svg").read_text()
    assert (
        all(
            f">{title}</text>" in picture
            for title in ("Policy loss", "Value loss", "Elo of the checkpoints")
        )
        and "Seconds" not in picture
    )
    save_curves(tmp_path, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match=r"cannot write .*curves\.nothing"):
        save_curves(tmp_path, tmp_path / "curves.nothing")
    for name in ("curves", "."):
        with pytest.raises(ValueError, match=r"the name of an image ends in \.png, \.svg or \.pdf"):
            save_curves(tmp_path, tmp_path / name)
