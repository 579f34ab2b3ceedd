"""Matches: colours, results by hand, determinism, devices."""

import functools
import logging

import jax
import numpy as np
import pytest
from kept_reference import KeptReference, hashing_leaf
from nim_game import Nim, nim_search

from azero.games.table import make
from azero.match.compiled import _compile, _think, make_match
from azero.match.score import MatchResult, Tally, wilson_interval
from azero.mesh import make_mesh
from azero.search.batched.reuse import make_new_trees
from azero.search.leaf import uniform_leaf
from azero.search.search import SearchFn
from azero.search.settings import PuctConfig


def _other_search(params, key, roots):  # type: ignore[no-untyped-def]
    return nim_search(params, key, roots)


@pytest.mark.parametrize(
    "search_b", [nim_search, _other_search], ids=["one search", "two searches"]
)
def test_the_perfect_player_wins_with_either_colour(search_b) -> None:  # type: ignore[no-untyped-def]
    match = make_match(Nim(7), nim_search, search_b, 8, moves_per_chunk=3)
    games = match(1, 0, jax.random.key(0))
    # A first: piles 7 6 5 3 2 0. A second: 7 6 5 4 3 2 0; A is lost at 6 until B errs at 5.
    assert games.result == MatchResult(first=Tally(wins=4), second=Tally(wins=4))
    assert games.actions[0].tolist() == [0, 0, 1, 0, 1, -1]
    assert games.actions[4].tolist() == [0, 0, 0, 0, 0, 1]
    assert games.lengths.tolist() == [5] * 4 + [6] * 4
    assert games.values[0].tolist() == [1.0, -1.0, 1.0, -1.0, 1.0, 0.0]
    losing = match(0, 1, jax.random.key(0))
    assert losing.result == MatchResult(first=Tally(losses=4), second=Tally(losses=4))


def test_every_recorded_game_replays_to_its_reward() -> None:
    game = Nim(9)
    games = make_match(game, nim_search, nim_search, 40, temperature_moves=4)(
        0, 0, jax.random.key(5)
    )
    assert len({tuple(row) for row in games.actions.tolist()}) > 4
    for row, length, reward, a_first in zip(
        games.actions, games.lengths, games.rewards, games.a_moves_first, strict=True
    ):
        state = game.init()
        for action in row[:length]:
            assert not game.is_terminal(state)
            state = game.step(state, action)
        assert game.is_terminal(state) and (row[length:] == -1).all()
        assert game.rewards(state)[0 if a_first else 1] == reward


