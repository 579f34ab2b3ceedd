"""The benchmark runs and its figures are those the README promises."""

from __future__ import annotations

import pytest

from azero.bench import replay


@pytest.mark.slow
def test_figures() -> None:
    for row in replay.run(positions=20_000, steps=2):
        frame = 96 if row["board"].startswith("19x19") else 8
        assert row["bytes per position"] == pytest.approx(
            16 + frame + 4 * replay.VISITED[row["board"]], rel=0.02
        )
        # small shards: headers weigh more
        assert row["bytes on disk"] <= row["bytes per position"] + 40
        assert row["sampled from memory"] > row["sampled from files"] / 2
        assert 0 <= row["learner waits"] <= 1
