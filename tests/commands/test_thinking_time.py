"""The curve of strength against thinking time."""

import json
from pathlib import Path
from typing import Any

import pytest

from azero.commands import thinking_time
from azero.match.request import MatchRequest


def test_all_matches_are_of_one_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run goes on learning between the matches."""
    newest, played = [3], []

    def play(request: MatchRequest, known: dict[str, Any]) -> None:
        newest[0] += 1
        texts = (request.first, request.second)
        found = [known.get(text, {"iteration": newest[0]})["iteration"] for text in texts]
        sides = [
            {"name": text, "player": text, "iteration": iteration}
            for text, iteration in zip(texts, found, strict=True)
        ]
        assert request.out is not None
        request.out.mkdir(parents=True, exist_ok=True)
        facts = {"command": request.command, "players": sides, "result": {}}
        (request.out / "match.json").write_text(json.dumps(facts))
        played.extend((side["player"], side["iteration"]) for side in sides)

    monkeypatch.setattr(thinking_time, "play_match", play)
    monkeypatch.setattr(thinking_time, "rate", lambda directories, *_, **__: len(directories))
    request = thinking_time.ThinkingTimeRequest("runs/a", tmp_path, visits=(0, 8, 16), games=2)
    for _ in range(2):  # the same command continues
        assert thinking_time.measure_thinking_time(request) == 2
    names = [f"runs/a?visits={count}" for count in (8, 0, 16, 8)]
    assert played == [(name, 4) for name in names] * 2
