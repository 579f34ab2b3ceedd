"""Games with pieces, drawn as boards: chess, minichess, shogi and animal shogi; and the positions
that games begin with."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from azero.console.tables import count_of
from azero.data.run_files import StoredGame
from azero.games.animal_shogi.text import format_move
from azero.games.bits import unpack_host
from azero.games.chess.text import format_san, format_uci
from azero.games.diagrams import format_stones
from azero.games.go.encoding import boards_of
from azero.games.position import Position
from azero.games.shogi.names import PIECES
from azero.games.shogi.sfen import LETTERS
from azero.games.shogi.text import format_usi
from azero.games.table import side_names
from azero.players.notation import NOTATIONS, MoveNotation
from azero.report.boards import CELL, DRAWN, MARGIN, centre


class Diagram(NamedTuple):
    """How positions and moves of a game are shown."""

    notation: MoveNotation
    """of which the moves are named by the squares that they join (e2e4, P*5e)"""
    name: Callable[[Any, int], str]
    """the move in the game's notation"""
    glyphs: dict[str, str]
    """glyph for a capital letter"""
    files: str
    ranks: str
    """names of the files from the left, of the ranks from below"""
    is_turned: bool = True
    """the second mover's pieces stand upside down"""
    pieces: Callable[[Any], Sequence[str]] = lambda board: str(board.pieces)
    """one letter per square from the first player's left corner, lower case for the second player's
    pieces, a dot for none"""


class DrawnGame(NamedTuple):
    """A game as positions to be shown, from before the first move on."""

    boards: list[str]
    """one letter per square, row by row from the top left"""
    names: list[str]
    """of the moves"""
    hands: list[str]


_SHOGI_LETTERS = dict(zip(LETTERS, ".ABCDEFGHIJKLMN", strict=True))


def _shogi_letters(board: Any) -> Sequence[str]:
    """Return one letter a square: A for a pawn, B for a lance ... in the order of the codes."""
    letters = [(_SHOGI_LETTERS[piece.upper()], piece) for piece in board.pieces]
    return [letter.lower() if piece.islower() else letter for letter, piece in letters]


def _hands(game: str, board: Any) -> str:
    """Return the text of the pieces in hand, by the sides of the game of that name."""
    held: tuple[dict[str, int], ...] = getattr(board, "hands", ({}, {}))
    hands = (
        " ".join(f"{letter}{count}" for letter, count in hand.items() if count) for hand in held
    )
    return ", ".join(
        f"{side} has {hand} in hand"
        for side, hand in zip(side_names(game), hands, strict=True)
        if hand
    )


def _of_chess(game: str, name: Callable[[Any, int], str], size: int) -> Diagram:
    """Return how chess or minichess is shown on `size` files and ranks."""
    return Diagram(
        NOTATIONS[game],
        name,
        glyphs=dict(zip("KQRBNP", "♚♛♜♝♞♟", strict=True)),
        files="abcdefgh"[:size],
        ranks="12345678"[:size],
        is_turned=False,
    )


DIAGRAMS = {
    "chess": _of_chess("chess", format_san, 8),
    "minichess": _of_chess("minichess", format_uci, 5),
    "shogi": Diagram(
        NOTATIONS["shogi"],
        format_usi,
        pieces=_shogi_letters,
        glyphs={_SHOGI_LETTERS[piece]: sign for piece, sign in PIECES.items()},
        files="987654321",
        ranks="ihgfedcba",
    ),
    "animal_shogi": Diagram(
        NOTATIONS["animal_shogi"],
        format_move,
        glyphs=dict(zip("CEGLH", "ひぞきらに", strict=True)),
        files="abc",
        ranks="1234",
    ),
}
"""How the pieces of a game are shown, by its name; other games have none."""


class Squares(NamedTuple):
    """A move by its squares, which are numbered row by row from the top left."""

    name: str
    start: int | None
    """None of a drop or a mark."""
    end: int
    drop: str
    """Letter of the piece that is dropped; empty for other moves."""
    promotion: str
    """Letter of the piece that a pawn becomes, or +; empty without promotion."""


def squares_of(how: Diagram, name: str) -> Squares:
    """Return a move by its squares, from its name (`MoveNotation.format_move`)."""
    is_drop = name[1] in "*@"
    start = None if is_drop else square_of(how.files, how.ranks, name)
    end = square_of(how.files, how.ranks, name[2:])
    return Squares(name, start, end, name[0] if is_drop else "", name[4:])


def square_of(files: str, ranks: str, name: str) -> int:
    """Return the number of the square that `name` begins with, row by row from the top left."""
    return (len(ranks) - 1 - ranks.index(name[1])) * len(files) + files.index(name[0])


def start_of(
    name: str, board: tuple[int, int], frame: Sequence[int], to_play: int, first: int = -1
) -> str:
    """Return the position of a frame of the game `name` as `StoredGame.start` has it; empty where
    that is the game's own beginning, or the game is not drawn. `first` is the action that was
    played there, -1 for none: a frame of chess does not say where a pawn can be captured en
    passant, but that action may do it."""
    if name in DRAWN:
        return format_stones(_stones(name, board[0] * board[1], frame), to_play)
    notation = NOTATIONS.get(name)
    if notation is None:
        return ""
    boards = (_board_of(notation, frame, file) for file in (0, *(1 << file for file in range(8))))
    begin = next(boards)
    start = notation.format_position(begin)
    if start == notation.start:
        return ""
    if first >= 0 and first not in begin.actions:
        begin = next((other for other in boards if first in other.actions), begin)
    return notation.format_position(begin)


