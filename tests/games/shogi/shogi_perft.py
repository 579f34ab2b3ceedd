"""Counting lines of play through the compiled step, and turning positions round."""

from __future__ import annotations

import functools

import jax
import numpy as np
from compiling import OPTIMISED

BATCH = 64
"""Positions in every compiled call of these tests, so that each program is compiled once."""


def stack(states):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


@functools.cache
def programs(game):
    """The compiled step, and what a state says (mask, ending, rewards), of BATCH positions."""
    look = jax.jit(
        jax.vmap(lambda state: (game.legal_action_mask(state), state.ending, game.rewards(state))),
        compiler_options=OPTIMISED,
    )
    return jax.jit(jax.vmap(game.step), compiler_options=OPTIMISED), look


def make_perft(game, frontier: int = 128):
    """Make the function (sfen, depth) -> number of lines. Positions are played BATCH at a time; the
    children of `frontier` of them are kept at once."""
    step, look = programs(game)

    def masks(chunk) -> np.ndarray:
        mask, ending, _ = map(np.asarray, look(padded(chunk)))
        return (mask & (ending == 0)[:, None])[: len(chunk.ending)]

    def pieces(states, size):
        return (
            part(states, slice(first, first + size)) for first in range(0, len(states.ending), size)
        )

    def children(states):
        """All positions one move on."""
        played = []
        for chunk in pieces(states, BATCH):
            index, action = np.nonzero(masks(chunk))
            for first in range(0, len(index), BATCH):
                starts, moves = (
                    part(chunk, index[first : first + BATCH]),
                    action[first : first + BATCH].astype(np.int32),
                )
                played.append(
                    part(step(padded(starts), np.resize(moves, BATCH)), slice(0, len(moves)))
                )
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *played)

    def lines(states, depth: int) -> int:
        if depth == 1:
            return sum(int(masks(chunk).sum()) for chunk in pieces(states, BATCH))
        return sum(lines(children(chunk), depth - 1) for chunk in pieces(states, frontier))

    return lambda sfen, depth: lines(stack([game.from_sfen(sfen)]), depth)


def part(states, index):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], states)


def padded(states, size: int = BATCH):
    return jax.tree.map(lambda leaf: np.resize(leaf, (size, *leaf.shape[1:])), states)


def turn_sfen(sfen: str) -> str:
    """The same position with the colours exchanged and the board turned half round."""
    board, side, hands, number = sfen.split()
    cells = board.swapcase().replace("/", " / ")
    tokens, index = [], 0
    while index < len(cells):
        width = 2 if cells[index] == "+" else 1
        tokens.append(cells[index : index + width])
        index += width
    turned = "".join(token for token in reversed(tokens)).replace(" ", "")
    return " ".join([turned, "w" if side == "b" else "b", hands.swapcase(), number])
