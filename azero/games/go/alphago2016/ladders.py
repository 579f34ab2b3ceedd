"""Ladder reading (AG16 Extended Data Table 2: "ladder capture", "ladder escape"). Natively
batched: sets of points are rows uint32[H, B].

The paper gives no definition; this is ours, after RocAlphaGo's. The hunter plays the liberties of a
prey that has two, the prey answers on its last liberty, or by capturing any adjacent hunter's chain
in atari. The prey has escaped when it has three liberties after its own move; it is caught when it
has one, or no legal answer that gives it more. Nothing is guessed: both liberties and all answers
are tried, the first point of the board first. Suicide and retaking a ko at once are illegal; older
repetitions are not checked. A prey that is not caught within NODE_LIMIT moves of reading, or with
STACK_LIMIT moves still to try, counts as escaped: the longest ladder across 19x19 takes about 200
moves of reading and 35 such moves.

Reading is a loop over all ladders of all positions of the batch. Each lane follows one ladder, one
move per iteration, and takes the next from the queue when it is done, so that a long ladder keeps
only one lane busy.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from azero.games import bits
from azero.games.batching import batch_native
from azero.games.go.stones import non_suicide_points, place_rows
from azero.types import Array

NODE_LIMIT = 500
"""Moves of reading for one first move (ours)."""
STACK_LIMIT = 64
"""Moves on one line of reading that leave alternatives to try (ours)."""

CPU_LANES = 16
"""Ladders that a CPU core follows at a time (measured)."""


class _Node(NamedTuple):
    """A position of the reading: rows uint32[H, L], L lanes."""

    prey_side: Array
    hunter_side: Array
    atari: Array
    options: Array
    """moves that the side to move still has to try"""


class _Lanes(NamedTuple):
    job: Array
    """int32[L]: index in the queue; the length of the queue where the lane is idle"""
    node: _Node
    prey: Array
    """rows uint32[H, L]: one stone of the prey"""
    hunts: Array
    """bool[L]: the side to move is the hunter"""
    is_fresh: Array
    """bool[L]: the ladder is new, and its first moves are not computed yet"""
    first: Array
    """rows uint32[H, L]: the first move that is being tried; empty before the first"""
    todo: Array
    """rows uint32[H, L]: first moves to try after it"""
    num_nodes: Array
    """int32[L]: moves read after the first"""
    stack_size: Array
    """int32[L]: nodes on the stack"""
    stack: Array
    """uint32[STACK_LIMIT, L, 4H]: nodes of the line being read with moves left to try, the oldest
    first"""
    stack_hunts: Array
    """bool[STACK_LIMIT, L]: whether these are the hunter's moves"""
    next_job: Array
    """int32[]"""
    works: Array
    """bool[2 * B * (N + 1)], by kind, position and point (N is a dummy): whether the first move
    catches, or saves"""


class _Queue(NamedTuple):
    preys: Array
    """int32[Q]: kind, position and stone of the prey in one number, in order; the size of the board
    after the last"""
    size: Array
    """int32[]"""
    positions: Array
    """words uint32[B, 4K]: own, other, atari, legal"""


class Preys(NamedTuple):
    """Positions and their possible preys, each a set of points as words uint32[K]."""

    own: Array
    """of the side to move"""
    other: Array
    atari: Array
    """stones of chains with one liberty"""
    legal: Array
    hunted: Array
    """one stone of every chain of the other side with two liberties"""
    threatened: Array
    """one stone of every own chain with one liberty"""


