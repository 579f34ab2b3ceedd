"""The player of random moves."""

import numpy as np
import pytest

from azero.match.referee import play_game
from azero.players.clock import Clock
from azero.players.player import Position
from azero.players.specs import load_any_thinker, parse_player, resolve


def test_every_legal_move_is_as_likely_at_any_time() -> None:
    spec = parse_player("random:tictactoe")
    assert resolve(spec)[1].game.name == "tictactoe" and spec.name == "random moves"
    player = load_any_thinker(spec)
    position = Position.start(player.game).play(4).play(0)
    moves = [player.choose(position, Clock()).action for _ in range(350)]
    counts = np.bincount(moves, minlength=9)
    assert counts[4] == counts[0] == 0 and counts[np.flatnonzero(position.legal)].min() > 20
    plays = [play_game(player.game, player, player) for _ in range(4)]
    games = {tuple(decision.action for decision in play.decisions) for play in plays}
    assert len(games) > 1
    with pytest.raises(ValueError, match="takes no options"):
        parse_player("random:tictactoe?seed=1")
    with pytest.raises(ValueError, match="unknown experiment 'draughts'"):
        resolve(parse_player("random:draughts"))
