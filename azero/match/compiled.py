"""A match between two players, many games in parallel on the devices.

Half of the games begin with A to move and half with B, so at every move each player searches
exactly one half: no position is searched for the wrong player, and both searches always see the
same batch size. After each move the halves change hands. If the requested games do not fill the
halves on all devices, extra games are played and not counted.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from azero import mesh as meshes
from azero.games.batching import repeat_state
from azero.games.game import Game
from azero.match.score import MatchResult, Tally
from azero.search.batched.reuse import NewTreesFn
from azero.search.search import PreviousSearch, SearchFn
from azero.selfplay.temperature import choose
from azero.types import Array, PyTree


@dataclass(frozen=True)
class MatchGames:
    """The games of a match as host arrays. Game i of the first half and game i of the second have
    the same opening and the other colours; of an odd number of games the first half has one more.
    """

    rewards: np.ndarray
    """float32[B]: +1, 0 or -1 for player A."""
    lengths: np.ndarray
    """int32[B]: moves played after the opening."""
    actions: np.ndarray
    """int32[B, T]: the moves after the opening, -1 after the end."""
    values: np.ndarray
    """float32[B, T]: the root value for the side to move, 0 after the end."""
    a_moves_first: np.ndarray
    """bool[B]: A has the first mover's colour (Black); without openings this is the first half."""

    @property
    def result(self) -> MatchResult:
        """The games counted by colour."""
        return MatchResult(
            Tally.of(self.rewards[self.a_moves_first]), Tally.of(self.rewards[~self.a_moves_first])
        )


class _Carry(NamedTuple):
    """Everything is split over the devices along the first axis. H is half of the games that are
    played, a multiple of the devices."""

    a_to_move: PyTree
    """states[H]"""
    b_to_move: PyTree
    """states[H]"""
    ply: Array
    """int32[H], including the opening; the same in both halves"""
    keys: Array
    """keys[D]"""
    a_recent: Array
    """int32[H, 2]: the last two moves of the games in `a_to_move`, -1 before there are any"""
    b_recent: Array
    """int32[H, 2]: those of the games in `b_to_move`"""
    trees: PyTree
    """Trees with leading axes [D, player, half, ...] if both players have one search, otherwise a
    pair of trees, one per player. None where every search starts a new tree. A half is fixed here:
    A starts with the first."""


class _Moves(NamedTuple):
    """The moves of one player in its half of the games; B here is half the match."""

    action: Array
    """int32[B], -1 where the game was over"""
    value: Array
    """float32[B]"""


class _Turn(NamedTuple):
    """A player's move in its half of the games."""

    player: Array
    """int32[]: 0 is A, 1 is B"""
    recent: Array
    params: PyTree
    key: Array
    states: PyTree


TreeMakers = tuple[NewTreesFn | None, NewTreesFn | None]
"""Makers of A's and of B's trees."""


