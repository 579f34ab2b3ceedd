"""Evaluates positions of one tree with a leaf: batches of a few fixed sizes over all local devices,
symmetries, and a cache."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from azero import mesh as meshes
from azero.games.game import Game
from azero.search.leaf import SymmetryLeafFn
from azero.search.single.leaves import NetworkLeaves
from azero.search.single.node import Evaluation
from azero.search.single.packed import (
    PackedPosition,
    PackedPositions,
    PackedRules,
    pad_rows,
    states_of,
    unpack_state,
)
from azero.search.single.store import Store
from azero.types import Array, PyTree

Symmetries = Literal["random", "average", "none"]
"""How a position is evaluated: under one symmetry drawn at random, averaged over all of them (as
many evaluations), or as it is."""


_MOST_MOVES = 400
"""Legal moves of a node in estimates of memory: more than Go's 362, and far more than the usual
number in chess and shogi."""


HostNetwork = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""A network outside XLA: planes float32[B, H, W, C] -> (logits float32[B, A], value
float32[B])."""


_Answers = tuple[np.ndarray, np.ndarray]
"""(logits or policies float[B, A], values float[B])"""


class Counts(NamedTuple):
    """Calls of the leaf so far."""

    calls: int
    positions: int
    """Every symmetry counts."""
    seconds: float
    """Spent waiting for results."""


