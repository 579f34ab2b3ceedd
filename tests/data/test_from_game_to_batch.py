"""What the learner gets of every position of self-play, against a slow reference that sees the
games as they are played: states, searches and moves, one after the other."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy_words import split_words

from azero import mesh as mesh_lib
from azero.data.replay import Replay
from azero.data.sample import Batch, unpack
from azero.data.settings import ReplayConfig
from azero.data.shard import HORIZONS
from azero.games.go.rules import Go
from azero.search.search import SearchFn, SearchOutput
from azero.selfplay.selfplay import make_selfplay, to_host
from azero.selfplay.settings import SelfplayConfig
from azero.selfplay.trajectory import Assembler, Step

GO = Go(size=(2, 3), num_planes=19, max_moves=10, margin_weight=0.25)
PASS = POINTS = 6
WINDOW = 60


def make_search(low: float) -> SearchFn:
    """Make a search that means nothing: visits, values and priors are random, values above `low`;
    one move in four is a pass."""

    def search(params: Any, key: jax.Array, roots: Any) -> SearchOutput:
        del params
        keys = jax.random.split(key, 5)
        legal = jax.vmap(GO.legal_action_mask)(roots)
        visits = jnp.where(legal, jax.random.randint(keys[0], legal.shape, 0, 9), 0)
        visits = visits.at[:, PASS].add(1)
        likes = jnp.where(legal, jax.random.uniform(keys[1], legal.shape), -1.0)
        action = jnp.where(jax.random.bernoulli(keys[2], 0.25), PASS, jnp.argmax(likes, axis=1))
        prior = jax.nn.softmax(jnp.where(legal, likes, -jnp.inf))
        value = jax.random.uniform(keys[3], action.shape, minval=low)
        weights = visits / visits.sum(axis=1, keepdims=True)
        return SearchOutput(action, weights, visits, value, value, None, prior)

    return search


class Move(NamedTuple):
    """A position of a game, and what was played there."""

    planes: np.ndarray
    owners: np.ndarray
    to_play: int
    action: int
    policy: np.ndarray | None
    root_value: float
    surprise: float
    is_random: bool


class Played(NamedTuple):
    """A finished game."""

    moves: list[Move]
    result: np.ndarray
    is_resigned: bool


@jax.jit
def look(states: Any, actions: jax.Array) -> tuple[jax.Array, ...]:
    """Return planes, owners and sides to move, and the rewards after the moves."""
    after = jax.vmap(GO.step)(states, jnp.maximum(actions, 0))
    owners = jax.vmap(GO.owners)(states.frames[:, 0])
    planes, sides = (jax.vmap(method)(states) for method in (GO.observe, GO.to_play))
    return planes, owners, sides, jax.vmap(GO.rewards)(after)


def record(games: list[list[Move]], states: Any, step: Step[np.ndarray]) -> list[Played]:
    """Add a move to every game, and return those that it ended."""
    planes, owners, sides, rewards = map(np.asarray, look(states, step.action.astype(np.int32)))
    ended = []
    for slot, moves in enumerate(games):
        policy = np.zeros(POINTS + 1)
        chosen, visits = split_words(step.policy[slot])
        policy[chosen[visits > 0]] = visits[visits > 0] / visits.sum()
        known = (float(step.root_value[slot]), float(step.surprise[slot]))
        is_random, is_target = bool(step.is_random[slot]), bool(step.is_target[slot])
        place = (planes[slot], owners[slot], int(sides[slot]), int(step.action[slot]))
        moves.append(Move(*place, policy if is_target else None, *known, is_random))
        if step.finished[slot]:
            is_lost = bool(step.resigned[slot])
            loser = np.where(np.arange(2) == sides[slot], -1.0, 1.0)
            ended.append(Played(moves, loser if is_lost else rewards[slot], is_lost))
            games[slot] = []
    return ended


def expect(game: Played, ply: int) -> dict[str, Any]:
    """Work out what is learned from one position: the fields of a batch, before its symmetry."""
    moves, move = game.moves, game.moves[ply]
    to_come = next((at for at in range(ply, len(moves)) if moves[at].is_random), None)
    end = len(moves) if to_come is None else to_come

    def seen(at: int) -> float:
        return moves[at].root_value * (1 if moves[at].to_play == move.to_play else -1)

    value = float(game.result[move.to_play]) if to_come is None else seen(to_come)
    later = []
    for horizon in HORIZONS:
        kept = 1 - 1 / (1 + POINTS * horizon)
        values = [(1 - kept) * kept ** (at - ply) * seen(at) for at in range(ply, end)]
        later.append(sum(values) + kept ** (end - ply) * value)
    mean = np.mean([other.surprise for other in moves if other.policy is not None] or 1.0)
    is_equal = move.policy is None or mean == 0  # with the other positions of the game
    following = moves[ply + 1].policy if ply + 1 < len(moves) else None
    owners = moves[-1].owners * (1.0 if move.to_play == 0 else -1.0)
    nothing = np.zeros(POINTS + 1)
    return {
        "planes": move.planes,
        "weights": nothing if move.policy is None else move.policy,
        "value": value,
        "root_value": move.root_value,
        "later": later,
        "surprise": 1.0 if is_equal else move.surprise / mean,
        "moves_left": (len(moves) - ply) / POINTS,
        "reply": nothing if following is None else following,
        "ownership": owners,
        "margin": owners.sum(),
        "is_scored": to_come is None and not game.is_resigned and moves[-1].action == PASS,
    }


def compare(batch: Batch, wanted: list[dict[str, Any]], symmetry: np.ndarray) -> None:
    found = {**batch._asdict(), **batch.auxiliary._asdict()}  # type: ignore[union-attr]
    for name in wanted[0]:
        values = np.stack([np.asarray(targets[name], np.float32) for targets in wanted])
        if name in ("weights", "reply"):
            values = jax.vmap(GO.transform_policy)(values, symmetry)
        if name in ("planes", "ownership"):
            maps = values if name == "planes" else values[..., None]
            values = np.asarray(jax.vmap(GO.transform_planes)(maps, symmetry)).reshape(values.shape)
        known = [name not in ("ownership", "margin") or each["is_scored"] for each in wanted]
        rounded = 2e-3 if name in ("value", "later", "surprise") else 1e-6  # stored as float16
        np.testing.assert_allclose(
            np.asarray(found[name], np.float32)[known],
            np.asarray(values)[known],
            rtol=rounded,
            atol=rounded,
            err_msg=name,
        )


@pytest.mark.parametrize(
    "settings",
    [
        {
            "resign": False,
            "fast_simulations": 1,
            "full_search_probability": 0.5,
            "archive": "games",
            "random_moves": 6,
            "random_share": 0.2,
            "value_before_random": "search",
        },
        {"played_on_games": 4, "archive": "searches", "temperature_moves": 3},
    ],
    ids=["random moves, fast searches, archive of games", "resigned games, archive of searches"],
)
def test_every_position_gives_what_a_slow_reference_gives(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    config = SelfplayConfig(num_games=12, moves_per_dispatch=1, **settings)
    search, fast = make_search(-1.0), make_search(-0.5)
    cheap = fast if config.played_on_games else None
    mesh = mesh_lib.make_mesh(jax.devices()[:1])
    selfplay = make_selfplay(config, GO, search, fast, mesh, most_visits=99, cheap_search=cheap)
    starts = GO.empty_boards([-2.0, 0.5, 4.0])
    carry = selfplay.init(jax.random.key(0), starts)
    games: list[list[Move]] = [[] for _ in range(config.num_slots)]
    ended: list[Played] = []
    assembler = Assembler(config.num_slots)
    replay = Replay(
        tmp_path, GO, ReplayConfig(WINDOW, 1), POINTS + 1, memory=1 << 20, has_auxiliary=True
    )
    for number in range(60):
        states = jax.tree.map(np.array, carry.states)  # the carry is donated
        key, threshold = jax.random.key(number), jnp.float32(-0.9)
        carry, chunk = selfplay.play({}, carry, key, threshold, starts)
        step = to_host(chunk)
        ended += record(games, states, jax.tree.map(lambda column: column[0], step))
        replay.add(assembler.add(step, network=0))
    assert len(ended) > WINDOW, "games have left the window"
    assert any(game.is_resigned for game in ended) == config.resign
    window = [(game, ply) for game in ended[-WINDOW:] for ply in range(len(game.moves))]
    samples = replay.sample(seed=5, step=2, batch_size=512)
    replay.close()
    random = np.random.default_rng([5, 0, 2])  # seed, process and step
    chosen = random.integers(0, len(window), 512)
    np.testing.assert_array_equal(samples.symmetry, random.integers(0, 4, 512, np.uint8))
    wanted = [expect(*window[number]) for number in chosen]
    assert len({each["is_scored"] for each in wanted}) == 2
    compare(unpack(GO, samples), wanted, samples.symmetry.astype(np.int32))
