"""Pgx both ways: its own API tests on our games, the same random games in both, its environments as
games that are trained and played."""

import pickle
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from needs import require_module

from azero.games.position import Position
from azero.games.settings import GameConfig
from azero.games.table import make
from azero.interop.settings import PgxConfig
from azero.players.thinking import can_play

pgx = require_module("pgx")
api = require_module("pgx._src.api_test")
pgx_go = require_module("pgx.go")
wrappers = require_module("pgx.experimental.wrappers")

from azero.interop import pgx as bridge  # noqa: E402 - needs pgx

SLOW = ("chess", "gardner_chess", "go_19x19", "shogi")


@jax.jit
def act_randomly(key: jax.Array, legal: jax.Array) -> jax.Array:
    """Pgx's own function, but over the last axis: that of Pgx 2.6 takes the second one, also of a
    single mask, which jax 0.10 refuses."""
    return jax.random.categorical(key, jnp.log(legal.astype(jnp.float32)), axis=-1)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in bridge.GAMES],
)
def test_our_games_pass_the_tests_of_pgx(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "act_randomly", act_randomly)
    env = bridge.make(name)
    assert env.observation_shape == pgx.make(name).observation_shape or name in (
        "animal_shogi",
        "gardner_chess",
        "shogi",
        "tic_tac_toe",
    )
    # Shogi has AlphaZero's moves, in Pgx those of another program.
    assert name == "shogi" or env.num_actions == pgx.make(name).num_actions
    api.api_test(env, 2)


@pytest.mark.parametrize("name", ["tic_tac_toe", "go_9x9"])
def test_the_same_games_in_both(name: str, seed: int) -> None:
    """One line of a user's program is changed: players, masks, rewards and ends stay."""
    theirs, ours = pgx.make(name), bridge.make(name)
    keys = jax.random.split(jax.random.key(seed), 16)
    states = [jax.jit(jax.vmap(env.init))(keys) for env in (theirs, ours)]
    steps = [jax.jit(jax.vmap(env.step)) for env in (theirs, ours)]
    while not states[0].terminated.all():
        action = act_randomly(
            keys[int(states[0]._step_count.max()) % 16], states[0].legal_action_mask
        )
        states = [step(state, action) for step, state in zip(steps, states, strict=True)]
        going = ~np.asarray(states[0].terminated)
        for field in ("rewards", "terminated", "truncated", "legal_action_mask", "_step_count"):
            mine, other = (np.asarray(getattr(state, field)) for state in states[::-1])
            np.testing.assert_array_equal(mine, other, err_msg=field)
        np.testing.assert_array_equal(
            *(np.asarray(state.current_player)[going] for state in states)
        )
        if name == "go_9x9":
            seen, mine = (np.asarray(state.observation)[going] for state in states)
            np.testing.assert_array_equal(seen[..., :16], mine[..., :16])
            # Ones for Black to move, as in the paper; Pgx has ones for White.
            np.testing.assert_array_equal(seen[..., 16], ~mine[..., 16])
    assert states[1].terminated.all()


def test_an_illegal_action_ends_the_game() -> None:
    for env in (pgx.make("tic_tac_toe"), bridge.make("tic_tac_toe")):
        step = jax.jit(env.step)
        state = step(env.init(jax.random.key(0)), 4)
        loser = int(state.current_player)
        state = step(state, 4)
        assert state.terminated and state.legal_action_mask.all()
        assert (float(state.rewards[loser]), float(state.rewards[1 - loser])) == (-1.0, 1.0)
        after = step(state, 0)
        assert not after.rewards.any() and int(after._step_count) == 2
        for field in ("current_player", "observation", "legal_action_mask", "terminated"):
            np.testing.assert_array_equal(getattr(after, field), getattr(state, field), field)


@pytest.mark.parametrize(("name", "moves"), [("tic_tac_toe", 12), ("go_9x9", 3)])
def test_it_runs_under_the_auto_reset_of_pgx(name: str, moves: int) -> None:
    """It has conditions, in which JAX cannot map the batched form of Go's rules."""
    env = bridge.make(name)
    step = jax.jit(jax.vmap(wrappers.auto_reset(env.step, env.init)))
    keys = jax.random.split(jax.random.key(1), 4)
    state, ended = jax.jit(jax.vmap(env.init))(keys), 0
    for _ in range(moves):
        state = step(state, act_randomly(keys[0], state.legal_action_mask), keys)
        ended += int(state.terminated.sum())
    if name == "tic_tac_toe":
        assert ended >= 4 and (np.asarray(state._step_count) <= 9).all()
    else:
        assert (np.asarray(state._step_count) == moves).all()


