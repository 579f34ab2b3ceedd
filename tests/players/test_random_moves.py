"""The player of random moves."""

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

from azero.checkpoint.exported import write_exported
from azero.experiment import load
from azero.games.batching import repeat_state
from azero.games.position import Position
from azero.interop.settings import PgxConfig
from azero.match.directory import read_match, read_match_games
from azero.match.matches import play_match
from azero.match.referee import play_game
from azero.match.request import MatchRequest
from azero.match.sides import plays_at_once, read_sides
from azero.models.naming import normalise_name
from azero.players.clock import Clock
from azero.players.random_moves import make_random_moves
from azero.players.specs import load_thinker, parse_player, resolve


def test_every_legal_move_is_as_likely_at_any_time() -> None:
    spec = parse_player("random:tictactoe")
    assert resolve(spec)[1].game.name == "tictactoe" and spec.name == "random moves"
    player = load_thinker(spec)
    position = Position.start(player.game).play(4).play(0)
    moves = [player.choose(position, Clock()).action for _ in range(350)]
    counts = np.bincount(moves, minlength=9)
    assert counts[4] == counts[0] == 0 and counts[np.flatnonzero(position.legal)].min() > 20
    states = repeat_state(position.state, 350)
    chosen = make_random_moves(player.game)({}, jax.random.key(0), states).action
    at_once = np.bincount(chosen, minlength=9)
    assert at_once[4] == at_once[0] == 0
    assert at_once[np.flatnonzero(position.legal)].min() > 20
    plays = [play_game(player.game, player, player) for _ in range(4)]
    games = {tuple(decision.action for decision in play.decisions) for play in plays}
    assert len(games) > 1
    assert resolve(parse_player("random:animal-shogi"))[1].game.name == "animal_shogi"
    assert normalise_name("random:animal-shogi") == normalise_name("random:animal_shogi")
    with pytest.raises(ValueError, match="takes no options"):
        parse_player("random:tictactoe?seed=1")
    with pytest.raises(ValueError, match="unknown experiment 'draughts'"):
        resolve(parse_player("random:draughts"))


def test_a_match_against_random_moves_plays_many_games_at_once() -> None:
    request = MatchRequest("random-net:tictactoe?visits=2", "random:tictactoe", games=12)
    assert plays_at_once(read_sides(request), request.plays_singly)
    assert play_match(request, Console(quiet=True)).result.total.games == 12


def test_a_network_that_learned_from_margins_plays_for_results(tmp_path: Path) -> None:
    """The rewards of `go5` count points; a match counts wins."""
    assert load("go5").config.game.margin_weight > 0
    request = MatchRequest("random-net:go5?visits=0", "random:go5", games=8, out=tmp_path)
    total = play_match(request, Console(quiet=True)).result.total
    assert {game.reward for game in read_match_games(tmp_path)} <= {1.0, 0.0, -1.0}
    assert read_match(tmp_path)["result"]["score"] == total.score


def test_random_moves_of_the_game_of_a_run(tmp_path: Path) -> None:
    config = load("connect_four").config
    config = dataclasses.replace(
        config, game=PgxConfig(id="othello"), network=config.network.replace(blocks=1, filters=4)
    )
    network = config.network.build(config.game.build())
    write_exported(tmp_path, network.init(jax.random.key(0)), 0, config)
    player = load_thinker(parse_player(f"random:{tmp_path}"))
    assert player.game.board_shape == (8, 8)
    assert player.choose(Position.start(player.game), Clock()).action in (19, 26, 37, 44)