def make_match(
    game: Game,
    search_a: SearchFn,
    search_b: SearchFn,
    num_games: int,
    *,
    temperature_moves: int = 0,
    moves_per_chunk: int = 8,
    mesh: Mesh | None = None,
    new_trees: TreeMakers = (None, None),
) -> "Match":
    """Make a compiled match of `num_games` games between two searches, each with parameters of its
    own.

    The first `temperature_moves` moves of a game are drawn from the search's weights, which is what
    makes the games differ; the rest are the search's choice (AlphaGo Zero's evaluator plays at
    temperature 0 throughout and gets its variety from random symmetries). The result depends on the
    key and on the number of devices, each of which has its own stream of random numbers. Games that
    are over wait for the others.

    Args:
      game: the rules.
      search_a: A's search. Where both searches are one object it is compiled only once, and both
        sets of parameters must have the same shapes.
      search_b: B's search.
      num_games: how many games count, whatever the number of devices; of an odd number A begins one
        more.
      temperature_moves: moves at temperature 1 at the start of each game.
      moves_per_chunk: moves per dispatch, rounded up to an even number; between two dispatches the
        host checks whether all games are over.
      mesh: the devices; None is the default device alone.
      new_trees: of A and of B, makes the trees of a search that keeps them from move to move; None
        where every search starts a new one. With one search both are of one kind.

    Raises:
      ValueError: `num_games` is below one.
    """
    mesh = meshes.make_mesh([jax.local_devices()[0]]) if mesh is None else mesh
    if num_games < 1:
        raise ValueError(f"a match has at least 1 game, not {num_games}")
    length = moves_per_chunk + moves_per_chunk % 2
    think = functools.partial(_think, game, search_a, search_b, temperature_moves)
    pairs = -(-num_games // 2)
    half = -(-pairs // mesh.size) * mesh.size
    counted = np.concatenate([np.arange(pairs), half + np.arange(num_games - pairs)])
    start_trees = _tree_starter(new_trees, search_a is search_b, mesh)
    return Match(
        game, *_compile(game, think, start_trees, half, length, mesh), counted, half, length, mesh
    )


@dataclass(frozen=True)
class Match:
    """Plays a match; made by `make_match`."""

    game: Game
    start: Callable[..., Any]
    chunk: Any
    """As `jax.jit` gives it."""
    status: Callable[..., Any]
    counted: np.ndarray
    """int64[B]: which of the 2 H games that are played count."""
    half: int
    length: int
    """Moves per dispatch."""
    mesh: Mesh

    def __call__(
        self,
        params_a: PyTree,
        params_b: PyTree,
        key: Array,
        on_chunk: Callable[[int, int], None] | None = None,
        openings: np.ndarray | None = None,
    ) -> MatchGames:
        """Play all games to the end. `on_chunk` is called with moves played and games finished
        between two dispatches. `openings` int32[ceil(B / 2), L] are legal moves that each pair of
        games begins with, -1 after the last one."""
        given = np.full((self.half, 0 if openings is None else openings.shape[1]), -1, np.int32)
        if openings is not None:
            given[: len(openings)] = openings
        # The side to move after the opening: A in the first half.
        even = (given >= 0).sum(axis=1) % 2 == 0
        a_moves_first = np.concatenate([even, ~even])
        carry = self.start(jax.random.split(key, self.mesh.size), given)
        pieces: list[tuple[np.ndarray, np.ndarray]] = []
        for moves_played in range(self.length, self.game.max_moves + self.length, self.length):
            carry, moves = self.chunk(params_a, params_b, carry)
            actions, values, rewards, over = (
                column[self.counted]
                for column in jax.device_get(self.status(carry, moves, a_moves_first))
            )
            pieces.append((actions, values))
            if on_chunk is not None:
                on_chunk(moves_played, int(over.sum()))
            if over.all():
                break
        else:
            raise RuntimeError(
                f"{self.game.name}: games are not over after {self.game.max_moves} moves, "
                f"which the game gives as its longest"
            )
        actions, values = (np.concatenate(column, axis=1) for column in zip(*pieces, strict=True))
        lengths = (actions >= 0).sum(axis=1).astype(np.int32)
        longest = int(lengths.max())
        return MatchGames(
            np.sign(rewards),  # a network's own rewards may count the margin; a match does not
            lengths,
            actions[:, :longest],
            values[:, :longest],
            a_moves_first[self.counted],
        )

    def trace(self, params_a: PyTree, params_b: PyTree) -> Any:
        """Trace the program that plays a chunk of moves, as a match without openings runs it, on
        arrays or shapes of parameters; what is wrong with it shows here.

        Returns:
          jax.stages.Traced, which can be lowered and compiled.
        """
        split, everywhere = meshes.batch_sharded(self.mesh), meshes.replicated(self.mesh)
        keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), self.mesh.size))
        carry = jax.eval_shape(self.start, keys, jax.ShapeDtypeStruct((self.half, 0), np.int32))
        return self.chunk.trace(
            meshes.shapes(params_a, everywhere),
            meshes.shapes(params_b, everywhere),
            meshes.shapes(carry, split),
        )


