"""Japanese names of pieces and squares, as records and diagrams write them."""

from azero.games.shogi import sfen

PIECES = dict(zip(sfen.LETTERS[1:], "歩香桂銀角飛金玉と杏圭全馬龍", strict=True))
"""Kinds as on boards and in moves, by their letters in SFEN."""
LETTERS = {sign: letter for letter, sign in PIECES.items()} | {
    "王": "K",
    "竜": "+R",
    "成香": "+L",
    "成桂": "+N",
    "成銀": "+S",
}
"""Letters in SFEN, by all names."""
PIECE_NAME = "|".join(sorted(LETTERS, key=len, reverse=True))
"""Regular expression of a piece's name."""
NUMERALS = "一二三四五六七八九"
"""Numbers of ranks, and of pieces in hand."""
FILES = "１２３４５６７８９123456789"
"""Digits of files: full-width, and half-width as some programs write them."""
RANKS = f"{NUMERALS}{FILES}"
"""Signs of ranks."""


def destination(file: str | None, rank: str | None, last: str) -> str:
    """Return the square in USI of a file and a rank of a move; without them, as in 同, `last`."""
    if file is None or rank is None:
        return last
    return sfen.square_of_digits(f"{FILES.index(file) % 9 + 1}{RANKS.index(rank) % 9 + 1}")