def test_states_of_equal_environments_go_together() -> None:
    """Such as those that another process has sent: no program is compiled again for them."""
    envs = [bridge.make("tic_tac_toe") for _ in range(2)]
    first, second = (env.init(jax.random.key(0)) for env in envs)
    step = jax.jit(envs[0].step)
    for state in (first, second, pickle.loads(pickle.dumps(first))):
        assert int(step(state, 4)._step_count) == 1
        assert jax.tree.map(lambda *leaves: jnp.stack(leaves), first, state).rewards.shape == (2, 2)
    assert step._cache_size() == 1
    assert bridge.make("go_9x9") != bridge.make("go_9x9", komi=5.5)


def test_a_position_is_drawn() -> None:
    state = bridge.make("go_9x9").init(jax.random.key(0))
    assert state.to_svg().count("<text") == 11 and state.env_id == "go_9x9"


@pytest.mark.parametrize("name", ["connect_four", "othello", "hex"])
def test_an_environment_is_a_game(name: str, seed: int) -> None:
    """Whole random games: rewards and turns by the order of the players, whoever Pgx lets begin."""
    env = pgx.make(name)
    game = bridge.game(env)
    assert game == GameConfig.default("pgx").replace(id=name).build() == game.config.build()
    step, env_step = jax.jit(game.step), jax.jit(env.step)
    state, other = game.init(), env.init(jax.random.key(3))
    first = int(other.current_player)
    draw = np.random.default_rng(seed)
    moves = 0
    while not game.is_terminal(state):
        assert int(game.to_play(state)) == int(other.current_player) ^ first
        legal = np.asarray(game.legal_action_mask(state))
        np.testing.assert_array_equal(legal, np.asarray(other.legal_action_mask))
        planes = np.asarray(game.observe(state))
        np.testing.assert_array_equal(planes, np.asarray(other.observation))
        frame = game.pack_frame(state)[None]
        np.testing.assert_array_equal(game.observe_frames(frame, game.to_play(state)), planes)
        assert not game.rewards(state).any()
        action = int(draw.choice(np.flatnonzero(legal)))
        state, other = step(state, action), env_step(other, action)
        moves += 1
    assert other.terminated and moves <= game.max_moves
    rewards = np.asarray(game.rewards(state)).tolist()
    assert rewards == [float(other.rewards[first]), float(other.rewards[1 - first])]
    assert len(game.format_board(state).splitlines()) == game.board_shape[0]


def test_environments_of_one_name_differ_by_their_komi() -> None:
    """Compiled rules are kept by game."""
    for komi, rewards in ((0.5, (1.0, -1.0)), (9.5, (-1.0, 1.0))):
        game = bridge.game(pgx_go.Go(size=3, komi=komi))
        assert Position.from_moves(game, "4 9 9").rewards == rewards


def test_a_network_of_one_environment_does_not_play_another() -> None:
    animal, line = (PgxConfig(id=name).build() for name in ("animal_shogi", "tic_tac_toe"))
    assert can_play(animal, animal) and not can_play(animal, line, on_any_board=True)
    ours = make("animal_shogi")
    assert ours.board_shape == animal.board_shape and not can_play(ours, animal)


def test_without_pgx_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "azero.interop.pgx")
    monkeypatch.setitem(sys.modules, "pgx.core", None)
    with pytest.raises(ValueError, match=r"pip install 'azero\[peers\]'"):
        PgxConfig().build()


def test_environments_that_are_no_such_games() -> None:
    for name in ("backgammon", "kuhn_poker", "2048"):
        with pytest.raises(ValueError, match="not a game of two players"):
            bridge.game(pgx.make(name))
    with pytest.raises(TypeError, match="'hex' is not an environment of Pgx"):
        bridge.game("hex")
    with pytest.raises(ValueError, match="max_moves is at least 1, not 0"):
        bridge.game(pgx.make("tic_tac_toe"), max_moves=0)
    with pytest.raises(ValueError, match="the games of Pgx are animal_shogi, chess, connect_four"):
        PgxConfig(id="draughts").build()
    with pytest.raises(ValueError, match="no game 'hex' of Pgx; it has animal_shogi"):
        bridge.make("hex")
