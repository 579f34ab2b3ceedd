"""Random games against a plain referee with the whole history (tiny boards, where repetitions
abound), and against sgfmill's board."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from needs import require_module
from referee import Referee

from azero.bench.rules import check_random, compare_with_sgfmill, play_random
from azero.games.go.encoding import boards_of
from azero.games.go.rules import Go
from azero.games.go.state import Superko

CASES: list[tuple[tuple[int, int], Superko, bool, int, int]] = [
    ((1, 2), "positional", True, 12, 60),
    ((1, 3), "situational", False, 16, 80),
    ((2, 2), "positional", False, 24, 60),
    ((2, 2), "situational", True, 24, 60),
    ((2, 3), "simple", True, 16, 80),
    ((2, 5), "positional", True, 12, 80),
    ((3, 3), "situational", False, 12, 80),
    ((7, 7), "positional", False, 2, 120),
]


@pytest.mark.parametrize(("shape", "superko", "suicide", "num_games", "num_moves"), CASES, ids=str)
def test_every_mask_board_and_area_equals_the_referees(
    shape: tuple[int, int],
    superko: Superko,
    suicide: bool,
    num_games: int,
    num_moves: int,
    seed: int,
) -> None:
    """Passes are frequent and never end the game here, so that long repetitions with passes in
    between occur."""
    game = Go(size=shape, komi=0.5, superko=superko, suicide=suicide, max_moves=num_moves + 1)

    @jax.jit
    @jax.vmap
    def look(state):  # type: ignore[no-untyped-def]
        state = state.replace(num_passes=jnp.zeros((), jnp.int32))
        slim = game.legal_action_mask(game.search_state(state))
        return state, game.legal_action_mask(state), slim, state.frames[0], game.score(state)

    step = jax.jit(jax.vmap(game.step))
    referees = [Referee(*shape, superko, suicide) for _ in range(num_games)]
    rng = np.random.default_rng(7 + seed)
    state = jax.tree.map(lambda a: jnp.broadcast_to(a[None], (num_games, *a.shape)), game.init())
    hosts = [game.host_init() for _ in referees]
    num_repetitions = 0
    for _ in range(num_moves):
        state, masks, slim, frames, scores = look(state)
        masks, slim, scores = np.asarray(masks), np.asarray(slim), np.asarray(scores)
        boards, actions = boards_of(np.asarray(frames), game.num_points), []
        arrays = jax.device_get(state)
        for number, referee in enumerate(referees):
            hosts[number] = hosts[number].replace(num_passes=np.int32(0))
            jax.tree.map(
                lambda one, many, number=number: np.testing.assert_array_equal(one, many[number]),
                hosts[number],
                arrays,
            )
            assert game.host_facts(hosts[number]).legal.tolist() == masks[number].tolist(), (
                referee.board,
                referee.to_play,
            )
            legal = referee.legal()
            assert masks[number].tolist() == legal, (referee.board, referee.to_play)
            assert slim[number].tolist() == referee.legal(window=game.num_frames), (
                referee.board,
                referee.to_play,
            )
            assert tuple(boards[number].tolist()) == referee.board
            assert scores[number] == referee.area() - 0.5
            num_repetitions += sum(
                not legal[point] and referee.result_of(point) is not None
                for point in range(game.num_points)
            )
            points = np.flatnonzero(legal[:-1])
            action = (
                int(rng.choice(points)) if len(points) and rng.random() > 0.1 else game.num_points
            )
            referee.play(action)
            hosts[number] = game.host_step(hosts[number], action)
            actions.append(action)
        state = step(state, np.array(actions, np.int32))
    assert seed or num_repetitions > 0, (
        "the games never came to a repetition: they prove nothing about it"
    )


def test_boards_and_areas_equal_sgfmills(seed: int) -> None:
    require_module("sgfmill")
    game = Go(size=9, komi=0.5)
    assert (
        compare_with_sgfmill(9, play_random(game, num_games=8, num_moves=200, seed=seed + 1), 0.5)
        == 1600
    )


@pytest.mark.slow
def test_a_million_random_moves(seed: int) -> None:
    require_module("sgfmill")
    lines = list(check_random(seed=seed))
    assert len(lines) == 18
