"""Counting lines of play through the compiled step, and turning positions round."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

BATCH = 128
"""Positions in every compiled call of these tests, so that each program is compiled once."""


def stack(states):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def make_step(game):
    """The compiled step of BATCH positions."""
    return jax.jit(jax.vmap(game.step))


def make_perft(game, frontier: int = 65_536):
    """Make the function (sfen, depth) -> number of lines. Positions are played BATCH at a time; at most about `frontier` of them are kept for each depth."""
    step = make_step(game)

    @jax.jit
    @jax.vmap
    def look(state):
        mask = game.legal_action_mask(state) & ~game.is_terminal(state)
        return mask, mask.sum(dtype=jnp.int32)

    def pieces(states, size):
        return (part(states, slice(first, first + size)) for first in range(0, len(states.ending), size))

    def children(states):
        """All positions one move on."""
        played = []
        for chunk in pieces(states, BATCH):
            index, action = np.nonzero(np.asarray(look(padded(chunk))[0])[: len(chunk.ending)])
            for first in range(0, len(index), BATCH):
                starts, moves = part(chunk, index[first : first + BATCH]), action[first : first + BATCH].astype(np.int32)
                played.append(part(step(padded(starts), np.resize(moves, BATCH)), slice(0, len(moves))))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *played)

    def lines(states, depth: int) -> int:
        if depth == 1:
            return sum(int(np.asarray(look(padded(chunk))[1])[: len(chunk.ending)].sum()) for chunk in pieces(states, BATCH))
        return sum(lines(children(chunk), depth - 1) for chunk in pieces(states, frontier // 64))

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
