"""Counting lines of play through the compiled step."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from compiling import OPTIMISED


def stack(states):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def make_perft(game, parse=None, piece: int = 256, frontier: int = 65_536):
    """Make the function (position, depth) -> number of lines, where `parse` reads the position, by
    default from a FEN.

    Positions are played `piece` at a time; at most about `frontier` of them are kept for each
    depth.
    """
    parse = parse or game.from_fen
    step = jax.jit(jax.vmap(game.step), compiler_options=OPTIMISED)

    @functools.partial(jax.jit, compiler_options=OPTIMISED)
    @jax.vmap
    def look(state):
        mask = game.legal_action_mask(state) & ~game.is_terminal(state)
        return mask, mask.sum(dtype=jnp.int32)

    def pieces(states, size):
        return (
            part(states, slice(first, first + size)) for first in range(0, len(states.ending), size)
        )

    def children(states):
        """All positions one move on."""
        played = []
        for chunk in pieces(states, piece):
            index, action = np.nonzero(
                np.asarray(look(padded(chunk, piece))[0])[: len(chunk.ending)]
            )
            for first in range(0, len(index), piece):
                starts, moves = (
                    part(chunk, index[first : first + piece]),
                    action[first : first + piece].astype(np.int32),
                )
                played.append(
                    part(step(padded(starts, piece), np.resize(moves, piece)), slice(0, len(moves)))
                )
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *played)

    def lines(states, depth: int) -> int:
        if depth == 1:
            return sum(
                int(np.asarray(look(padded(chunk, piece))[1])[: len(chunk.ending)].sum())
                for chunk in pieces(states, piece)
            )
        return sum(lines(children(chunk), depth - 1) for chunk in pieces(states, frontier // 32))

    return lambda text, depth: lines(stack([parse(text)]), depth)


def part(states, index):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], states)


def padded(states, size: int):
    return jax.tree.map(lambda leaf: np.resize(leaf, (size, *leaf.shape[1:])), states)
