"""Positions on the host as rows of words, and the rules that step many of them in one call.

A tree on the host holds hundreds of thousands of slim states. As rows of one array they are
gathered and stored together, and equal positions are equal rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from azero import mesh as meshes
from azero.games.game import Game, PlayedOnHost, Scored
from azero.types import Array, PyTree
from azero.xla_flags import jaxlib_contains

_DIGEST_WORDS = 4
"""Words of 32 bits in the digest of a position: two of a hundred million positions share one with a
probability of about 1e-23."""
_DIGEST_SEED = 20171019
_SPLIT = 32
"""Fewest positions for each device; with fewer, another device does not pay (measured on two
cores)."""
_FEW = 8
"""Up to so many positions, another program for one position costs more at the start of an engine
than it saves later (docs/speed-changes.md, "Start-up")."""
_Describe = Callable[[Any, PyTree], Any]
_Step = Callable[[Any, Any, Any], Any]


class PackedPosition(NamedTuple):
    """A slim state, and its facts by the rules."""

    state: bytes
    """All arrays of the slim state, one after the other."""
    content: bytes
    """Digest of the slim state, which decides planes, legal moves and side to move, and so an
    evaluation."""
    to_play: int
    is_terminal: bool
    result: float
    """For the first mover of the game; zero until the end."""
    legal: np.ndarray
    """bool[A]"""


class PackedPositions(NamedTuple):
    """Slim states, and their facts by the rules."""

    states: np.ndarray
    """uint32[P, W]: see `PackedPosition.state`; the same holds for the others."""
    contents: np.ndarray
    """uint32[P, 4]"""
    to_play: np.ndarray
    """int[P]"""
    is_terminal: np.ndarray
    """bool[P]"""
    results: np.ndarray
    """float64[P]"""
    legal: np.ndarray
    """bool[P, A]"""

    @classmethod
    def of(cls, positions: Sequence[PackedPosition]) -> PackedPositions:
        """Return single positions as rows."""
        return cls(
            states_of(positions),
            np.frombuffer(b"".join(p.content for p in positions), np.uint32).reshape(
                len(positions), -1
            ),
            np.array([p.to_play for p in positions]),
            np.array([p.is_terminal for p in positions]),
            np.array([p.result for p in positions]),
            np.stack([p.legal for p in positions]),
        )

    def take(self, rows: np.ndarray) -> PackedPositions:
        """Return the positions of `rows`, int or bool as NumPy takes them."""
        return PackedPositions(*(column[rows] for column in self))

    def unstack(self) -> list[PackedPosition]:
        """Return the single positions."""
        return [
            PackedPosition(
                self.states[i].tobytes(),
                self.contents[i].tobytes(),
                int(self.to_play[i]),
                bool(self.is_terminal[i]),
                float(self.results[i]),
                self.legal[i],
            )
            for i in range(len(self.states))
        ]


class PackedRules:
    """The rules of one game over packed positions.

    They run on the host's CPU wherever there is such a backend: the work is small, and a round trip
    to an accelerator would cost more than all of it.
    """

    def __init__(self, game: Game, batch: int) -> None:
        """Make the rules of `game` for calls with up to `batch` positions.

        A large batch has another program for one position. Each is compiled at its first call, once
        for all values of komi and of the other rules that are arguments of a program. A game that
        the host can play needs no program for one position: at 19x19 that takes 0.2 ms, a call of a
        program 0.7 ms.
        """
        self.game = game
        self._host = game if isinstance(game, PlayedOnHost) else None
        self._arguments = game.arguments() if isinstance(game, Scored) else None
        general = game.general() if isinstance(game, Scored) else game
        self._describe, step = _compiled(general)
        devices = _num_devices(batch)
        self._steps = {batch: step if devices == 1 else _split_step(general, devices)}
        if batch > _FEW:
            self._steps[1] = step

    def pack(self, state: PyTree) -> PackedPosition:
        """Return the packed position of `state`, of a real game or of a search tree; its legal
        moves are those of a search tree."""
        slim = jax.device_get(self.game.search_state(state))
        if self._host is not None:
            return _packed_on_host(self._host, slim)
        return self._to_positions(self._describe(self._arguments, slim), 1).unstack()[0]

    def step(
        self, positions: Sequence[PackedPosition], actions: Sequence[int]
    ) -> list[PackedPosition]:
        """Return the positions after playing one action in each of `positions`; at most `batch` of
        them."""
        return self.step_states(states_of(positions), actions).unstack()

    def step_states(
        self, states: np.ndarray, actions: Sequence[int] | np.ndarray
    ) -> PackedPositions:
        """Return the positions after playing one action in each of uint32[P, W]; at most `batch`
        of them."""
        count = len(states)
        if count == 1 and self._host is not None:
            before = unpack_on_host(self.game, states[0])
            after = _packed_on_host(self._host, self._host.host_step(before, int(actions[0])))
            return PackedPositions.of([after])
        size = next(size for size in sorted(self._steps) if size >= count)
        moves = np.zeros(size, np.int32)
        moves[:count] = actions
        facts = self._steps[size](self._arguments, pad_rows(states, size), moves)
        return self._to_positions(facts, count)

    def _to_positions(self, facts: tuple[Array, Array], count: int) -> PackedPositions:
        """Return the first `count` positions that a program described."""
        words, legal = (array[:count] for array in jax.device_get(facts))
        state_end, digest_end = words.shape[1] - _DIGEST_WORDS - 3, words.shape[1] - 3
        is_terminal, outcomes = words[:, -2] != 0, words[:, -1].view(np.float32)
        results = np.zeros(count)
        for i in np.flatnonzero(is_terminal):
            results[i] = self.result_of(float(outcomes[i]))
        return PackedPositions(
            words[:, :state_end],
            words[:, state_end:digest_end],
            words[:, -3],
            is_terminal,
            results,
            legal,
        )

    def result_of(self, outcome: float) -> float:
        """Return the first mover's result from the outcome of a finished game: its points where the
        game is scored, else the result itself."""
        return self.game.result_of(outcome) if isinstance(self.game, Scored) else outcome


def _packed_on_host(game: PlayedOnHost, slim: PyTree) -> PackedPosition:
    """Return the packed position of a slim state, equal to that of the compiled programs."""
    words = np.concatenate(
        [np.asarray(leaf).reshape(-1).view(np.uint32) for leaf in jax.tree.leaves(slim)]
    )
    facts = game.host_facts(slim)
    return PackedPosition(
        words.tobytes(),
        _digest(words, np).tobytes(),
        facts.to_play,
        facts.is_over,
        facts.rewards[0],
        facts.legal,
    )


def unpack_on_host(game: Hashable, words: np.ndarray) -> PyTree:
    """Return the slim states uint32[..., W] of a game that the host can play as NumPy arrays."""
    leaves, structure = jax.tree.flatten(_slim_shape(game))
    arrays = [
        np.ascontiguousarray(part).view(leaf.dtype).reshape((*words.shape[:-1], *leaf.shape))
        for part, leaf in zip(np.split(words, _ends(leaves), axis=-1), leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, arrays)


def states_of(positions: Sequence[PackedPosition]) -> np.ndarray:
    """Return the packed states as uint32[P, W]."""
    joined = b"".join(position.state for position in positions)
    return np.frombuffer(joined, np.uint32).reshape(len(positions), -1)


def pad_rows(rows: np.ndarray, size: int) -> np.ndarray:
    """Return the rows [P, W] as [size, W]: repeated as often as needed."""
    return rows if len(rows) == size else np.resize(rows, (size, *rows.shape[1:]))


def unpack_state(game: Game, words: Array) -> PyTree:
    """Return the slim state that uint32[W] holds. Traced code."""
    leaves, structure = jax.tree.flatten(_slim_shape(game))
    parts = jnp.split(words, _ends(leaves))
    return jax.tree.unflatten(structure, map(_from_words, parts, leaves))


def _ends(leaves: Sequence[jax.ShapeDtypeStruct]) -> np.ndarray:
    """Return where the words of each leaf but the last one end."""
    return np.cumsum([leaf.size for leaf in leaves])[:-1]


@functools.lru_cache(maxsize=8)
def _slim_shape(game: Hashable) -> PyTree:
    known = cast(Game, game)
    return jax.eval_shape(lambda: known.search_state(known.init()))


def _to_words(array: Array) -> Array:
    """Return uint32[size], one word for each entry of an array with entries of at most four
    bytes."""
    if array.dtype.itemsize < 4:
        array = array.astype(
            jnp.float32 if jnp.issubdtype(array.dtype, jnp.floating) else jnp.int32
        )
    return jax.lax.bitcast_convert_type(array, jnp.uint32).reshape(-1)


def _from_words(words: Array, leaf: jax.ShapeDtypeStruct) -> Array:
    """Undo `_to_words`."""
    if leaf.dtype.itemsize < 4:
        wide = jax.lax.bitcast_convert_type(
            words, jnp.float32 if jnp.issubdtype(leaf.dtype, jnp.floating) else jnp.int32
        )
        return wide.astype(leaf.dtype).reshape(leaf.shape)
    return jax.lax.bitcast_convert_type(words, leaf.dtype).reshape(leaf.shape)


@functools.lru_cache(maxsize=8)
def _digest_factors(num_words: int) -> np.ndarray:
    return np.random.default_rng(_DIGEST_SEED).integers(
        1 << 32, size=(_DIGEST_WORDS, num_words), dtype=np.uint32
    )


def _digest(words: Any, numpy: Any = jnp) -> Any:
    """Return uint32[_DIGEST_WORDS], computed by jnp or NumPy: sums of products of `words` uint32[n]
    with random numbers, as Zobrist's hashing sums random numbers of set points."""
    factors = _digest_factors(words.shape[0])
    # Products keep only the low bits of such words as 1.0f, so their high bits are folded down
    # first; zero stays zero.
    mixed = (words ^ (words >> 16)) * numpy.uint32(0x85EBCA6B)
    mixed = mixed ^ (mixed >> 13)
    return (factors * mixed[None]).sum(axis=1, dtype=numpy.uint32)


