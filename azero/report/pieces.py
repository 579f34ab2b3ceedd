"""Games with pieces, drawn as boards: chess, minichess, shogi and animal shogi; and the positions
that games begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from azero.data.run_files import StoredGame
from azero.games.animal_shogi import text as animal_text
from azero.games.bits import num_words, unpack_host
from azero.games.chess import text as chess_text
from azero.games.chess.legal import NUM_TARGETS
from azero.games.diagrams import format_stones
from azero.games.minichess import text as minichess_text
from azero.games.shogi import sfen as shogi_sfen
from azero.games.shogi import text as shogi_text
from azero.games.shogi.names import PIECES
from azero.report.boards import CELL, DRAWN, MARGIN


class DiagramNotation(NamedTuple):
    """How positions and moves of a game are read and shown."""

    start: str
    read: Callable[[str], Any]
    """text -> the game's host-side board"""
    name: Callable[[Any, int], str]
    """the move in the game's notation"""
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
    pieces: Callable[[Any], Sequence[str]] = lambda board: str(board.pieces)
    """one letter per square from the first player's left corner, lower case for the second player's
    pieces, a dot for none"""
    hands: Callable[[Any], str] = lambda board: ""
    """text of the pieces in hand"""


class DrawnGame(NamedTuple):
    """A game as positions to be shown, from before the first move on."""

    boards: list[str]
    """one letter per square, row by row from the top left"""
    names: list[str]
    """of the moves"""
    hands: list[str]


_SHOGI_LETTERS = dict(zip(shogi_sfen.LETTERS, ".ABCDEFGHIJKLMN", strict=True))


def _shogi_letters(board: Any) -> Sequence[str]:
    """Return one letter a square: A for a pawn, B for a lance ... in the order of the codes."""
    letters = [(_SHOGI_LETTERS[piece.upper()], piece) for piece in board.pieces]
    return [letter.lower() if piece.islower() else letter for letter, piece in letters]


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


def _of_chess(text: ModuleType, name: Callable[[Any, int], str], size: int) -> DiagramNotation:
    """Return the notation of chess on a board of `size` files and ranks, whose module is `text`."""
    return DiagramNotation(
        start=text.START,
        read=text.board_of_fen,
        name=name,
        write=text.format_fen,
        of_state=text.board_of_state,
        by_squares=text.format_uci,
        glyphs=dict(zip("KQRBNP", "♚♛♜♝♞♟", strict=True)),
        files="abcdefgh"[:size],
        ranks="12345678"[:size],
        sides=("White", "Black"),
        is_turned=False,
    )


NOTATIONS = {
    "chess": _of_chess(chess_text, chess_text.format_san, 8),
    "minichess": _of_chess(minichess_text, minichess_text.format_uci, 5),
    "shogi": DiagramNotation(
        start=shogi_sfen.START,
        read=shogi_text.board_of_sfen,
        pieces=_shogi_letters,
        name=shogi_text.format_usi,
        hands=_hands,
        write=shogi_text.format_sfen,
        of_state=shogi_text.board_of_state,
        by_squares=shogi_text.format_usi,
        glyphs={_SHOGI_LETTERS[piece]: sign for piece, sign in PIECES.items()},
        files="987654321",
        ranks="ihgfedcba",
    ),
    "animal_shogi": DiagramNotation(
        start=animal_text.START,
        read=animal_text.board_of_sfen,
        name=animal_text.format_move,
        hands=_hands,
        write=animal_text.format_sfen,
        of_state=animal_text.board_of_state,
        by_squares=animal_text.format_move,
        glyphs=dict(zip("CEGLH", "ひぞきらに", strict=True)),
        files="abc",
        ranks="1234",
        sides=("the first player", "the second player"),
    ),
}
"""How the pieces of a game are shown, by its name; other games have none."""


def start_of(name: str, board: tuple[int, int], frame: Sequence[int], to_play: int) -> str:
    """Return the position of a frame of the game `name` as `StoredGame.start` has it; empty where
    that is the game's own beginning, or the game is not drawn. A frame of chess does not hold the
    en passant square."""
    if name in DRAWN:
        return format_stones(_stones(name, board[0] * board[1], frame), to_play)
    how = NOTATIONS.get(name)
    if how is None:
        return ""
    state = SimpleNamespace(
        frames=np.array([frame], np.uint32),
        en_passant=np.uint32(0),
        targets=np.zeros((NUM_TARGETS, 2), np.uint32),
    )
    start = how.write(how.of_state(state))
    return "" if start == how.start else start


def _stones(name: str, num_points: int, frame: Sequence[int]) -> list[int]:
    """Return the stones of a frame: 1 the first mover's, -1 the second's, 0 none."""
    words = np.array(frame, np.uint32)
    if name == "go":
        halves = np.split(words[: 2 * num_words(num_points)], 2)
    else:
        halves = [words, words >> np.uint32(num_points)]
    first, second = (unpack_host(half, num_points) for half in halves)
    return list((first.astype(int) - second).tolist())


def follow(game: StoredGame) -> DrawnGame:
    """Return the positions of a game, from its start or from the game's own beginning."""
    how = NOTATIONS.get(game.game)
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


def draw_pieces(game: StoredGame, boards: Sequence[str]) -> str:
    """Return the last of the positions as an SVG, with the squares marked that the last move
    changed.

    The group of class `stones` holds one text per piece, which the report's stepper redraws for
    other positions.
    """
    how = NOTATIONS.get(game.game)
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
