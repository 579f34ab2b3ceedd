"""Games with pieces, drawn as boards: chess, minichess, shogi and animal shogi."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from azero.data.run_files import StoredGame
from azero.games.animal_shogi import text as animal_text
from azero.games.chess import text as chess_text
from azero.games.chess.legal import NUM_TARGETS
from azero.games.minichess import text as minichess_text
from azero.games.shogi import sfen as shogi_sfen
from azero.games.shogi import text as shogi_text
from azero.games.shogi.kif import PIECES
from azero.games.shogi.position import KINDS

CELL = 24
"""Units of the SVG between two squares."""
MARGIN = 20
"""Units around the board, for the coordinates."""


class DiagramNotation(NamedTuple):
    """How positions and moves of a game are read and shown."""

    start: str
    read: Callable[[str], Any]
    """text -> the game's host-side board"""
    pieces: Callable[[Any], Sequence[str]]
    """one letter per square from the first player's left corner, lower case for the second player's
    pieces, a dot for none"""
    name: Callable[[Any, int], str]
    """the move in the game's notation"""
    hands: Callable[[Any], str]
    """text of the pieces in hand"""
    write: Callable[[Any], str]
    """board -> text"""
    of_state: Callable[[Any], Any]
    """state -> board"""
    by_squares: Callable[[Any, int], str]
    """the move by the squares that it joins (e2e4, P*5e), as engines write it"""
    glyphs: dict[str, str]
    """glyph for a capital letter"""
    files: str
    ranks: str
    """names of the files from the left, of the ranks from below"""
    sides: tuple[str, str] = ("Black", "White")
    is_turned: bool = True
    """the second mover's pieces stand upside down"""


class DrawnGame(NamedTuple):
    """A game as positions to be shown, from before the first move on."""

    boards: list[str]
    """one letter per square, row by row from the top left"""
    names: list[str]
    """of the moves"""
    hands: list[str]


def notation(name: str) -> DiagramNotation | None:
    """Return how a game's pieces are shown; None if it has none."""
    chess_pieces = dict(zip("KQRBNP", "♚♛♜♝♞♟", strict=True))
    colours = ("White", "Black")

    def pieces_of(board: Any) -> Sequence[str]:
        return str(board.pieces)

    def none_in_hand(board: Any) -> str:
        return ""

    if name == "chess":
        return DiagramNotation(
            chess_text.START,
            chess_text.board_of_fen,
            pieces_of,
            chess_text.format_san,
            none_in_hand,
            chess_text.format_fen,
            chess_text.board_of_state,
            chess_text.format_uci,
            chess_pieces,
            "abcdefgh",
            "12345678",
            colours,
            False,
        )
    if name == "minichess":
        return DiagramNotation(
            minichess_text.START,
            minichess_text.board_of_fen,
            pieces_of,
            minichess_text.format_uci,
            none_in_hand,
            minichess_text.format_fen,
            minichess_text.board_of_state,
            minichess_text.format_uci,
            chess_pieces,
            "abcde",
            "12345",
            colours,
            False,
        )
    if name == "shogi":
        return DiagramNotation(
            shogi_sfen.START,
            shogi_text.board_of_sfen,
            _shogi_pieces,
            shogi_text.format_usi,
            _hands,
            shogi_text.format_sfen,
            shogi_text.board_of_state,
            shogi_text.format_usi,
            {chr(ord("@") + code): PIECES[shogi_text.letter_of(code)] for code in KINDS},
            "987654321",
            "ihgfedcba",
        )
    if name == "animal_shogi":
        return DiagramNotation(
            animal_text.START,
            animal_text.board_of_sfen,
            pieces_of,
            animal_text.format_move,
            _hands,
            animal_text.format_sfen,
            animal_text.board_of_state,
            animal_text.format_move,
            dict(zip("CEGLH", "ひぞきらに", strict=True)),
            "abc",
            "1234",
            ("the first player", "the second player"),
        )
    return None


def _shogi_pieces(board: Any) -> Sequence[str]:
    """Return one letter a square: A for a pawn, B for a lance ... in the order of the codes."""
    letters = {shogi_text.letter_of(code): chr(ord("@") + code) for code in KINDS}
    return [
        (letters[piece.upper()] if piece[-1].isupper() else letters[piece.upper()].lower())
        if piece
        else "."
        for piece in board.pieces
    ]


