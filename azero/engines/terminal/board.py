"""Boards in a terminal."""

from rich.text import Text

from azero.games.go import setup
from azero.games.go.rules import Go
from azero.games.go.text import column_name
from azero.players.player import Position

_WOOD = "on #d9a95f"
_STYLES = {1: f"bold #000000 {_WOOD}", -1: f"bold #ffffff {_WOOD}", 0: f"#7a5a28 {_WOOD}"}
_SIGNS = {1: "X", -1: "O", 0: "."}


def draw_board(position: Position) -> Text:
    """Return the position as text: a Go board in colours with coordinates, star points and the last
    move in brackets; other games as their rules draw them."""
    game = position.game
    if not isinstance(game, Go):
        diagram = game.format_board(position.state)
        # The rules of most games draw coordinates, hands and more around the board, or another
        # diagram.
        rows, columns = game.board_shape
        is_bare = [len(line.split()) for line in diagram.splitlines()] == [columns] * rows
        return _with_coordinates(diagram) if is_bare else Text(diagram)
    board = game.board(position.state)
    last = position.actions[-1] if position.actions and position.actions[-1] < board.size else None
    names = "   " + " ".join(f"{column_name(column):>1}" for column in range(board.shape[1]))
    stars = _star_points(game.board_shape)
    text = Text(names + "\n")
    for row in range(board.shape[0]):
        text.append(f"{board.shape[0] - row:>2}")
        for column in range(board.shape[1]):
            point = row * board.shape[1] + column
            is_last, follows_last = point == last, column > 0 and point - 1 == last
            text.append("(" if is_last else ")" if follows_last else " ", _STYLES[0])
            value = int(board[row, column])
            text.append("+" if value == 0 and point in stars else _SIGNS[value], _STYLES[value])
        text.append(")" if last == row * board.shape[1] + board.shape[1] - 1 else " ", _STYLES[0])
        text.append(f"{board.shape[0] - row}\n")
    text.append(names)
    return text


def _star_points(shape: tuple[int, int]) -> set[int]:
    try:
        return set(setup.handicap_points(9 if shape[0] % 2 and shape[0] >= 9 else 4, shape))
    except ValueError:
        return set()


def _with_coordinates(diagram: str) -> Text:
    """Return the bare diagram of a board, one sign a square and blanks between them, with letters
    below and numbers at the side, a1 at the bottom left."""
    rows = diagram.splitlines()
    lines = [f"{len(rows) - index:>2} {row}" for index, row in enumerate(rows)]
    letters = " ".join(chr(ord("a") + column) for column in range(len(rows[0].split())))
    return Text("\n".join([*lines, f"   {letters}"]))
