"""Games of policies without a search: the moves that a policy chose from, and games that switch
policies and give one position each (AG16).

The games between two policies themselves are those of `azero.match.compiled`, every move sampled.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from azero import mesh as meshes
from azero.games.batching import repeat_state
from azero.games.game import Game
from azero.search.batched.reductions import categorical
from azero.search.search import SearchFn
from azero.selfplay.trajectory import HostArray
from azero.types import Array, PyTree

AllowedFn = Callable[[PyTree], Array]
"""states[B] -> bool[B, A]: the moves that a policy chooses from."""
_CHUNK = 16
"""Moves per compiled call; between two calls the host checks whether all games are over."""


class Trace(NamedTuple):
    """Finished games, replayed."""

    frames: HostArray
    """uint32[T, B, F]: the positions before the moves."""
    allowed: HostArray
    """bool[T, B, A]: what the moves were chosen from."""


def make_tracer(game: Game, allowed_moves: AllowedFn, mesh: Mesh) -> Callable[[HostArray], Trace]:
    """Make the compiled function that replays games int32[B, T] (-1 after the end) from the first
    position; B is divisible by the number of devices."""
    games, chunks = meshes.batch_sharded(mesh), PartitionSpec(None, meshes.DATA_AXIS)

    def move(states: PyTree, actions: Array) -> tuple[PyTree, tuple[Array, Array]]:
        seen = jax.vmap(game.pack_frame)(states), allowed_moves(states)
        played = jax.vmap(game.step)(states, jnp.maximum(actions, 0))
        return played, seen  # a finished game stays as it is

    def chunk(states: PyTree, actions: Array) -> tuple[PyTree, tuple[Array, Array]]:
        return jax.lax.scan(move, states, actions)

    step = jax.jit(
        jax.shard_map(
            chunk,
            mesh=mesh,
            in_specs=(games.spec, chunks),
            out_specs=(games.spec, chunks),
            check_vma=False,
        ),
        donate_argnums=0,
    )
    start = _starter(game, mesh)

    def trace(actions: HostArray) -> Trace:
        count, length = actions.shape
        padded = np.full((-(-length // _CHUNK) * _CHUNK, count), -1, np.int32)
        padded[:length] = actions.T
        states, chunks = start(count), []
        for first in range(0, len(padded), _CHUNK):
            states, seen = step(states, padded[first : first + _CHUNK])
            chunks.append(jax.device_get(seen))
        frames, allowed = (np.concatenate(column)[:length] for column in zip(*chunks, strict=True))
        return Trace(frames, allowed)

    return trace


class Decorrelated(NamedTuple):
    """One position of each of B games, with the result; arrays of the host."""

    frames: HostArray
    """uint32[B, num_frames, F]: the position after the random move and those before it, newest
    first."""
    to_play: HostArray
    """uint8[B]: the side to move there."""
    rewards: HostArray
    """float32[B, 2]: of the first and the second mover."""
    ply: HostArray
    """int32[B]: U, the moves played before the position."""
    is_taken: HostArray
    """bool[B]: False where the game was over before there was such a position."""


class _Carry(NamedTuple):
    states: PyTree
    """[B]"""
    recent: Array
    """uint32[B, num_frames, F]: the newest positions"""
    frames: Array
    """uint32[B, num_frames, F]: `recent` of the position taken"""
    to_play: Array
    """int32[B]: the side to move in it"""
    is_taken: Array
    """bool[B]"""
    ply: Array
    """int32[B]: moves played, the same for all"""
    keys: Array
    """keys[D]"""


_Policy = tuple[SearchFn, PyTree]
"""A search and its parameters."""


def make_decorrelated_games(
    game: Game, first: SearchFn, second: SearchFn, random_moves: AllowedFn, mesh: Mesh
) -> Callable[[PyTree, PyTree, HostArray, Array], Decorrelated]:
    """Make the compiled games that the value network learns from (AG16 methods, 'Value network:
    training').

    The function (first's parameters, second's, U int32[B], key) plays B games in parallel: moves 1
    to U - 1 are drawn from `first`'s policy, move U uniformly from `random_moves`, all others from
    `second`'s policy. A policy is evaluated only while a game on its device needs it, so U should
    be sorted.
    """
    sharded, everywhere = meshes.batch_sharded(mesh), meshes.replicated(mesh)
    start = _starter(game, mesh)

    def chunk(params_first: PyTree, params_second: PyTree, turn: Array, carry: _Carry) -> _Carry:
        policies = (first, params_first), (second, params_second)
        return jax.lax.scan(
            lambda carry, _: (_move(game, *policies, random_moves, turn, carry), None),
            carry,
            None,
            length=_CHUNK,
        )[0]

    specs = (everywhere.spec, everywhere.spec, sharded.spec, sharded.spec)
    play = jax.jit(
        jax.shard_map(chunk, mesh=mesh, in_specs=specs, out_specs=sharded.spec, check_vma=False),
        donate_argnums=3,
    )
    begin = jax.jit(functools.partial(_begin, game), out_shardings=sharded)
    count_over = jax.jit(
        lambda states: jax.vmap(game.is_terminal)(states).sum(), out_shardings=everywhere
    )
    find_rewards = jax.jit(jax.vmap(game.rewards), out_shardings=everywhere)

    def games(
        params_first: PyTree, params_second: PyTree, turn: HostArray, key: Array
    ) -> Decorrelated:
        turn = turn.astype(np.int32)
        carry = begin(start(len(turn)), jax.random.split(key, mesh.size))
        for _ in range(0, game.max_moves, _CHUNK):
            carry = play(params_first, params_second, turn, carry)
            if int(count_over(carry.states)) == len(turn):
                break
        frames, to_play, rewards, is_taken = jax.device_get(
            (carry.frames, carry.to_play, find_rewards(carry.states), carry.is_taken)
        )
        return Decorrelated(frames, to_play.astype(np.uint8), rewards, turn, is_taken)

    return games


def _begin(game: Game, states: PyTree, keys: Array) -> _Carry:
    """Return the games before their first moves."""
    frames = jax.vmap(game.pack_frame)(states)
    nothing = jnp.zeros((len(frames), game.num_frames, game.frame_words), jnp.uint32)
    zeros = jnp.zeros(len(frames), jnp.int32)
    recent = nothing.at[:, 0].set(frames)
    return _Carry(states, recent, nothing, zeros, zeros > 0, zeros, keys)


def _move(
    game: Game, first: _Policy, second: _Policy, random_moves: AllowedFn, turn: Array, carry: _Carry
) -> _Carry:
    """Play one move in every game that is not over."""
    key, first_key, second_key, random_key = jax.random.split(carry.keys[0], 4)
    states, ply = carry.states, carry.ply
    is_on = ~jax.vmap(game.is_terminal)(states)
    is_first, is_random = ply < turn - 1, ply == turn - 1

    def draw(policy: _Policy, key: Array, wanted: Array) -> Array:
        search, params = policy

        def ask(key: Array) -> Array:
            search_key, draw_key = jax.random.split(key)
            return categorical(draw_key, jnp.log(search(params, search_key, states).weights))

        return jax.lax.cond(wanted.any(), ask, lambda key: jnp.zeros(ply.shape, jnp.int32), key)

    by_first = draw(first, first_key, is_on & is_first)
    by_second = draw(second, second_key, is_on & ~is_first & ~is_random)
    at_random = categorical(random_key, jnp.where(random_moves(states), 0.0, -jnp.inf))
    played = jax.vmap(game.step)(
        states, jnp.where(is_first, by_first, jnp.where(is_random, at_random, by_second))
    )
    takes = is_on & is_random & ~jax.vmap(game.is_terminal)(played)
    recent = jnp.concatenate(
        [jax.vmap(game.pack_frame)(played)[:, None], carry.recent[:, :-1]], axis=1
    )
    return _Carry(
        states=played,
        recent=recent,
        frames=jnp.where(takes[:, None, None], recent, carry.frames),
        to_play=jnp.where(takes, jax.vmap(game.to_play)(played), carry.to_play),
        is_taken=carry.is_taken | takes,
        ply=ply + 1,
        keys=key[None],
    )


def make_result_sampler(game: Game, search: SearchFn) -> Callable[[PyTree, Array, PyTree], Array]:
    """Make the compiled function (search's parameters, key, states[B]) -> float32[B] that plays
    every game to its end, all moves drawn from the search's policy, and returns the results for the
    first mover."""

    @jax.jit
    def results(params: PyTree, key: Array, states: PyTree) -> Array:
        def move(carry: tuple[PyTree, Array]) -> tuple[PyTree, Array]:
            states, key = carry
            key, search_key, draw_key = jax.random.split(key, 3)
            weights = search(params, search_key, states).weights
            actions = categorical(draw_key, jnp.log(weights))
            return jax.vmap(game.step)(states, actions), key  # a finished game stays as it is

        end, _ = jax.lax.while_loop(
            lambda carry: ~jax.vmap(game.is_terminal)(carry[0]).all(), move, (states, key)
        )
        return jax.vmap(game.rewards)(end)[:, 0]

    return results


def _starter(game: Game, mesh: Mesh) -> Callable[[int], PyTree]:
    """Return the compiled function count -> states[count] before the first move."""
    return jax.jit(
        lambda count: repeat_state(game.init(), count),
        static_argnums=0,
        out_shardings=meshes.batch_sharded(mesh),
    )
