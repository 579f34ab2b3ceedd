"""Positions of shogi through its compiled functions, and turned round."""

from __future__ import annotations

import functools

import perft
from small_boards import play_names

from azero.games.shogi import text

BATCH = 64
"""Positions in every compiled call of these tests, so that each program is compiled once."""

padded = functools.partial(perft.padded, size=BATCH)
programs = functools.partial(perft.programs, is_optimised=True)


def play(game, state, moves: str):
    """The state after moves in USI, every one of them legal."""
    return play_names(
        programs(game),
        state,
        moves.split(),
        lambda state, move: text.board_of_state(state).names[move],
        BATCH,
    )


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