def test_all_chunks_of_moves_are_one_program(caplog, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(logging.getLogger("jax"), "propagate", True)
    match = make_match(Nim(9), nim_search, nim_search, 6, moves_per_chunk=2)
    with jax.log_compiles():
        lengths = match(0, 0, jax.random.key(0)).lengths
    assert lengths.max() > 2
    compiled = [text for text in caplog.messages if text.startswith("Compiling jit(_play_chunk)")]
    assert len(compiled) == 1


def test_openings_are_played_with_both_colours() -> None:
    # One move or two are given: with an odd number the second mover of the game is to move.
    openings = np.array([[0, -1], [0, 1]], np.int32)
    games = make_match(Nim(7), nim_search, nim_search, 4)(
        1, 0, jax.random.key(0), openings=openings
    )
    assert games.a_moves_first.tolist() == [False, True, True, False]
    for index, (a_first, given) in enumerate(
        zip(games.a_moves_first, [*openings, *openings], strict=True)
    ):
        state = Nim(7).init()
        played = [int(action) for action in given if action >= 0]
        perfect_turn = a_first == (len(played) % 2 == 0)
        for action in [*played, *games.actions[index, : games.lengths[index]].tolist()]:
            state = Nim(7).step(state, action)
        assert (
            Nim(7).is_terminal(state)
            and Nim(7).rewards(state)[0 if a_first else 1] == games.rewards[index]
        )
        assert perfect_turn == (index < 2), "in the first half A is to move after the opening"


def test_a_match_is_determined_by_its_key() -> None:
    match = make_match(Nim(9), nim_search, nim_search, 16, temperature_moves=9)
    same, again, other = (match(0, 1, jax.random.key(seed)) for seed in (1, 1, 2))
    assert (same.actions == again.actions).all() and (same.rewards == again.rewards).all()
    assert same.actions.shape != other.actions.shape or (same.actions != other.actions).any()


def test_games_are_split_over_devices() -> None:
    mesh = make_mesh()
    seen: list[tuple[int, int]] = []
    match = make_match(Nim(7), nim_search, nim_search, 2 * mesh.size, moves_per_chunk=2, mesh=mesh)
    games = match(1, 0, jax.random.key(0), lambda moves, finished: seen.append((moves, finished)))
    assert games.result.total == Tally(wins=2 * mesh.size)
    assert seen == [(2, 0), (4, 0), (6, 2 * mesh.size)]


def test_players_do_not_talk_to_each_other_across_devices() -> None:
    """The compiled moves of a match hold no collective: no device waits for another one."""
    mesh, game = make_mesh(), Nim(7)
    think = functools.partial(_think, game, nim_search, _other_search, 2)
    start, chunk, _ = _compile(game, think, lambda half: (None, None), mesh.size, 4, mesh)
    text = (
        chunk.lower(
            1,
            0,
            start(
                jax.random.split(jax.random.key(0), mesh.size), np.zeros((mesh.size, 0), np.int32)
            ),
        )
        .compile()
        .as_text()
    )
    assert not [
        name
        for name in (
            "all-reduce",
            "all-gather",
            "all-to-all",
            "collective-permute",
            "reduce-scatter",
        )
        if name in text
    ]


def test_more_simulations_win_at_tictactoe() -> None:
    game = make("tictactoe")

    def search(simulations: int) -> SearchFn:
        return PuctConfig(num_simulations=simulations, dirichlet_fraction=0.0).build(
            game, uniform_leaf(game)
        )

    result = make_match(game, search(64), search(1), 64, temperature_moves=1, moves_per_chunk=10)(
        (), (), jax.random.key(0)
    ).result
    assert result.total.interval[0] > 0.65


@pytest.mark.parametrize("count", [1, 7, 10, 50])
def test_any_number_of_games_is_played_on_any_number_of_devices(count) -> None:
    """More games are played than count where they do not fill the halves of 8 devices; the result
    is of exactly those that were asked for."""
    match = make_match(Nim(7), nim_search, nim_search, count, temperature_moves=3, mesh=make_mesh())
    games = match(0, 0, jax.random.key(0))
    first = -(-count // 2)
    assert games.a_moves_first.tolist() == [True] * first + [False] * (count - first)
    assert (games.result.first.games, games.result.second.games) == (first, count - first)
    assert len(games.lengths) == len(games.actions) == len(games.values) == count
    for actions, length, reward, a_first in zip(
        games.actions, games.lengths, games.rewards, games.a_moves_first, strict=True
    ):
        state = functools.reduce(Nim(7).step, actions[:length].tolist(), Nim(7).init())
        assert Nim(7).is_terminal(state) and Nim(7).rewards(state)[0 if a_first else 1] == reward


def test_openings_of_games_that_do_not_fill_the_devices() -> None:
    openings = np.array([[0, -1], [0, 1], [1, -1]], np.int32)
    games = make_match(Nim(7), nim_search, nim_search, 5, mesh=make_mesh())(
        1, 0, jax.random.key(0), openings=openings
    )
    assert games.a_moves_first.tolist() == [False, True, False, True, False]
    for index, given in enumerate([*openings, *openings[:2]]):
        moves = [
            *(int(action) for action in given if action >= 0),
            *games.actions[index, : games.lengths[index]].tolist(),
        ]
        state = functools.reduce(Nim(7).step, moves, Nim(7).init())
        assert Nim(7).rewards(state)[0 if games.a_moves_first[index] else 1] == games.rewards[index]


def test_a_match_without_games_is_refused() -> None:
    with pytest.raises(ValueError, match="a match has at least 1 game, not 0"):
        make_match(Nim(), nim_search, nim_search, 0)


def test_wilson_interval_matches_published_values() -> None:
    # Newcombe 1998 (Statistics in Medicine 17), table I: 81 of 263 and 15 of 148 and 0 of 20.
    assert wilson_interval(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson_interval(15 / 148, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson_interval(0.0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson_interval(0.5, 0) == (0.0, 1.0)
    with pytest.raises(ValueError, match=r"not 1\.5"):
        wilson_interval(1.5, 3)


def test_result_is_written_out() -> None:
    text = str(MatchResult(first=Tally(10, 0, 0), second=Tally(8, 1, 1)))
    assert text.startswith("18 wins, 1 draw, 1 loss: 92.5%") and text.endswith(
        "moving first 10-0-0, second 8-1-1"
    )
    assert np.isclose(MatchResult(Tally(1), Tally(0, 1, 0)).total.score, 0.75)


@pytest.mark.parametrize("simulations", [(12, 12), (12, 8)], ids=["one search", "two searches"])
def test_both_players_keep_their_trees(simulations) -> None:  # type: ignore[no-untyped-def]
    """Every move and value of eight games is that of two plain Python trees a game, one of each
    player, which go on with what the other one answers."""
    game = make("tictactoe")
    configs = [
        PuctConfig(num_simulations=count, dirichlet_fraction=0.0, reuse_tree=True)
        for count in simulations
    ]
    leaf = hashing_leaf(game)
    search_a, search_b = (config.build(game, leaf) for config in configs)
    a, b = (
        make_new_trees(config, game, count)
        for config, count in zip(configs, simulations, strict=True)
    )
    match = make_match(
        game,
        search_a,
        search_a if simulations[0] == simulations[1] else search_b,
        8,
        temperature_moves=3,
        moves_per_chunk=4,
        mesh=make_mesh(jax.devices()[:2]),
        new_trees=(a, b),
    )
    games = match(np.float32(1), np.float32(2), jax.random.key(1))
    assert len({tuple(row) for row in games.actions.tolist()}) > 4
    kept = 0
    for actions, values, length, a_first in zip(
        games.actions, games.values, games.lengths, games.a_moves_first, strict=True
    ):
        order = (0, 1) if a_first else (1, 0)
        players = [
            KeptReference(
                game, functools.partial(_with_parameter, leaf, np.float32(p + 1)), configs[p]
            )
            for p in order
        ]
        state = game.init()
        for ply in range(length):
            mover = players[ply % 2]
            kept += mover.root is not None
            mover.begin(state)
            root = mover.search(simulations[order[ply % 2]])
            total = sum(root.visits.values())
            value = (root.value + sum(root.value_sums.values())) / (1 + total)
            assert values[ply] == pytest.approx(value, abs=1e-4)
            if ply >= 3:
                assert root.visits[int(actions[ply])] == max(root.visits.values())
            for player in players:
                if player.root is not None:
                    player.play(int(actions[ply]))
            state = game.step(state, actions[ply])
    assert kept > 10


def _with_parameter(leaf, parameter, params, key, states):  # type: ignore[no-untyped-def]
    return leaf(parameter, key, states)