def find_ladders(preys: Preys, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Return the words uint32[K] of the legal points where the side to move catches a prey in a
    ladder, and where it saves one from being caught.

    For one position; under `vmap` all ladders of the batch share a queue. A CPU follows CPU_LANES
    of them at a time, another device as many as there are positions.
    """
    return batch_native(_find_all, shape, on_cpu=_find_few)(*preys)


def _find_all(shape: tuple[int, int], *arrays: Array) -> tuple[Array, Array]:
    return _find_ladders(shape, len(arrays[0]), Preys(*arrays))


def _find_few(shape: tuple[int, int], *arrays: Array) -> tuple[Array, Array]:
    return _find_ladders(shape, CPU_LANES, Preys(*arrays))


def _find_ladders(shape: tuple[int, int], num_lanes: int, preys: Preys) -> tuple[Array, Array]:
    batch, num_points = preys.own.shape[0], shape[0] * shape[1]
    queue = _make_queue(preys, shape)
    lanes = _start(num_lanes, batch, shape)
    lanes = _take_jobs(lanes, queue, jnp.ones_like(lanes.is_fresh), shape)
    lanes = jax.lax.while_loop(
        lambda lanes: (lanes.job < queue.size).any(),
        lambda lanes: _turn(lanes, queue, shape, batch),
        lanes,
    )
    works = lanes.works.reshape(2, batch, num_points + 1)[:, :, :num_points]
    return bits.pack(works[0]), bits.pack(works[1])


def _make_queue(preys: Preys, shape: tuple[int, int]) -> _Queue:
    num_points = shape[0] * shape[1]
    stones = jnp.stack(
        [bits.unpack(words, num_points) for words in (preys.hunted, preys.threatened)]
    )
    # A stone is in the queue at most once, so the queue is never longer than the points of all
    # boards.
    preys_in_order = jnp.nonzero(stones.reshape(-1), size=stones.size // 2, fill_value=stones.size)[
        0
    ].astype(jnp.int32)
    return _Queue(
        preys_in_order,
        stones.sum(dtype=jnp.int32),
        jnp.concatenate([preys.own, preys.other, preys.atari, preys.legal], axis=1),
    )


def _start(num_lanes: int, batch: int, shape: tuple[int, int]) -> _Lanes:
    none = jnp.zeros((shape[0], num_lanes), jnp.uint32)
    off, zero = jnp.zeros(num_lanes, bool), jnp.zeros(num_lanes, jnp.int32)
    return _Lanes(
        job=zero,
        node=_Node(none, none, none, none),
        prey=none,
        hunts=off,
        is_fresh=off,
        first=none,
        todo=none,
        num_nodes=zero,
        stack_size=zero,
        stack=jnp.zeros((STACK_LIMIT, num_lanes, 4 * shape[0]), jnp.uint32),
        stack_hunts=jnp.zeros((STACK_LIMIT, num_lanes), bool),
        next_job=jnp.int32(0),
        works=jnp.zeros(2 * batch * (shape[0] * shape[1] + 1), bool),
    )


class _Job(NamedTuple):
    """The ladder of each lane."""

    is_escape: Array
    """bool[L]: the side to move is the prey's"""
    position: Array
    """int32[L]"""
    stone: Array
    """int32[L]: a point of the prey"""


def _job(lanes: _Lanes, queue: _Queue, num_points: int) -> _Job:
    batch = queue.positions.shape[0]
    index = queue.preys[jnp.minimum(lanes.job, queue.preys.size - 1)]
    board, stone = jnp.divmod(index, num_points)
    kind, position = jnp.divmod(board, batch)
    return _Job(kind == 1, position, stone)


def _root(job: _Job, queue: _Queue, shape: tuple[int, int]) -> tuple[_Node, Array]:
    """Return the positions of the lanes before the first move, without moves to try, and the legal
    points, rows uint32[H, L]."""
    own, other, atari, legal = (
        bits.rows_from_words(words, shape)
        for words in jnp.split(queue.positions[job.position].T, 4)
    )
    swapped = job.is_escape[None]
    return _Node(
        jnp.where(swapped, own, other), jnp.where(swapped, other, own), atari, jnp.zeros_like(own)
    ), legal


def _take_jobs(lanes: _Lanes, queue: _Queue, is_done: Array, shape: tuple[int, int]) -> _Lanes:
    """Give the next ladders of the queue to the lanes that are done."""
    rank = jnp.cumsum(is_done, dtype=jnp.int32)
    lanes = lanes._replace(
        job=jnp.where(is_done, jnp.minimum(lanes.next_job + rank - 1, queue.size), lanes.job),
        next_job=jnp.minimum(lanes.next_job + rank[-1], queue.size),
    )
    job = _job(lanes, queue, shape[0] * shape[1])
    root, _ = _root(job, queue, shape)
    return lanes._replace(
        node=_select(is_done, root, lanes.node),
        prey=jnp.where(is_done, bits.point_rows(job.stone, shape), lanes.prey),
        hunts=jnp.where(is_done, ~job.is_escape, lanes.hunts),
        is_fresh=lanes.is_fresh | is_done,
        first=bits.where(~is_done[None], lanes.first),
        todo=bits.where(~is_done[None], lanes.todo),
    )


def _turn(lanes: _Lanes, queue: _Queue, shape: tuple[int, int], batch: int) -> _Lanes:
    """Play one move in every lane and process the result."""
    node, is_fresh = lanes.node, lanes.is_fresh
    move = bits.lowest(node.options)
    is_first = ~is_fresh & bits.is_empty(lanes.first)
    rest = node.options & ~move
    lanes = lanes._replace(
        first=jnp.where(is_first[None], move, lanes.first),
        todo=jnp.where(is_first[None], rest, lanes.todo),
        num_nodes=jnp.where(is_first | is_fresh, 0, lanes.num_nodes + 1),
        stack_size=jnp.where(is_first | is_fresh, 0, lanes.stack_size),
    )
    lanes = _push(lanes, node._replace(options=rest), ~is_first & ~is_fresh & ~bits.is_empty(rest))
    hunts = jnp.where(is_fresh, lanes.hunts, ~lanes.hunts)
    job = _job(lanes, queue, shape[0] * shape[1])
    _, legal = _root(job, queue, shape)
    node, hunter_wins, prey_wins = _play(node, lanes, move, hunts, legal, shape)
    has_no_move = bits.is_empty(node.options)
    is_long = ~is_fresh & ((lanes.num_nodes >= NODE_LIMIT) | (lanes.stack_size >= STACK_LIMIT))
    prey_wins = ~is_fresh & (is_long | prey_wins | (~hunter_wins & has_no_move & hunts))
    hunter_wins = ~is_fresh & ~prey_wins & (hunter_wins | (has_no_move & ~hunts))
    lanes = lanes._replace(node=node, hunts=hunts, is_fresh=jnp.zeros_like(is_fresh))
    lanes, is_over = _return(lanes, hunter_wins, prey_wins, is_long)

    works = jnp.where(job.is_escape, prey_wins, hunter_wins) & is_over & (lanes.job < queue.size)
    return _finish(lanes, queue, job, works, is_over | (is_fresh & has_no_move), shape, batch)


def _play(
    node: _Node, lanes: _Lanes, move: Array, hunts: Array, legal: Array, shape: tuple[int, int]
) -> tuple[_Node, Array, Array]:
    """Play `move` and return the node after it, with the moves of the hunter where `hunts`, else of
    the prey, and whether the hunter, or the prey, has won."""
    board = bits.board_rows(shape)
    by_hunter = lanes.hunts[None]
    own, other = (
        jnp.where(by_hunter, node.hunter_side, node.prey_side),
        jnp.where(by_hunter, node.prey_side, node.hunter_side),
    )
    placed = place_rows(own, other, node.atari, move, board)
    is_ko = (
        bits.counts_one(placed.captured)
        & bits.is_empty(bits.neighbours(move) & own)
        & ~bits.is_empty(move & placed.atari)
    )
    prey_side, hunter_side = (
        jnp.where(by_hunter, placed.other, placed.own),
        jnp.where(by_hunter, placed.own, placed.other),
    )

    empty = board & ~(prey_side | hunter_side)
    prey = bits.flood(lanes.prey, prey_side)
    liberties = bits.neighbours(prey) & empty
    number = bits.count_points(liberties)
    hunters = bits.flood(bits.neighbours(prey) & hunter_side & placed.atari, hunter_side)
    wanted = liberties | bits.where(~hunts[None], bits.neighbours(hunters) & empty)
    to_move, waiting = (
        jnp.where(hunts[None], hunter_side, prey_side),
        jnp.where(hunts[None], prey_side, hunter_side),
    )
    lives = non_suicide_points(to_move, waiting, placed.atari, board) & ~bits.where(
        is_ko[None], placed.captured
    )
    options = wanted & jnp.where(lanes.is_fresh[None], legal, lives)
    return (
        _Node(prey_side, hunter_side, placed.atari, options),
        hunts & (number == 1),
        hunts & (number >= 3),
    )


def _push(lanes: _Lanes, node: _Node, is_pushed: Array) -> _Lanes:
    """Push the node of the lanes that have more moves to try there."""
    lane = jnp.arange(is_pushed.shape[0], dtype=jnp.int32)
    place = jnp.where(is_pushed, lanes.stack_size, STACK_LIMIT)
    return lanes._replace(
        stack=lanes.stack.at[place, lane].set(jnp.concatenate(node).T, mode="drop"),
        stack_hunts=lanes.stack_hunts.at[place, lane].set(lanes.hunts, mode="drop"),
        stack_size=lanes.stack_size + is_pushed.astype(jnp.int32),
    )


def _return(
    lanes: _Lanes, hunter_wins: Array, prey_wins: Array, is_long: Array
) -> tuple[_Lanes, Array]:
    """Where a side has won, go back to the last node at which the other side has more moves to try.
    Also return where there is none, so that the first move is decided."""
    is_decided = hunter_wins | prey_wins
    level = jnp.arange(STACK_LIMIT, dtype=jnp.int32)[:, None]
    fits = (level < lanes.stack_size[None]) & (lanes.stack_hunts == prey_wins[None])
    last = jnp.where(fits, level, -1).max(axis=0)
    is_over = is_decided & ((last < 0) | is_long)
    goes_back = is_decided & ~is_over
    lane = jnp.arange(last.shape[0], dtype=jnp.int32)
    last_node = _Node(*jnp.split(lanes.stack[jnp.maximum(last, 0), lane].T, 4))
    lanes = lanes._replace(
        node=_select(goes_back, last_node, lanes.node),
        hunts=jnp.where(goes_back, prey_wins, lanes.hunts),
        stack_size=jnp.where(goes_back, last, lanes.stack_size),
    )
    return lanes, is_over


def _finish(
    lanes: _Lanes,
    queue: _Queue,
    job: _Job,
    works: Array,
    is_over: Array,
    shape: tuple[int, int],
    batch: int,
) -> _Lanes:
    """Store the results of decided first moves; continue with the next first move, or with the next
    ladder."""
    num_points = shape[0] * shape[1]
    point = jnp.where(works, bits.first_point(lanes.first, shape), num_points)
    is_done = is_over & bits.is_empty(lanes.todo)
    again = is_over & ~is_done
    root, _ = _root(job, queue, shape)
    lanes = lanes._replace(
        works=lanes.works.at[
            (job.is_escape.astype(jnp.int32) * batch + job.position) * (num_points + 1) + point
        ].max(works),
        node=_select(again, root._replace(options=lanes.todo), lanes.node),
        hunts=jnp.where(again, ~job.is_escape, lanes.hunts),
        first=bits.where(~again[None], lanes.first),
    )
    return _take_jobs(lanes, queue, is_done & (lanes.job < queue.size), shape)


def _select(condition: Array, new: _Node, old: _Node) -> _Node:
    return jax.tree.map(lambda a, b: jnp.where(condition[None], a, b), new, old)
