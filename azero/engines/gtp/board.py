"""GTP commands that set up the board: size, komi, handicap, positions, records (sections 6.3.2,
6.3.3 and 6.3.6)."""

import re
from pathlib import Path

import numpy as np

from azero.engines import go_record
from azero.engines.gtp.command import Call, Command, CommandError, parse_colour
from azero.games.go import setup
from azero.games.go.text import format_diagram


def boardsize(call: Call) -> None:
    """boardsize SIZE: an empty square board; with a second number (KataGo) they are columns and
    rows."""
    _resize(call, [0, 1] if len(call.words) > 1 else [0, 0])


def rectangular_boardsize(call: Call) -> None:
    """rectangular_boardsize COLUMNS ROWS (KataGo)."""
    _resize(call, [0, 1])


def _resize(call: Call, indices: list[int]) -> None:
    call.need(len(set(indices)), "a size")
    words = [call.words[index] for index in indices]
    if not all(re.fullmatch(r"-?[0-9]+", word) for word in words):
        raise CommandError("syntax error: a size is a whole number")
    width, height = (int(word[:4]) for word in words)
    call.game.clear((height, width))
    call.settings.new_game()


def clear_board(call: Call) -> None:
    """clear_board: start over."""
    call.game.clear()
    call.settings.new_game()


def komi(call: Call) -> None:
    """komi NEW_KOMI."""
    call.game.set_komi(call.number(0))


def fixed_handicap(call: Call) -> str:
    """fixed_handicap STONES: on the points that the protocol prescribes."""
    count = _handicap_count(call)
    try:
        points = setup.handicap_points(count, call.game.shape)
    except ValueError as error:
        raise CommandError(f"invalid number of stones: {error}") from error
    return _place(call, points)


def place_free_handicap(call: Call) -> str:
    """place_free_handicap STONES: points of the engine's choice: the fixed points first, then far
    from other stones."""
    return _place(call, free_handicap(_handicap_count(call), call.game.shape))


def set_free_handicap(call: Call) -> None:
    """set_free_handicap VERTEX VERTEX ...: at least two."""
    _need_empty(call)
    points = [call.vertex(index) for index in range(len(call.words))]
    size = call.game.board.size
    if not 2 <= len(points) < size or len(set(points)) < len(points) or size in points:
        raise CommandError("bad vertex list")
    _place(call, points)


def _handicap_count(call: Call) -> int:
    _need_empty(call)
    try:
        return call.integer(0, 2, call.game.board.size - 1)
    except CommandError as error:
        raise CommandError(
            "syntax error: a number needed" if not call.words else "invalid number of stones"
        ) from error


def _need_empty(call: Call) -> None:
    if call.game.board.any():
        raise CommandError("board not empty")


def _place(call: Call, points: list[int]) -> str:
    call.game.set_up(points, (), to_play=1)
    call.settings.new_game()
    return " ".join(call.format_vertex(point) for point in points)


def free_handicap(count: int, shape: tuple[int, int]) -> list[int]:
    """Return `count` points for handicap stones, spread over the board."""
    most = next((n for n in range(min(count, 9), 1, -1) if _has_fixed(n, shape)), 0)
    points = setup.handicap_points(most, shape) if most else []
    rows, columns = np.indices(shape)
    margin = 1 if min(shape) >= 5 else 0
    edge = np.minimum.reduce([rows, columns, shape[0] - 1 - rows, shape[1] - 1 - columns])
    while len(points) < count:
        # As far as possible from every stone, and not at the edge while there is room elsewhere.
        distance = np.full(shape, 50.0)
        for point in points:
            row, column = divmod(point, shape[1])
            distance = np.minimum(distance, np.hypot(rows - row, columns - column))
        from_centre = np.hypot(rows - shape[0] / 2, columns - shape[1] / 2)
        score = distance - 100.0 * (edge < margin) - 0.01 * from_centre
        points.append(int(np.where(distance > 0, score, -1000.0).argmax()))
    return points