def _board_of(notation: MoveNotation, frame: Sequence[int], en_passant: int) -> Any:
    """Return the board of a frame; in chess a pawn on the files of the mask `en_passant` has just
    made a double step."""
    state = SimpleNamespace(
        frames=np.array([frame], np.uint32),
        en_passant=np.uint32(en_passant),
        targets=np.zeros((0, 2), np.uint32),  # not known
    )
    return notation.board_of(state)


def _stones(name: str, num_points: int, frame: Sequence[int]) -> list[int]:
    """Return the stones of a frame: 1 the first mover's, -1 the second's, 0 none."""
    words = np.array(frame, np.uint32)
    if name == "go":
        return list(boards_of(words, num_points).tolist())
    first, second = (unpack_host(half, num_points) for half in (words, words >> num_points))
    return list((first.astype(int) - second).tolist())


def follow(game: StoredGame) -> DrawnGame:
    """Return the positions of a game, from its start or from the game's own beginning."""
    how = DIAGRAMS.get(game.game)
    assert how is not None
    board = how.notation.parse_board(game.start or how.notation.start)
    boards, names, hands = [_rows(how, board)], [], [_hands(game.game, board)]
    for action in game.actions:
        names.append(how.name(board, action))
        board = board.after(action)
        boards.append(_rows(how, board))
        hands.append(_hands(game.game, board))
    return DrawnGame(boards, names, hands)


def _rows(how: Diagram, board: Any) -> str:
    pieces, width = how.pieces(board), len(how.files)
    return "".join(
        "".join(pieces[width * rank : width * rank + width])
        for rank in range(len(how.ranks) - 1, -1, -1)
    )


class Choice(NamedTuple):
    """A position with two moves."""

    board: str
    """SVG"""
    hands: str = ""
    """Pieces in hand; empty for none."""
    is_turned: bool = False
    """The second mover's pieces stand upside down."""


def draw_choice(position: Position, played: int, best: int) -> Choice:
    """Draw a position of a game in DIAGRAMS with two moves, as arrows of the classes `best` and
    `played`; a drop is a ring around its square."""
    how = DIAGRAMS[position.game.name]
    board = how.notation.board_of(position.state)
    arrows = "".join(
        _draw_arrow(how, squares_of(how, how.notation.format_move(board, action)), kind)
        for action, kind in ((best, "best"), (played, "played"))
    )
    game = StoredGame(position.game.name, position.game.board_shape, (), (0.0, 0.0))
    drawn = draw_pieces(game, [_rows(how, board)], arrows, "position with a better move")
    return Choice(drawn, _hands(game.game, board), how.is_turned)


def _draw_arrow(how: Diagram, move: Squares, kind: str) -> str:
    squares = [place for place in (move.start, move.end) if place is not None]
    centres = [complex(*centre(len(how.files), place)) for place in squares]
    end = centres[-1]
    if move.start is None:
        radius = f"{CELL * 0.42:.1f}"
        return f'<circle class="arrow {kind}" cx="{end.real}" cy="{end.imag}" r="{radius}"/>'
    direction = (end - centres[0]) / abs(end - centres[0])
    head = [end - direction * CELL * 0.3 * turn for turn in (1 + 0.7j, 1 - 0.7j)]
    steps = ("M", centres[0]), ("L", end), ("M", head[0]), ("L", end), ("L", head[1])
    path = "".join(f"{letter}{point.real:.1f} {point.imag:.1f}" for letter, point in steps)
    return f'<path class="arrow {kind}" d="{path}"/>'


def draw_pieces(game: StoredGame, boards: Sequence[str], marks: str = "", label: str = "") -> str:
    """Return the last of the positions as an SVG, with the squares marked that the last move
    changed; `marks` are drawn over it; `label` is the image's text for screen readers.

    The group of class `stones` holds one text per piece, which the report's stepper redraws for
    other positions.
    """
    how = DIAGRAMS.get(game.game)
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
    label = label or f"position after {count_of(len(game.actions), 'move')}"
    return (
        f'<svg class="board" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
        f'<rect class="wood" x="{MARGIN}" y="{MARGIN}" width="{columns * CELL}" '
        f'height="{rows * CELL}"/>'
        f'<path class="lines" d="{"".join(lines)}"/>{texts}<g '
        f'class="stones">{"".join(pieces)}</g>{marks}</svg>'
    )


def _draw_piece(how: Diagram, place: int, letter: str, is_last: bool) -> str:
    x, y = centre(len(how.files), place)
    is_first = letter.isupper()
    turn = f' transform="rotate(180 {x} {y})"' if how.is_turned and not is_first else ""
    kind = (
        f"piece {'first' if is_first or how.is_turned else 'second'}{' moved' if is_last else ''}"
    )
    return (
        f'<text class="{kind}" x="{x}" y="{y}" dy=".35em"{turn}>{how.glyphs[letter.upper()]}</text>'
    )