def _hands(board: Any) -> str:
    first, second = (
        " ".join(f"{letter}{count}" for letter, count in hand.items() if count)
        for hand in board.hands
    )
    return ", ".join(
        f"{who} has {hand} in hand"
        for who, hand in (("the first mover", first), ("the second mover", second))
        if hand
    )


def start_of(name: str, frame: Sequence[int]) -> str:
    """Return the position of a frame of the game `name` in FEN or SFEN; empty if the game has no
    pieces. What may be taken in passing is not in a frame of chess."""
    how = notation(name)
    if how is None:
        return ""
    state = SimpleNamespace(
        frames=np.array([frame], np.uint32),
        en_passant=np.uint32(0),
        targets=np.zeros((NUM_TARGETS, 2), np.uint32),
    )
    return how.write(how.of_state(state))


def follow(game: StoredGame) -> DrawnGame:
    """Return the positions of a game, from its start or from the game's own beginning."""
    how = notation(game.game)
    assert how is not None
    board = how.read(game.start or how.start)
    boards, names, hands = [_rows(how, board)], [], [how.hands(board)]
    for action in game.actions:
        names.append(how.name(board, action))
        board = board.after(action)
        boards.append(_rows(how, board))
        hands.append(how.hands(board))
    return DrawnGame(boards, names, hands)


def _rows(how: DiagramNotation, board: Any) -> str:
    pieces, width = how.pieces(board), len(how.files)
    return "".join(
        "".join(pieces[width * rank : width * rank + width])
        for rank in range(len(how.ranks) - 1, -1, -1)
    )


def first_mover_begins(game: StoredGame) -> bool:
    """Return whether the game's first mover makes the first move; not so where the game begins with
    a position of the other side."""
    return not game.start or game.start.split()[1] == (
        "w" if game.game in ("chess", "minichess") else "b"
    )


def draw_pieces(game: StoredGame, boards: Sequence[str]) -> str:
    """Return the last of the positions as an SVG, the squares that the last move changed marked.

    The group of class `stones` holds one text per piece, which the report's stepper redraws for
    other positions.
    """
    how = notation(game.game)
    assert how is not None
    rows, columns = len(how.ranks), len(how.files)
    width, height = 2 * MARGIN + columns * CELL, 2 * MARGIN + rows * CELL
    lines = [f"M{MARGIN} {MARGIN + row * CELL}H{width - MARGIN}" for row in range(rows + 1)]
    lines += [
        f"M{MARGIN + column * CELL} {MARGIN}V{height - MARGIN}" for column in range(columns + 1)
    ]
    before = boards[-2] if len(boards) > 1 else boards[-1]
    pieces = [
        _draw_piece(how, place, letter, letter != before[place])
        for place, letter in enumerate(boards[-1])
        if letter != "."
    ]
    names = [(column * CELL, -CELL // 2 - 9, name) for column, name in enumerate(how.files)]
    names += [(-CELL // 2 - 5, (rows - 1 - row) * CELL, name) for row, name in enumerate(how.ranks)]
    half = MARGIN + CELL // 2
    texts = "".join(
        f'<text class="coordinate" x="{half + x}" y="{half + y}" dy=".35em">{name}</text>'
        for x, y, name in names
    )
    return (
        f'<svg class="board" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="position after {len(game.actions)} moves">'
        f'<rect class="wood" x="{MARGIN}" y="{MARGIN}" width="{columns * CELL}" '
        f'height="{rows * CELL}"/>'
        f'<path class="lines" d="{"".join(lines)}"/>{texts}<g '
        f'class="stones">{"".join(pieces)}</g></svg>'
    )


def _draw_piece(how: DiagramNotation, place: int, letter: str, is_last: bool) -> str:
    row, column = divmod(place, len(how.files))
    x, y = MARGIN + CELL // 2 + column * CELL, MARGIN + CELL // 2 + row * CELL
    is_first = letter.isupper()
    turn = f' transform="rotate(180 {x} {y})"' if how.is_turned and not is_first else ""
    kind = (
        f"piece {'first' if is_first or how.is_turned else 'second'}{' moved' if is_last else ''}"
    )
    return (
        f'<text class="{kind}" x="{x}" y="{y}" dy=".35em"{turn}>{how.glyphs[letter.upper()]}</text>'
    )