@functools.lru_cache(maxsize=8)
def _compiled(hashable_game: Hashable) -> tuple[_Describe, _Step]:
    """Return the functions of `_programs`, compiled for the host's CPU."""
    describe, step = _programs(hashable_game)
    placed = _on_host()
    return jax.jit(describe, **placed), jax.jit(step, **placed)


def _num_devices(batch: int) -> int:
    """Return over how many devices of the host's CPU steps of `batch` positions are split."""
    try:
        most = len(jax.local_devices(backend="cpu"))
    except RuntimeError:
        return 1
    most = max(1, min(most, batch // _SPLIT))
    return next(count for count in range(most, 0, -1) if batch % count == 0)


@functools.lru_cache(maxsize=8)
def _split_step(hashable_game: Hashable, num_devices: int) -> _Step:
    """Return the second function of `_programs`, each device stepping its own positions."""
    mesh = meshes.make_mesh(jax.local_devices(backend="cpu")[:num_devices])
    everywhere, split = meshes.replicated(mesh), meshes.batch_sharded(mesh)
    placing = (everywhere, split, split)
    step = jax.shard_map(
        _programs(hashable_game)[1],
        mesh=mesh,
        in_specs=tuple(sharding.spec for sharding in placing),
        out_specs=split.spec,
        check_vma=False,
    )
    return jax.jit(step, in_shardings=placing, out_shardings=split)


def _programs(hashable_game: Hashable) -> tuple[_Describe, _Step]:
    """Return two functions, one that describes a slim state and one that steps many packed
    ones; both take the rules' arguments first, None where there are none.

    Both return two arrays: words uint32[B, W + _DIGEST_WORDS + 3], the state, its digest, the side
    to move, whether the game is over, and the outcome (points of a game that is scored, else the
    first mover's reward); and the legal moves bool[B, A].
    """
    general = cast(Game, hashable_game)

    def under(arguments: Array | None) -> Game:
        return general if arguments is None else cast(Scored, general).with_arguments(arguments)

    def outcome(game: Game, state: PyTree) -> Array:
        return game.final_points(state) if isinstance(game, Scored) else game.rewards(state)[0]

    def pack(game: Game, state: PyTree) -> tuple[Array, Array]:
        words = jnp.concatenate([_to_words(leaf) for leaf in jax.tree.leaves(state)])
        facts = (
            _to_words(game.to_play(state)),
            _to_words(game.is_terminal(state)),
            _to_words(outcome(game, state)),
        )
        return jnp.concatenate([words, _digest(words), *facts]), game.legal_action_mask(state)

    def describe(arguments: Array | None, state: PyTree) -> tuple[Array, Array]:
        words, legal = pack(under(arguments), state)
        return words[None], legal[None]

    def step(arguments: Array | None, words: Array, action: Array) -> tuple[Array, Array]:
        game = under(arguments)
        return pack(game, game.step(unpack_state(general, words), action))

    # One position per leaf of the tree: here the batch is born.
    return describe, jax.vmap(step, in_axes=(None, 0, 0))


def _on_host() -> dict[str, Any]:
    """Return the arguments of `jax.jit` that place a program on the host's CPU; none where JAX was
    started without it.

    With XLA's older emitters of fusions, which jaxlib 0.12 has no more, the rules of few positions
    compile in half the time, and a call takes as long (docs/speed-changes.md, "Start-up").
    """
    try:
        device = jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return {}
    emitters = "xla_cpu_use_fusion_emitters"
    return {
        "compiler_options": {emitters: False} if jaxlib_contains(f"\0{emitters}\0") else {},
        "in_shardings": SingleDeviceSharding(device),
        "out_shardings": SingleDeviceSharding(device),
    }
