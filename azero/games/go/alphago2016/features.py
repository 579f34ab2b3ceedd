"""The input planes of AlphaGo (2016): 48 for the policy network, and the colour to play as the 49th
for the value network.

Source: AG16 Extended Data Table 2. Choices the paper leaves open (as in RocAlphaGo if possible):
    order        stone colour 3 (own, other, empty), ones 1, turns since 8, liberties 8,
                 capture size 8, self-atari size 8, liberties after move 8, ladder capture 1,
                 ladder escape 1, sensibleness 1, zeros 1, player colour 1: the first 4, 12 and 20
                 planes are those of the ablations
    numbers      plane i of eight is n = i + 1, the last one n >= 8; for the capture size plane i is
                 n = i, the last one n >= 7
    turns since  n = 1 is the other side's last move; handicap and set-up stones count as played
                 when they were set up; nothing on empty points
    moves        capture size, self-atari size, liberties after move, ladders and sensibleness are
                 zero where a move is illegal, and plane 0 of capture size is "legal, no capture";
                 suicide is never counted as legal, as in the games the paper learns from
    self-atari   the stones of the move's own chain where it is left with one liberty, else nothing
    ladders      see `azero.games.go.alphago2016.ladders`; an escape may also be the capture of a
                 stone of the ladder
    eyes         an empty point whose neighbours are all own stones, and which has at most one of
                 the other side's stones on its diagonals, none on the edge
    superko      is seen as far back as the eight boards of the packed position go
"""

import functools

import jax.numpy as jnp

from azero.games import bits
from azero.games.batching import batch_native
from azero.games.go.alphago2016.ladders import Preys, find_ladders
from azero.games.go.groups import LEVELS, Chains, find_chains, find_moves, self_atari
from azero.games.go.stones import Stones, colour_rows, legal_rows, sum_codes
from azero.types import Array

NUM_POLICY_PLANES = 48
NUM_VALUE_PLANES = 49
LADDER_PLANE = 44
"""The first of the two planes of ladders."""
PLANE_COUNTS = (4, 12, 20, NUM_POLICY_PLANES, NUM_VALUE_PLANES)
"""Numbers of planes, from the first, that a network can have as input (AG16 Extended Data Table
3)."""


def planes_from_frames(
    frames: Array, to_play: Array, shape: tuple[int, int], checked: Array, num_planes: int
) -> Array:
    """Return the first `num_planes` planes bool[H, W, C] of a position.

    `frames` is uint32[8, 2K], newest first, Black's words before White's; `to_play` int32[] the
    side to move; `checked` bool[8] says which of the frames must not be recreated.
    """
    words, preys = batch_native(_planes, shape, num_planes)(frames, to_play, checked)
    if preys is not None:
        caught, saved = find_ladders(preys, shape)
        words = jnp.concatenate(
            [words[:LADDER_PLANE], caught[None], saved[None], words[LADDER_PLANE:]]
        )
    return bits.unpack(words, shape[0] * shape[1]).T.reshape(*shape, num_planes)


def _planes(
    shape: tuple[int, int], num_planes: int, frames: Array, to_play: Array, checked: Array
) -> tuple[Array, Preys | None]:
    """Return the planes without those of ladders as words uint32[B, C, K], and the input for
    those."""
    sides = colour_rows(shape, frames, to_play == 1)
    own, other = sides[0][:, 0], sides[1][:, 0]
    board = bits.board_rows(shape)
    everywhere = jnp.broadcast_to(board, own.shape)
    planes = [own, other, board & ~(own | other), everywhere]
    if num_planes > 4:
        planes += _turns_since(sides)
    if num_planes > 12:
        chains = find_chains(own, other, board)
        planes += _one_hot(chains.levels, own | other)
    if num_planes <= 20:
        return bits.words_from_rows(jnp.stack(planes, axis=1), shape).transpose(2, 1, 0), None
    legal = _legal(sides, chains.atari, checked, shape)
    planes += [*_move_planes(own, other, chains, legal, board), jnp.zeros_like(own)]
    if num_planes > NUM_POLICY_PLANES:
        planes.append(bits.where((to_play == 0)[None], everywhere))
    for_ladders = Preys(own, other, chains.atari, legal, chains.hunted, chains.threatened)
    words = bits.words_from_rows(jnp.stack([*planes, *for_ladders], axis=1), shape).transpose(
        2, 1, 0
    )
    return words[:, : len(planes)], Preys(*jnp.unstack(words[:, len(planes) :], axis=1))


def _legal(
    sides: tuple[Array, Array], atari: Array, checked: Array, shape: tuple[int, int]
) -> Array:
    """Return rows of the legal points; `sides` are rows uint32[H, 8, B] of the side to move and of
    the other."""
    own_sums, other_sums = (sum_codes(side, shape).T for side in sides)
    return legal_rows(
        Stones(shape),
        sides[0][:, 0],
        sides[1][:, 0],
        atari,
        own_sums - own_sums[:, :1],
        other_sums[:, :1] - other_sums,
        checked,
    )


def _turns_since(sides: tuple[Array, Array]) -> list[Array]:
    """Return eight sets: the stones that have been on the board for exactly 1, 2, ..., 7 positions,
    and for at least 8, of rows uint32[H, 8, B]."""
    (own, *owns), (other, *others) = (jnp.unstack(side, axis=1) for side in sides)
    planes = []
    for older_own, older_other in zip(owns, others, strict=True):
        planes.append((own & ~older_own) | (other & ~older_other))
        own, other = own & older_own, other & older_other
    return [*planes, own | other]


def _move_planes(
    own: Array, other: Array, chains: Chains, legal: Array, board: Array
) -> list[Array]:
    """Return the planes of moves without those of ladders, rows uint32[H, B]."""
    moves = find_moves(own, other, chains, legal, board)
    return [
        *_one_hot(moves.captured, legal),
        *_one_hot(moves.own_size, self_atari(moves, legal)),
        *_one_hot(moves.liberties, legal),
        legal & ~eyes(own, other, board),
    ]


def eyes(own: Array, other: Array, board: Array) -> Array:
    """Return the eyes of `own`: empty points with own stones on all sides, and at most one stone of
    the other side, none on the edge, on the diagonals."""
    edge = board & ~functools.reduce(
        jnp.bitwise_and, bits.neighbours_by_side(jnp.broadcast_to(board, own.shape))
    )
    surrounded = board & ~(own | other) & ~bits.neighbours(board & ~own)
    once = twice = jnp.zeros_like(own)
    for rows in bits.vertical_neighbours(other):
        for corner in (rows << 1, rows >> 1):
            once, twice = once | corner, twice | (once & corner)
    return surrounded & ~twice & ~(once & edge)


def _one_hot(digits: list[Array], points: Array) -> list[Array]:
    """Return eight sets, the `points` with the numbers 0, 1, ..., 7."""
    return [bits.points_with(digits, number, points) for number in range(LEVELS)]