class Evaluator:
    """Evaluates packed positions, and caches the most recently used evaluations."""

    def __init__(
        self,
        game: Game,
        leaf: SymmetryLeafFn,
        params: PyTree,
        *,
        batch: int,
        symmetry: Symmetries,
        cache_size: int,
        seed: int,
        smallest: int = 1,
        mesh: Mesh | None = None,
        network: HostNetwork | None = None,
    ) -> None:
        """Make an evaluator.

        Args:
          game: whose states the leaf evaluates; only the rules that the leaf sees matter (not the
            komi).
          leaf: the leaf; it is compiled for one position and for `batch`, on a CPU also for half of
            `batch`: a call takes time in proportion there, and the first batches of a search are
            not full (`TreeSettings.batch_after`).
          params: its parameters, on the host or on any device.
          batch: positions of a full call, split over the devices.
          symmetry: see `Symmetries`.
          cache_size: evaluations that are cached; 0 is none.
          seed: of the symmetries drawn and of the leaf's own random numbers.
          smallest: positions of the smallest program, at most `batch`; fewer are padded.
          mesh: the devices; None is all of this host. The number used divides `batch`.
          network: evaluates the planes outside XLA; `params` of the leaf are then what it returns.
        """
        devices = list(
            (meshes.make_mesh(jax.local_devices()) if mesh is None else mesh).devices.flat
        )
        sizes = {1, batch} | ({batch // 2} if devices[0].platform == "cpu" and batch > 2 else set())
        sizes = {size for size in sizes if size >= min(smallest, batch)}
        self.counts = Counts(0, 0, 0.0)
        self.num_symmetries = game.num_symmetries
        self._symmetry = symmetry
        self._cache: OrderedDict[bytes, tuple[np.ndarray, float]] = OrderedDict()
        """Priors of the legal moves, and the value, by the content of the position."""
        self._cache_size = cache_size
        self._random = np.random.default_rng(seed)
        self._programs: dict[int, Callable[[int, np.ndarray, np.ndarray], tuple[Array, Array]]]
        if network is not None:
            self._programs = dict.fromkeys(sizes, _ExternalProgram(game, leaf, network))
        else:
            splits = {size: _split_mesh(devices, size) for size in sizes}
            placed = {
                mesh: jax.device_put(params, meshes.replicated(mesh)) for mesh in splits.values()
            }
            self._programs = {
                size: _Program(game, leaf, placed[mesh], seed, mesh)
                for size, mesh in splits.items()
            }
        self._largest = max(self._programs)

    def leaves(self, rules: PackedRules, edge_width: int | None = None) -> NetworkLeaves:
        """Return the evaluator of the leaves of one tree; see `LeafEvaluator`."""
        del rules
        return NetworkLeaves(self.begin, edge_width)

    def node_bytes(self, state_bytes: int, num_actions: int) -> int:
        """Return about how much memory a node takes."""
        return state_bytes + Store.bytes_of(moves=min(num_actions, _MOST_MOVES), edges=4)

    def begin(self, positions: PackedPositions) -> Callable[[], _Answers]:
        """Begin to evaluate; the function that is returned waits for the policies float32[P, A]
        over the legal moves and the values float64[P].

        They come from the cache where possible; equal positions are evaluated once.
        """
        policies = np.zeros(positions.legal.shape, np.float32)
        values = np.empty(len(policies))
        missing: dict[bytes, int] = {}
        again = []
        contents = np.ascontiguousarray(positions.contents)
        for i, content in enumerate(contents.view(f"V{contents[0].nbytes}")[:, 0].tolist()):
            known = self._cached(content)
            if known is not None:
                policies[i, positions.legal[i]], values[i] = known
            elif missing.setdefault(content, i) != i:
                again.append((i, missing[content]))
        rows = np.fromiter(missing.values(), int, len(missing))
        wait = self._begin_missing(positions.take(rows)) if missing else None

        def finish() -> _Answers:
            if wait is not None:
                policies[rows], values[rows] = wait()
            for i, first in again:
                policies[i], values[i] = policies[first], values[first]
            if self._cache_size:
                for content, i in missing.items():
                    self._store(content, (policies[i, positions.legal[i]], float(values[i])))
            return policies, values

        return finish

    def view(self, position: PackedPosition, symmetry: int | None) -> Evaluation:
        """Return the evaluation of `position` under one symmetry, or the mean over all of them
        where `symmetry` is None; nothing is cached."""
        wanted = range(self.num_symmetries) if symmetry is None else [symmetry]
        states, legal = states_of([position] * len(wanted)), position.legal
        (policy,), (value,) = self.evaluate_uncached(states, legal[None], np.array(wanted))
        actions = np.flatnonzero(legal)
        return Evaluation.ordered(actions, policy[actions], float(value), policy.size)

    def own_policy(self, priors: np.ndarray) -> np.ndarray:
        """Return the priors."""
        return priors

    def warm_up_in_steps(self, position: PackedPosition) -> Iterator[int]:
        """Compile the leaf for its batch sizes, one a step, the smallest first; yield each.

        A size that has not been compiled is not used meanwhile.
        """
        sizes = sorted(self._programs)
        self._largest = sizes[0]
        for size in sizes:
            self._programs[size](0, pad_rows(states_of([position]), size), np.zeros(size, np.int32))
            self._largest = size
            yield size

    def _begin_missing(self, positions: PackedPositions) -> Callable[[], _Answers]:
        """Begin to evaluate positions, with the symmetries of the settings."""
        states, count = positions.states, len(positions.states)
        if self._symmetry == "average":
            symmetries = np.tile(np.arange(self.num_symmetries), count)
            states = states.repeat(self.num_symmetries, axis=0)
        elif self._symmetry == "random":
            symmetries = self._random.integers(0, self.num_symmetries, count)
        else:
            symmetries = np.zeros(count, int)
        return self.begin_uncached(states, positions.legal, symmetries)

    def evaluate_uncached(
        self, states: np.ndarray, legal: np.ndarray, symmetries: np.ndarray
    ) -> _Answers:
        """Return the leaf's policies float32[P, A] over the legal moves bool[P, A], and its values
        float32[P], in calls of the fixed sizes; nothing is cached.

        Args:
          states: uint32[P V, W], the packed state of every position V times in a row. As in
            `averaged_network_leaf` its logits and its value are the means of V evaluations.
          legal: the legal moves of every position.
          symmetries: of every evaluation, int[P V].
        """
        return self.begin_uncached(states, legal, symmetries)()

    def begin_uncached(
        self, states: np.ndarray, legal: np.ndarray, symmetries: np.ndarray
    ) -> Callable[[], _Answers]:
        """Begin what `evaluate_uncached` does; the function that is returned waits for it."""
        began, calls = time.perf_counter(), self.counts.calls
        chunks, largest = [], self._largest
        for start in range(0, len(states), largest):
            chunk = states[start : start + largest]
            size = next(size for size in sorted(self._programs) if size >= len(chunk))
            symmetry = np.zeros(size, np.int32)
            symmetry[: len(chunk)] = symmetries[start : start + largest]
            calls += 1
            chunks.append(self._programs[size](calls, pad_rows(chunk, size), symmetry))
        self._count(calls, len(states), began)

        def finish() -> _Answers:
            began = time.perf_counter()
            answers = jax.device_get(chunks)
            self._count(self.counts.calls, 0, began)
            logits, values = (
                np.concatenate(column)[: len(states)].reshape(len(legal), -1, *column[0].shape[1:])
                for column in zip(*answers, strict=True)
            )
            return legal_policies(logits.mean(axis=1), legal), values.mean(axis=1)

        return finish

    def _count(self, calls: int, positions: int, began: float) -> None:
        self.counts = Counts(
            calls,
            self.counts.positions + positions,
            self.counts.seconds + time.perf_counter() - began,
        )

    def _cached(self, content: bytes) -> tuple[np.ndarray, float] | None:
        evaluation = self._cache.get(content)
        if evaluation is not None:
            self._cache.move_to_end(content)
        return evaluation

    def _store(self, content: bytes, evaluation: tuple[np.ndarray, float]) -> None:
        self._cache[content] = evaluation
        if len(self._cache) > self._cache_size:
            self._cache.popitem(last=False)


def _split_mesh(devices: list[jax.Device], size: int) -> Mesh:
    """Return the mesh of the most `devices` that share `size` positions evenly."""
    most = min(len(devices), size)
    used = next(count for count in range(most, 0, -1) if size % count == 0)
    return meshes.make_mesh(devices[:used])


class _Program:
    """The leaf, compiled for one batch size over the devices of `mesh`, which hold `params`."""

    def __init__(
        self, game: Game, leaf: SymmetryLeafFn, params: PyTree, seed: int, mesh: Mesh
    ) -> None:
        def evaluate(
            params: PyTree, call: Array, rows: Array, symmetry: Array
        ) -> tuple[Array, Array]:
            key = jax.random.fold_in(
                jax.random.fold_in(jax.random.key(seed), call), jax.lax.axis_index(meshes.DATA_AXIS)
            )
            states = jax.vmap(lambda row: unpack_state(game, row))(rows)
            logits, values = leaf(params, key, states, symmetry)
            return logits.astype(jnp.float32), values.astype(jnp.float32)

        everywhere, split = meshes.replicated(mesh), meshes.batch_sharded(mesh)
        placing = (everywhere, everywhere, split, split)
        specs = tuple(sharding.spec for sharding in placing)
        # Every device evaluates its own positions: no collective.
        sharded = jax.shard_map(
            evaluate, mesh=mesh, in_specs=specs, out_specs=split.spec, check_vma=False
        )
        self._function = jax.jit(sharded, in_shardings=placing, out_shardings=split)
        self._params = params

    def __call__(self, call: int, rows: np.ndarray, symmetry: np.ndarray) -> tuple[Array, Array]:
        """Begin to compute logits float32[B, A] and values float32[B] of packed states uint32[B,
        W]; `call` numbers the random draws."""
        logits, values = self._function(self._params, np.uint32(call), rows, symmetry)
        return logits, values


class _ExternalProgram:
    """The leaf with a network outside XLA: XLA makes the planes, and reads the outputs."""

    def __init__(self, game: Game, leaf: SymmetryLeafFn, network: HostNetwork) -> None:
        def states_of(rows: Array) -> PyTree:
            return jax.vmap(lambda row: unpack_state(game, row))(rows)

        def planes(rows: Array, symmetry: Array) -> Array:
            seen = jax.vmap(game.observe)(states_of(rows))
            if game.num_symmetries > 1:
                seen = jax.vmap(game.transform_planes)(seen, symmetry)
            return seen.astype(jnp.float32)

        def read(outputs: PyTree, rows: Array, symmetry: Array) -> tuple[Array, Array]:
            return leaf(outputs, jax.random.key(0), states_of(rows), symmetry)

        self._planes, self._read, self._network = jax.jit(planes), jax.jit(read), network

    def __call__(self, call: int, rows: np.ndarray, symmetry: np.ndarray) -> tuple[Array, Array]:
        """Return logits float32[B, A] and values float32[B] of packed states uint32[B, W]."""
        del call
        outputs = self._network(np.asarray(self._planes(rows, symmetry)))
        return self._read(outputs, rows, symmetry)


def legal_policies(logits: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """Return the softmax float32[P, A] of logits over the moves of `legal` bool[P, A]."""
    masked = np.where(legal, logits, -np.inf)
    odds = np.exp(masked - masked.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)
