"""Batches of positions through a game's compiled functions, and counting lines of play with
them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import numpy as np
from compiling import OPTIMISED


def stack(states):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def part(states, index):
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], states)


def padded(states, size: int):
    return jax.tree.map(lambda leaf: np.resize(leaf, (size, *leaf.shape[1:])), states)


@functools.cache
def programs(game, is_optimised: bool = False):
    """The compiled step, and what a state says (mask, ending, rewards), of a batch."""
    options = OPTIMISED if is_optimised else {}
    look = jax.vmap(
        lambda state: (game.legal_action_mask(state), state.ending, game.rewards(state))
    )
    return (
        jax.jit(jax.vmap(game.step), compiler_options=options),
        jax.jit(look, compiler_options=options),
    )


def make_perft(
    game, parse: Callable | None = None, piece: int = 256, frontier: int = 2048
) -> Callable[[str, int], int]:
    """Make the function (position, depth) -> number of lines, where `parse` reads the position, by
    default from a FEN.

    Positions are played `piece` at a time; the children of `frontier` of them are kept at once.
    """
    parse = parse or game.from_fen
    step, look = programs(game, is_optimised=True)

    def masks(chunk) -> np.ndarray:
        mask, ending, _ = map(np.asarray, look(padded(chunk, piece)))
        return (mask & (ending == 0)[:, None])[: len(chunk.ending)]

    def pieces(states, size):
        return (
            part(states, slice(first, first + size)) for first in range(0, len(states.ending), size)
        )

    def children(states):
        """All positions one move on."""
        played = []
        for chunk in pieces(states, piece):
            index, action = np.nonzero(masks(chunk))
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
            return sum(int(masks(chunk).sum()) for chunk in pieces(states, piece))
        return sum(lines(children(chunk), depth - 1) for chunk in pieces(states, frontier))

    return lambda text, depth: lines(stack([parse(text)]), depth)