def replay(game: Game, actions: Array) -> PyTree:
    """Return states[B] after the moves int32[B, T] of games from their beginning; -1 is no move."""

    def play(state: PyTree, action: Array) -> PyTree:
        played = game.step(state, jnp.maximum(action, 0))
        return jax.tree.map(lambda new, old: jnp.where(action >= 0, new, old), played, state)

    states = repeat_state(game.init(), len(actions))
    if not actions.shape[1]:
        return states
    return jax.lax.scan(
        lambda states, column: (jax.vmap(play)(states, column), None), states, actions.T
    )[0]


def _compile(
    game: Game,
    think: Callable[..., Any],
    start_trees: Callable[[int], PyTree],
    half: int,
    length: int,
    mesh: Mesh,
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return the compiled start, chunk of moves, and collection of what the host needs to know."""
    games, everywhere = meshes.batch_sharded(mesh), meshes.replicated(mesh)
    # Each device plays its own games: no collective. Only `status` gathers, once per chunk and
    # after it.
    sharded = jax.shard_map(
        functools.partial(_play_chunk, think, length),
        mesh=mesh,
        in_specs=(everywhere.spec, everywhere.spec, games.spec),
        out_specs=games.spec,
        check_vma=False,
    )
    return (
        jax.jit(functools.partial(_start, game, start_trees, half), out_shardings=games),
        jax.jit(sharded, donate_argnums=2),
        jax.jit(functools.partial(_status, game), out_shardings=everywhere),
    )


def _start(
    game: Game, start_trees: Callable[[int], PyTree], half: int, keys: Array, openings: Array
) -> _Carry:
    """Return all games after their openings int32[half, T], the same for both halves."""
    states = replay(game, openings)
    ply, recent = (openings >= 0).sum(axis=1, dtype=jnp.int32), jnp.full((half, 2), -1, jnp.int32)
    return _Carry(states, states, ply, keys, recent, recent, start_trees(half))


def _play_chunk(
    think: Callable[..., Any], length: int, params_a: PyTree, params_b: PyTree, carry: _Carry
) -> tuple[_Carry, tuple[_Moves, _Moves]]:
    """Play `length` moves, an even number; return those of the first and of the second half, arrays
    [H, length]."""
    carry, (a_moves, b_moves) = jax.lax.scan(
        lambda carry, step: think(params_a, params_b, carry, step),
        carry,
        jnp.arange(length, dtype=jnp.int32),
    )
    # At even moves A has the first half of the games, at odd moves the second.
    even = (jnp.arange(length) % 2 == 0)[:, None]
    first = jax.tree.map(lambda a, b: jnp.where(even, a, b).T, a_moves, b_moves)
    second = jax.tree.map(lambda a, b: jnp.where(even, b, a).T, a_moves, b_moves)
    return carry, (first, second)


def _status(
    game: Game, carry: _Carry, moves: tuple[_Moves, _Moves], a_moves_first: Array
) -> tuple[Array, Array, Array, Array]:
    """Return the actions and values of all games, A's rewards, and which games are over."""
    both = jnp.concatenate(
        [jax.vmap(game.rewards)(carry.a_to_move), jax.vmap(game.rewards)(carry.b_to_move)]
    )
    rewards = jnp.where(a_moves_first, both[:, 0], both[:, 1])
    over = jnp.concatenate(
        [jax.vmap(game.is_terminal)(carry.a_to_move), jax.vmap(game.is_terminal)(carry.b_to_move)]
    )
    first, second = moves
    return (
        jnp.concatenate([first.action, second.action]),
        jnp.concatenate([first.value, second.value]),
        rewards,
        over,
    )


def _tree_starter(
    new_trees: TreeMakers, is_one_search: bool, mesh: Mesh
) -> Callable[[int], PyTree]:
    """Return the function half -> `_Carry.trees` at the start of a match."""

    def start(half: int) -> PyTree:
        trees = [make and make(half // mesh.size) for make in new_trees]
        players = 2 if is_one_search else 1
        a, b = (
            jax.tree.map(
                lambda leaf: jnp.broadcast_to(leaf, (mesh.size, players, 2, *leaf.shape)), tree
            )
            for tree in trees
        )
        return a if is_one_search else (a, b)

    return start


def _think(
    game: Game,
    search_a: SearchFn,
    search_b: SearchFn,
    temperature_moves: int,
    params_a: PyTree,
    params_b: PyTree,
    carry: _Carry,
    step: Array,
) -> tuple[_Carry, tuple[_Moves, _Moves]]:
    """Let both players move in their half of the games, and swap the halves. At even steps A has
    the first half."""
    take_turn = functools.partial(_take_turn, game, temperature_moves, carry.ply, step)
    key, key_a, key_b = jax.random.split(carry.keys[0], 3)
    a = _Turn(jnp.int32(0), carry.a_recent, params_a, key_a, carry.a_to_move)
    b = _Turn(jnp.int32(1), carry.b_recent, params_b, key_b, carry.b_to_move)
    if search_a is search_b:
        both = jax.tree.map(lambda *pair: jnp.stack(pair), a, b)
        trees, played = jax.lax.scan(functools.partial(take_turn, search_a), carry.trees, both)
        (a_moves, a_states), (b_moves, b_states) = (
            jax.tree.map(lambda leaf, i=i: leaf[i], played) for i in range(2)
        )
    else:
        a_trees, (a_moves, a_states) = take_turn(search_a, carry.trees[0], a)
        b_trees, (b_moves, b_states) = take_turn(search_b, carry.trees[1], b)
        trees = (a_trees, b_trees)
    a_recent, b_recent = (
        jnp.stack([recent[:, 1], moves.action], axis=1)
        for recent, moves in ((carry.a_recent, a_moves), (carry.b_recent, b_moves))
    )
    after = _Carry(b_states, a_states, carry.ply + 1, key[None], b_recent, a_recent, trees)
    return after, (a_moves, b_moves)


def _take_turn(
    game: Game,
    temperature_moves: int,
    ply: Array,
    step: Array,
    search: SearchFn,
    trees: PyTree,
    turn: _Turn,
) -> tuple[PyTree, tuple[_Moves, PyTree]]:
    """Let one player move, and keep its trees of this half, if it has any.

    Returns:
      The trees; the moves and the states after them.
    """
    move = functools.partial(_move, game, temperature_moves, ply, search, turn)
    if trees is None:
        return None, move(None)[:2]

    def index(leaf: Array) -> tuple[Array | int, ...]:
        # Where the trees are of one player, the slices begin at 0: JAX clamps the index.
        return (0, turn.player, (step + turn.player) % 2, *[0] * (leaf.ndim - 3))

    def read(leaf: Array) -> Array:
        shape = leaf.shape[3:]
        return jax.lax.dynamic_slice(leaf, index(leaf), (1, 1, 1, *shape)).reshape(shape)

    def write(leaf: Array, new: Array) -> Array:
        return jax.lax.dynamic_update_slice(leaf, new[None, None, None], index(leaf))

    moves, states, tree = move(PreviousSearch(jax.tree.map(read, trees), turn.recent))
    return jax.tree.map(write, trees, tree), (moves, states)


def _move(
    game: Game,
    temperature_moves: int,
    ply: Array,
    search: SearchFn,
    turn: _Turn,
    previous: PreviousSearch | None,
) -> tuple[_Moves, PyTree, PyTree]:
    """Search a player's half of the games and play its moves.

    Returns:
      The moves, the states after them, and the trees; None where they are not kept.
    """
    search_key, choice_key = jax.random.split(turn.key)
    kept = () if previous is None else (previous,)
    output = search(turn.params, search_key, turn.states, *kept)
    action = choose(choice_key, output.weights, output.action, ply, temperature_moves)
    over = jax.vmap(game.is_terminal)(turn.states)
    moves = _Moves(jnp.where(over, -1, action), jnp.where(over, 0.0, output.value))
    tree = None if previous is None else output.tree
    return moves, jax.vmap(game.step)(turn.states, action), tree
