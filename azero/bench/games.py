"""Speed of the rules: random play with the legal mask at every step and automatic restart, compared
with other engines in the same run."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import tyro

from azero.config import check_range
from azero.console.tables import make_table
from azero.console.terminal import make_console
from azero.games.batching import repeat_state
from azero.games.game import Game
from azero.games.table import make
from azero.search.batched.tree import state_bytes
from azero.types import Array, PyTree

CHUNK = 25
"""Moves in one call of the compiled loop."""
PARTS = 16
"""Number of chunks of the actions from which a random move is drawn."""


@dataclass(frozen=True)
class Contest:
    """A game that is measured."""

    game: str
    """name in the table of games"""
    options: dict[str, Any]
    pgx: str
    """Pgx's name of it"""
    warm_moves: int
    """moves before timing starts, so that positions are from the middle of games"""
    batches: dict[str, tuple[int, ...]]
    """batch sizes on a CPU, by engine; the best of them counts"""

    def build(self) -> Game:
        """Make the game."""
        return make(self.game, **self.options)


CONTESTS = {
    "go 9x9": Contest("go", {"size": 9}, "go_9x9", 60, {"azero": (128, 256, 1024), "pgx": (512,)}),
    "go 19x19": Contest("go", {"size": 19}, "go_19x19", 200, {"azero": (128, 256), "pgx": (64,)}),
    "shogi": Contest("shogi", {}, "shogi", 100, {"azero": (128, 256), "pgx": (64, 256)}),
    "minichess": Contest(
        "minichess", {}, "gardner_chess", 40, {"azero": (256, 1024), "pgx": (256,)}
    ),
    "animal_shogi": Contest(
        "animal_shogi", {}, "animal_shogi", 40, {"azero": (256, 1024), "pgx": (256,)}
    ),
    "chess": Contest("chess", {}, "chess", 100, {"azero": (128, 256, 1024), "pgx": (64, 256)}),
}
"""By the names in the table that is printed."""


@dataclass(frozen=True)
class RulesEngine:
    """The functions of an engine that the benchmark calls, for one game under `vmap`."""

    name: str
    init: Callable[[Array], PyTree]
    """key -> state"""
    advance: Callable[[PyTree, Array], tuple[PyTree, Array, Array]]
    """(state, action) -> (state, over bool[], rewards float32[2])"""
    mask: Callable[[PyTree], Array]
    """state -> legal mask bool[A]"""


ACCELERATOR_BATCHES = (1024, 8192)
"""Batch sizes on GPUs and TPUs, for every game and engine."""


def engine_of(game: Game) -> RulesEngine:
    """Return our rules of `game`: the exact state of a real game."""

    def advance(state: PyTree, action: Array) -> tuple[PyTree, Array, Array]:
        state = game.step(state, action)
        return state, game.is_terminal(state), game.rewards(state)

    return RulesEngine("azero", lambda key: game.init(), advance, game.legal_action_mask)


def pgx_engine(contest: Contest) -> RulesEngine:
    """Return Pgx's rules.

    Raises:
      ValueError: Pgx is not installed.
    """
    try:
        import pgx
    except ImportError as error:
        raise ValueError("Pgx is not installed: pip install 'azero[peers]'") from error
    return _environment("pgx", pgx.make(contest.pgx))


def environment_engine(contest: Contest) -> RulesEngine:
    """Return our rules with Pgx's interface (`azero.interop.pgx`).

    Raises:
      ValueError: Pgx is not installed.
    """
    from azero.interop.pgx import make

    return _environment("azero as pgx.Env", make(contest.pgx))


def _environment(name: str, env: Any) -> RulesEngine:
    """Return the rules of a Pgx environment. The planes, which its step also computes, are replaced
    by zeros, so that the compiler drops them."""

    def forget(state: Any) -> Any:
        return state.replace(observation=jnp.zeros_like(state.observation))

    def advance(state: Any, action: Array) -> tuple[PyTree, Array, Array]:
        state = forget(env.step(state, action))
        return state, state.terminated, state.rewards

    return RulesEngine(
        name, lambda key: forget(env.init(key)), advance, lambda state: state.legal_action_mask
    )


