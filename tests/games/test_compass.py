"""What chess and shogi share about sets of squares."""

import warnings

import numpy as np

from azero.games.chess import squares as chess
from azero.games.compass import COMPASS, opposite, spread
from azero.games.shogi import squares as shogi


def test_masks_of_single_conditions_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (spread(np.bool_(True)), spread(np.bool_(False))) == (0xFFFFFFFF, 0)
        assert spread(np.array([True, False])).tolist() == [0xFFFFFFFF, 0]
        assert [int(word) for word in shogi.square_set(np.uint32(30))] == [0, 8, 0]


def test_a_line_ends_at_the_side_and_at_what_is_not_free() -> None:
    for board, size in ((chess, 8), (shogi, 9)):
        numbers = {1 << square: square for square in range(size * size)}

        def squares_of(squares, board=board, numbers=numbers):
            return {
                square
                for bit, square in numbers.items()
                if any(
                    (np.asarray(a) & np.asarray(b)).any()
                    for a, b in zip(squares, board.constant(bit), strict=True)
                )
            }

        start, blocked = 3 * size + 3, 3 * size + 5
        free = board.constant(sum(numbers) & ~(1 << blocked))
        for number, (files, ranks) in enumerate(COMPASS):
            assert COMPASS[opposite(number)] == (-files, -ranks)
            line, file, rank = {start}, 3 + files, 3 + ranks
            while 0 <= file < size and 0 <= rank < size and size * rank + file != blocked:
                line.add(size * rank + file)
                file, rank = file + files, rank + ranks
            assert squares_of(board.fill(board.constant(1 << start), free, (files, ranks))) == line
