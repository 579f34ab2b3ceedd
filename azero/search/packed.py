"""Positions on the host as strings of bytes, and the rules that step many of them in one call.

A tree on the host holds hundreds of thousands of slim states. As bytes each is one object, batches are joined and cut without a copy per array, and equal
positions are equal strings.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from azero.games.game import Game
from azero.types import Array, PyTree

_DIGEST_BYTES = 16
"""Two of 2^32 positions share a digest of so many bytes with a probability below 1e-19."""


class PackedPosition(NamedTuple):
    """A slim state, and what the rules say of it."""

    state: bytes
    """All arrays of the slim state, one after the other."""
    content: bytes
    """Digest of what decides an evaluation: the planes, the legal moves and the side to move."""
    to_play: int
    is_terminal: bool
    result: float
    """For the first mover of the game; zero until the end."""
    legal: np.ndarray
    """bool[A]"""


class PackedRules:
    """The rules of one game over packed positions.

    They run on the host's CPU wherever there is such a backend: the work is small, and a round trip to an accelerator would cost more than all of it.
    """

    def __init__(self, game: Game, batch: int) -> None:
        """Make the rules of `game` for calls with one position and with up to `batch`; each of the two sizes is compiled at its first call."""
        self.game = game
        self._sizes = sorted({1, batch})
        self._look, self._step = _compiled(cast(Hashable, game))

    def pack(self, state: PyTree) -> PackedPosition:
        """Return the position of `state`, of a real game or of a search tree; `legal` is what a search tree sees."""
        return _unbatch(self._look(jax.device_get(state)), 1)[0]

    def step(self, positions: Sequence[PackedPosition], actions: Sequence[int]) -> list[PackedPosition]:
        """Return the positions after playing one action in each of `positions`; at most `batch` of them."""
        count = len(positions)
        size = next(size for size in self._sizes if size >= count)
        rows = pad_rows([position.state for position in positions], size)
        moves = np.zeros(size, np.int32)
        moves[:count] = actions
        return _unbatch(self._step(rows, moves), count)


def pad_rows(states: Sequence[bytes], size: int) -> np.ndarray:
    """Return packed states as uint8[size, S], the last rows copies of the first."""
    padded = [*states, *([states[0]] * (size - len(states)))]
    return np.frombuffer(b"".join(padded), np.uint8).reshape(size, -1)


def unpack_state(game: Game, row: Array) -> PyTree:
    """Return the slim state that uint8[S] holds. Traced code."""
    leaves, structure = jax.tree.flatten(_slim_shape(cast(Hashable, game)))
    arrays, begin = [], 0
    for leaf in leaves:
        end = begin + leaf.size * leaf.dtype.itemsize
        arrays.append(_from_bytes(row[begin:end], leaf))
        begin = end
    return jax.tree.unflatten(structure, arrays)


def _pack_state(state: PyTree) -> Array:
    return jnp.concatenate([_to_bytes(leaf) for leaf in jax.tree.leaves(state)])


@functools.lru_cache(maxsize=8)
def _slim_shape(game: Hashable) -> PyTree:
    known = cast(Game, game)
    return jax.eval_shape(lambda: known.search_state(known.init()))


def _to_bytes(array: Array) -> Array:
    if array.dtype == jnp.bool_:
        return array.reshape(-1).astype(jnp.uint8)
    return jax.lax.bitcast_convert_type(array, jnp.uint8).reshape(-1)


def _from_bytes(row: Array, leaf: jax.ShapeDtypeStruct) -> Array:
    if leaf.dtype == jnp.bool_:
        return (row != 0).reshape(leaf.shape)
    if leaf.dtype.itemsize == 1:
        return jax.lax.bitcast_convert_type(row, leaf.dtype).reshape(leaf.shape)
    return jax.lax.bitcast_convert_type(row.reshape(*leaf.shape, leaf.dtype.itemsize), leaf.dtype)


@functools.lru_cache(maxsize=8)
def _compiled(hashable_game: Hashable) -> tuple[Callable[[PyTree], Any], Callable[[np.ndarray, np.ndarray], Any]]:
    """Return the compiled look at one state and the compiled step of many packed ones."""
    game = cast(Game, hashable_game)

    def describe(state: PyTree) -> tuple[Array, ...]:
        planes, legal, to_play = game.observe(state), game.legal_action_mask(state), game.to_play(state)
        shown = jnp.packbits(planes.reshape(-1)) if planes.dtype == jnp.bool_ else _to_bytes(planes)
        content = jnp.concatenate([shown, jnp.packbits(legal), to_play.astype(jnp.uint8)[None]])
        return _pack_state(state), content, to_play, game.is_terminal(state), game.rewards(state)[0], legal

    def look(state: PyTree) -> tuple[Array, ...]:
        return tuple(fact[None] for fact in describe(game.search_state(state)))

    def step(row: Array, action: Array) -> tuple[Array, ...]:
        return describe(game.step(unpack_state(game, row), action))

    placed = _on_host()
    # One position per leaf of the tree: here the batch is born.
    return jax.jit(look, **placed), jax.jit(jax.vmap(step), **placed)


def _on_host() -> dict[str, Any]:
    """Return the arguments of `jax.jit` that place a program on the host's CPU; none where JAX was started without it."""
    try:
        device = jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return {}
    return {"in_shardings": SingleDeviceSharding(device), "out_shardings": SingleDeviceSharding(device)}


def _unbatch(facts: tuple[Array, ...], count: int) -> list[PackedPosition]:
    states, contents, to_play, is_terminal, results, legal = jax.device_get(facts)
    return [
        PackedPosition(
            states[i].tobytes(),
            hashlib.blake2b(contents[i].tobytes(), digest_size=_DIGEST_BYTES).digest(),
            int(to_play[i]),
            bool(is_terminal[i]),
            float(results[i]),
            legal[i],
        )
        for i in range(count)
    ]