def _has_fixed(count: int, shape: tuple[int, int]) -> bool:
    try:
        return bool(setup.handicap_points(count, shape))
    except ValueError:
        return False


def set_position(call: Call) -> None:
    """set_position COLOUR VERTEX COLOUR VERTEX ... (KataGo): these stones and no history, Black to
    move."""
    if len(call.words) % 2:
        raise CommandError("syntax error: colours and vertices in turn needed")
    stones: dict[int, int] = {}
    for colour, word in zip(call.words[::2], call.words[1::2], strict=True):
        point = call.parse_vertex(word)
        if point == call.game.board.size or point in stones:
            raise CommandError("bad vertex list")
        stones[point] = parse_colour(colour)
    black, white = (
        [point for point, colour in stones.items() if colour == side] for side in (0, 1)
    )
    try:
        call.game.set_up(black, white, to_play=0)
    except ValueError as error:
        raise CommandError("bad vertex list: a chain has no liberty") from error
    call.settings.new_game()


def showboard(call: Call) -> str:
    """showboard: the diagram, the last move in brackets, and who is to move."""
    moves = call.game.moves
    last = moves[-1][1] if moves and moves[-1][1] < call.game.board.size else None
    mover = "White" if call.game.position.to_play else "Black"
    status = f"{mover} to move, move {len(moves) + 1}, komi {call.game.komi:g}"
    return f"\n{format_diagram(call.game.board, last)}\n{status}"


def loadsgf(call: Call) -> None:
    """loadsgf FILE [MOVE_NUMBER]: the position before that move, or the last one."""
    call.need(1, "a file name")
    # A file name may have blanks in it; a last word of digits is the move number.
    has_number = len(call.words) > 1 and call.words[-1].isascii() and call.words[-1].isdigit()
    before = call.integer(len(call.words) - 1, 1, 10**9) if has_number else None
    path = Path(" ".join(call.words[:-1] if has_number else call.words))
    try:
        go_record.load(call.game, path, before)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CommandError(f"cannot load file: {reason}") from error
    call.settings.new_game()


def printsgf(call: Call) -> str | None:
    """printsgf [FILE]: the game as SGF, in the answer or written to a file."""
    text = go_record.format_game(call.game, call.settings.result)
    if not call.words or call.words[0] == "-":
        return text
    try:
        Path(" ".join(call.words)).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write file: {error.strerror}") from error
    return None


def query_boardsize(call: Call) -> str:
    """query_boardsize (GNU Go)."""
    height, width = call.game.shape
    return str(height) if height == width else f"{width} {height}"


def list_stones(call: Call) -> str:
    """list_stones COLOUR (GNU Go)."""
    wanted = -1 if call.colour() else 1
    points = np.flatnonzero(call.game.board.reshape(-1) == wanted).tolist()
    return " ".join(map(call.format_vertex, points))


def move_history(call: Call) -> str:
    """move_history (GNU Go): newest first."""
    return "\n".join(
        f"{'white' if colour else 'black'} {call.format_vertex(action)}"
        for colour, action in reversed(call.game.moves)
    )


def last_move(call: Call) -> str:
    """last_move (GNU Go)."""
    if not call.game.moves:
        raise CommandError("no previous move known")
    return move_history(call).split("\n", 1)[0]


COMMANDS: dict[str, Command] = {
    "boardsize": boardsize,
    "rectangular_boardsize": rectangular_boardsize,
    "query_boardsize": query_boardsize,
    "clear_board": clear_board,
    "komi": komi,
    "get_komi": lambda call: f"{call.game.komi:g}",
    "fixed_handicap": fixed_handicap,
    "place_free_handicap": place_free_handicap,
    "set_free_handicap": set_free_handicap,
    "get_handicap": lambda call: str(call.game.num_handicap),
    "set_position": set_position,
    "showboard": showboard,
    "list_stones": list_stones,
    "loadsgf": loadsgf,
    "printsgf": printsgf,
    "last_move": last_move,
    "move_history": move_history,
}
