"""The lead in points that `scoreLead`, reviews, the page and `Evaluation.lead` show, compared with
the score of finished games."""

from pathlib import Path

import numpy as np
import pytest
from needs import not_here

import azero
from azero.games.go.sgf import GameRecord, read_games

EXPERT = Path(__file__).parents[1] / "data" / "records" / "expert9.sgf"
KATAGO = Path(__file__).parents[3] / "shared" / "data" / "go" / "katago-9x9.sgf.gz"
PASS = 81


def errors(games: list[GameRecord], back: int = 0) -> np.ndarray:
    """Return how far Black's lead by `go9` is from the score of games on 9x9 that were played to
    the end, in points, `back` moves before their last passes."""
    model = azero.load("go9")
    positions, scores = [], []
    for game in games:
        moves = [action for _, action in game.moves]
        while moves[-1] == PASS:
            moves.pop()
        rules = azero.make("go", size=9, komi=game.komi, num_planes=19)
        position = azero.Position.start(rules)
        for action in moves[: len(moves) - back]:
            position = position.play(position.action_name(action))
        positions.append(position)
        margin, rewards = game.margin, game.rewards
        assert margin is not None and rewards is not None
        scores.append(margin if rewards[0] > 0 else -margin)
    sides = [1 if position.to_play == 0 else -1 for position in positions]
    leads = [evaluation.lead for evaluation in model.evaluate(positions)]
    return np.abs(np.array(sides) * np.array(leads) - np.array(scores))


def test_the_lead_in_finished_positions_is_close_to_the_score() -> None:
    found = errors(list(read_games(EXPERT)))
    assert len(found) == 24 and np.median(found) < 1 and found.mean() < 4


@pytest.mark.slow
def test_the_lead_at_the_end_of_a_thousand_games() -> None:
    if not KATAGO.exists():
        not_here("collections of real games")
    games = list(read_games(KATAGO))
    found = errors(games)
    print(f"{len(found)} games: mean {found.mean():.2f}, median {np.median(found):.2f} points")
    assert found.mean() < 2 and errors(games[:400], back=4).mean() < 4