def draw(mask: Array, word: Array) -> Array:
    """Return a random legal action int32[] of mask bool[A]: the one with the largest hash of itself
    and the random `word` uint32[].

    The action stands in the low bits of what is compared, so that a plain maximum finds it: XLA
    does not vectorise an argmax on a CPU, and that took six times as long over the 4,672 moves of
    chess. Nor does it vectorise a maximum over one axis: PARTS of the actions are compared with
    each other first.
    """
    num_actions = mask.shape[0]
    width = -(-num_actions // PARTS)
    low = jnp.uint32((1 << (num_actions - 1).bit_length()) - 1)

    def scores(first: int) -> Array:
        action = jnp.arange(first, first + width, dtype=jnp.uint32)
        score = (action ^ word) * jnp.uint32(0x9E3779B1)
        score = (score ^ (score >> 15)) * jnp.uint32(0x85EBCA6B)
        return jnp.where(mask[first : first + width], (score & ~low) | action, jnp.uint32(0))

    # The last parts overlap where the number of actions is not a multiple of PARTS.
    best = functools.reduce(
        jnp.maximum,
        [scores(min(first, num_actions - width)) for first in range(0, num_actions, width)],
    )
    return (best.max() & low).astype(jnp.int32)


def random_positions(game: Game, batch: int, moves: int, key: Array) -> PyTree:
    """Return states[B] after `moves` random legal moves."""

    def move(state: PyTree, word: Array) -> PyTree:
        return game.step(state, draw(game.legal_action_mask(state), word))

    words = jax.random.bits(key, (moves, batch))
    first = repeat_state(game.init(), batch)
    return jax.lax.scan(lambda states, row: (jax.vmap(move)(states, row), None), first, words)[0]


def spread_games(engine: RulesEngine, batch: int, plies: int, key: Array) -> PyTree:
    """Return states[B] after 0 to `plies` - 1 random moves, each game as many as it drew; none of
    them is over.

    Games that all begin together also end together; measurements would then see only openings or
    only endings.
    """
    start_key, length_key, move_key = jax.random.split(key, 3)
    lengths = jax.random.randint(length_key, (batch,), 0, plies)

    def move(state: PyTree, length: Array, word: Array, ply: Array) -> PyTree:
        stepped, over, _ = engine.advance(state, draw(engine.mask(state), word))
        return jax.tree.map(
            lambda old, new: jnp.where((ply < length) & ~over, new, old), state, stepped
        )

    def turn(states: PyTree, inputs: tuple[Array, Array]) -> tuple[PyTree, None]:
        words, ply = inputs
        return jax.vmap(move, in_axes=(0, 0, 0, None))(states, lengths, words, ply), None

    first = jax.vmap(engine.init)(jax.random.split(start_key, batch))
    return jax.lax.scan(
        turn, first, (jax.random.bits(move_key, (plies, batch)), jnp.arange(plies))
    )[0]


def measure(
    engine: RulesEngine, batch: int, warm_moves: int, seconds: float = 5.0
) -> dict[str, Any]:
    """Return steps per second of `batch` games after `warm_moves` moves, the bytes of a state, and
    the seconds to compile."""
    first = engine.init(jax.random.key(0))
    games = jax.tree.map(lambda a: jnp.repeat(a[None], batch, axis=0), (first, engine.mask(first)))
    started = time.perf_counter()
    play = (
        jax.jit(functools.partial(_play, engine), donate_argnums=0)
        .lower(games, first, jax.random.key(1))
        .compile()
    )
    compile_seconds = time.perf_counter() - started
    for index in range(-(-warm_moves // CHUNK)):
        games, total = play(games, first, jax.random.key(index))
    total.block_until_ready()
    moves, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        games, total = play(games, first, jax.random.key(1000 + moves))
        total.block_until_ready()
        moves += CHUNK
    rate = moves * batch / (time.perf_counter() - started)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(first))
    return {
        "engine": engine.name,
        "batch": batch,
        "steps_per_second": rate,
        "bytes": size,
        "compile_seconds": compile_seconds,
    }


def _play(engine: RulesEngine, games: PyTree, fresh: PyTree, key: Array) -> tuple[PyTree, Array]:
    """Play CHUNK random moves in every game, starting again where one ends. Return the games and
    the sum of the rewards (so that they are computed)."""

    def move(carry: tuple[PyTree, Array], word: Array) -> tuple[tuple[PyTree, Array], Array]:
        state, mask = carry
        state, over, rewards = engine.advance(state, draw(mask, word))
        state = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, state)
        return (state, engine.mask(state)), rewards[0]

    words = jax.random.bits(key, (CHUNK, games[1].shape[0]))
    games, rewards = jax.lax.scan(lambda carry, word: jax.vmap(move)(carry, word), games, words)
    return games, rewards.sum()


def run(
    against: str | None = None, names: Sequence[str] = tuple(CONTESTS), seconds: float = 5.0
) -> list[dict[str, Any]]:
    """Measure our rules of the games `names`, and with `against` "pgx" also Pgx and ours as
    environments of Pgx, print a table, and return its rows.

    Raises:
      ValueError: Pgx is not installed, or a name is not one of CONTESTS.
    """
    makers = {
        "azero": lambda contest: engine_of(contest.build()),
        "environment": environment_engine,
        "pgx": pgx_engine,
    }
    if unknown := [name for name in names if name not in CONTESTS]:
        raise ValueError(f"unknown game {unknown[0]!r}; the games are: {', '.join(CONTESTS)}")
    engines = ["azero"] if against is None else list(makers)
    rows = []
    for name in names:
        contest = CONTESTS[name]
        for engine_name in engines:
            engine = makers[engine_name](contest)
            batches = (
                contest.batches["pgx" if engine_name == "pgx" else "azero"]
                if jax.default_backend() == "cpu"
                else ACCELERATOR_BATCHES
            )
            measured = [measure(engine, batch, contest.warm_moves, seconds) for batch in batches]
            rows.append({"game": name, **max(measured, key=lambda row: row["steps_per_second"])})
        for row in rows[-len(engines) :]:
            row["ratio"] = row["steps_per_second"] / rows[-1]["steps_per_second"]
            is_ours = row["engine"] == "azero"
            row["tree_bytes"] = state_bytes(contest.build()) if is_ours else row["bytes"]
    _print(rows, against)
    return rows


def _print(rows: list[dict[str, Any]], against: str | None) -> None:
    command = "azero bench games" + (f" --against {against}" if against else "")
    columns = ("game", "engine", "batch", "steps/s", "ratio", "bytes", "in a tree", "compile s")
    lines = [
        (
            row["game"],
            row["engine"],
            row["batch"],
            f"{row['steps_per_second']:,.0f}",
            f"{row['ratio']:.1f}",
            row["bytes"],
            row["tree_bytes"],
            f"{row['compile_seconds']:.1f}",
        )
        for row in rows
    ]
    table = make_table(
        "Random play, legal mask at every step, automatic restart", columns, lines, 2
    )
    table.caption = f"{command}   on {jax.devices()[0].device_kind}"
    make_console().print(table)


@dataclass(frozen=True)
class GamesArguments:
    """Time the rules of games in random play."""

    against: Literal["pgx"] | None = None
    """Another engine, measured in the same run."""
    game: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Only this game; may be given several times."""
    seconds: float = 5.0
    """Seconds of measuring for every line."""


def main(arguments: list[str]) -> None:
    """Print the table of `run`; `--help` lists the arguments."""
    chosen = tyro.cli(GamesArguments, args=arguments)
    check_range(chosen, "--", "seconds", 0, above=True)
    names = [name.replace("-", "_") for name in chosen.game]
    run(chosen.against, names or tuple(CONTESTS), chosen.seconds)
