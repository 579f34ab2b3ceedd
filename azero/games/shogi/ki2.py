"""Moves of shogi in the KI2 format, as books print them: a move names its piece and destination,
and only where several such pieces can go there, how it moves. Host side only.

The words are those of the Japan Shogi Association ("棋譜の表記方法").
"""

import re
from collections.abc import Iterator

from azero.games.shogi.names import FILES, LETTERS, PIECE_NAME, RANKS, destination
from azero.games.shogi.sfen import parse_square
from azero.games.shogi.text import ShogiBoard

MARKS = "▲△▼▽☗☖"
"""What a move begins with: the sign of its side."""
_MOVE = re.compile(
    rf"[{MARKS}](?:([{FILES}])([{RANKS}])|同\s*)({PIECE_NAME})([左右直]?)([上行入寄引]?)"
    r"(不成|成|打)?\s*"
)


def split_moves(row: str) -> Iterator[re.Match[str]]:
    """Yield the moves of a row.

    Raises:
      ValueError: something in it is not a move.
    """
    place = 0
    while place < len(row):
        match = _MOVE.match(row, place)
        if match is None:
            raise ValueError(f"{row[place : place + 20]!r} is not a move in KI2")
        yield match
        place = match.end()


def find_move(board: ShogiBoard, match: re.Match[str], last_square: str) -> str:
    """Return the legal move in USI that a move of `split_moves` means; 同 goes to `last_square`.

    Raises:
      ValueError: no legal move or more than one fits; the text is quoted.
    """
    text, (file, rank, name, side, motion, last) = match[0].strip(), match.groups()
    end = destination(file, rank, last_square)
    letter, sign = LETTERS[name], -1 if board.is_white else 1
    drop, moves = f"{letter}*{end}", dict[str, tuple[int, int]]()
    for usi in board.names if last != "打" else ():
        is_named = usi[2:4] == end and usi[1] != "*" and usi.endswith("+") == (last == "成")
        if is_named and board.pieces[parse_square(usi[:2])].upper() == letter:
            left = sign * (int(usi[0]) - int(end[0]))
            behind = sign * (ord(usi[1]) - ord(end[1]))
            moves[usi] = left, behind
    if not moves and drop in board.names and not side + motion and last in (None, "打"):
        return drop
    wanted = {"": (-1, 0, 1), "寄": (0,), "引": (-1,)}.get(motion, (1,))
    if side == "直":
        moves = {usi: way for usi, way in moves.items() if way[0] == 0 and way[1] > 0}
    moves = {usi: way for usi, way in moves.items() if (way[1] > 0) - (way[1] < 0) in wanted}
    if side in ("左", "右") and moves:
        farthest = (max if side == "左" else min)(left for left, _ in moves.values())
        moves = {usi: way for usi, way in moves.items() if way[0] == farthest}
    if len(moves) != 1:
        found = f"could be {' or '.join(moves)}" if moves else "is not a legal move"
        raise ValueError(f"{text!r} {found}")
    return next(iter(moves))
