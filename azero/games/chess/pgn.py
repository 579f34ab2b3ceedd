"""Chess games in portable game notation (PGN standard, 1994; import format in, export format out).
Host side only."""

from __future__ import annotations

import re
import textwrap
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from azero.games.chess.text import START, board_of_fen, format_san, parse_san
from azero.games.expanding import Budget
from azero.games.quoting import reason, shorten

SUFFIXES = (".pgn", ".pgn.gz")
ROSTER = ("Event", "Site", "Date", "Round", "White", "Black", "Result")
"""Tags that every game has, in this order (PGN standard, section 8.1.1)."""
VARIANTS = (
    *("", "?", "standard", "chess", "classical", "normal", "illegal", "from position"),
    *("chess960", "chess 960", "fischerandom", "fischerrandom", "fischer random"),
)
"""Values of the tag Variant, in small letters, with the rules of chess (python-chess,
chess.variant); castling of Chess960 fails at its FEN."""
NULL_MOVES = ("--", "Z0")
"""How programs write that a side does not move, in analyses (python-chess, ChessBase)."""
RESULTS = {(1, -1): "1-0", (-1, 1): "0-1", (0, 0): "1/2-1/2"}

# In a tag's value programs leave quotation marks as they are; the last one before "]" ends it.
_TOKEN = re.compile(
    r"""(?P<skip>\s+ | ^%[^\n]* | \$\d+ | [!?]+ | \d*\.+ | \d+(?=\s) | e\.p\.)
    | ;(?P<remark>[^\n]*) | \{(?P<comment>[^}]*)\}
    | \[\s*(?P<tag>[A-Za-z0-9][\w+#=:-]*)\s*"(?P<value>(?:[^"\\\n]|\\.|"(?!\s*\]))*)"\s*\]
    | (?P<open>\() | (?P<close>\))
    | (?P<result>1-0|0-1|1/2(?:-1/2)?|\*)
    | (?P<move>[A-Za-z0-][^\s(){};$!?\[\]]*)""",
    re.VERBOSE | re.MULTILINE,
)


@dataclass(frozen=True)
class PgnGame:
    """The main line of one game."""

    name: str
    """source: the file and the number of the game in it"""
    tags: Mapping[str, str]
    fen: str
    """start position"""
    actions: tuple[int, ...]
    """as in `azero.games.chess.moves`"""
    result: str
    """1-0, 0-1, 1/2-1/2, or * for an unknown one; that of the tag where the moves end without"""
    comments: tuple[str, ...] = ()
    """of the moves, "" where there is none; those before the first move and in variations are
    left out"""


def read_games(path: str | Path) -> Iterator[PgnGame]:
    """Yield the games of a .pgn or .pgn.gz file.

    Raises:
      ValueError: the file has another suffix or cannot be read, or a game is not valid; the place
        and the reason are named.
    """
    path = Path(path)
    name = path.name.lower()
    if not name.endswith(SUFFIXES):
        raise ValueError(
            f"{path.name} is not a file of chess games: the suffixes are {', '.join(SUFFIXES)}"
        )
    try:
        with path.open("rb") as file:
            budget = Budget(path.name, path.stat().st_size)
            content = budget.read(budget.gunzip(file) if name.endswith(".gz") else file, path.name)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"cannot read {path}: {reason(error)}") from error
    yield from parse_games(decode(content), path.name)


def decode(content: bytes) -> str:
    """Return the text of bytes in UTF-8 or, if they are not, in Latin-1 (PGN standard, section
    4.1)."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def parse_games(content: str, name: str) -> Iterator[PgnGame]:
    """Yield the games of PGN text, without annotations and variations; `name` says where it comes
    from.

    Raises:
      ValueError: there is no game in the text, it is not PGN, or a move is not legal; `name`, the
        number of the game and the line are quoted.
    """
    tags: dict[str, str] = {}
    moves: list[tuple[str, str]] = []
    depth, number, place = 0, 1, 0

    def finish(result: str) -> PgnGame:
        return _record(f"{name} game {number}", tags, moves, result)

    content = re.sub(r"\r\n?", "\n", content)  # a comment may end with the line
    while place < len(content):
        match = _TOKEN.match(content, place)
        if match is None:
            line = content.count("\n", 0, place) + 1
            raise ValueError(
                f"{name} game {number}, line {line}: {content[place : place + 20]!r} is not PGN"
            )
        place = match.end()
        depth += (match["open"] is not None) - (match["close"] is not None)
        if depth < 0:
            raise ValueError(f"{name} game {number}: a variation ends that has not begun")
        if match["tag"] and moves and not depth:  # the game before has no result
            yield finish("*")
            tags, moves, number = {}, [], number + 1
        if match["tag"]:
            tags[match["tag"]] = re.sub(r"\\(.)", r"\1", match["value"])
        elif match["move"] and not depth:
            moves.append((match["move"], ""))
        elif (comment := match["comment"] or match["remark"]) and moves and not depth:
            move, before = moves[-1]
            moves[-1] = (move, f"{before} {' '.join(comment.split())}".strip())
        elif match["result"] and not depth:
            yield finish("1/2-1/2" if match["result"] == "1/2" else match["result"])
            tags, moves, number = {}, [], number + 1
    if depth:
        raise ValueError(f"{name} game {number}: a variation does not end")
    if tags or moves:
        yield finish("*")
    elif number == 1:
        raise ValueError(f"{name}: there is no game in it")


def _record(name: str, tags: dict[str, str], moves: list[tuple[str, str]], result: str) -> PgnGame:
    """Play the moves of one game.

    Raises:
      ValueError: its first position or a move is not valid; `name` and the number of the move are
        quoted.
    """
    fen, place = tags.get("FEN", START), name
    actions = []
    try:
        if (variant := tags.get("Variant", "")).strip().lower() not in VARIANTS:
            raise ValueError(f"the variant {variant!r} has other rules than chess")
        board = board_of_fen(fen)
        for move, _ in moves:
            place = f"{name}, move {board.plies // 2 + 1}"
            if move in NULL_MOVES:
                raise ValueError(f"{move!r} is a null move, which a game cannot have")
            action = parse_san(board, move)
            actions.append(action)
            board = board.after(action)
    except ValueError as error:
        raise ValueError(f"{place}: {shorten(error)}") from error
    comments = tuple(comment for _, comment in moves)
    if result == "*" and (stated := tags.get("Result", "")) in RESULTS.values():
        result = stated
    return PgnGame(name, tags, fen, tuple(actions), result, comments)


def format_pgn(
    actions: Sequence[int],
    tags: Mapping[str, str] | None = None,
    result: str = "*",
    fen: str = START,
    comments: Sequence[str] = (),
) -> str:
    """Return a game of legal moves from the position `fen` as PGN text. Tags of the roster that are
    missing become "?"; `result` is one of RESULTS or *; comments of moves are empty for none, and
    there may be fewer than moves."""
    given = dict(tags or {}) | {"Result": result}
    if fen != START:
        given |= {"SetUp": "1", "FEN": fen}
    names = [*ROSTER, *(name for name in given if name not in ROSTER)]
    header = [
        f'[{name} "{_escape(given.get(name, "????.??.??" if name == "Date" else "?"))}"]'
        for name in names
    ]
    board = board_of_fen(fen)
    words: list[str] = []
    for ply, action in enumerate(actions):
        if (
            not board.is_black or ply == 0 or words[-1].endswith("}")
        ):  # Black's move has its number after a comment (section 8.2.2.2)
            words.append(f"{board.plies // 2 + 1}." + ("" if not board.is_black else ".."))
        words.append(format_san(board, action))
        if comment := comments[ply] if ply < len(comments) else "":
            words.append("{" + comment.replace("}", ")") + "}")
        board = board.after(action)
    return "\n".join(
        [
            *header,
            "",
            *textwrap.wrap(
                " ".join([*words, result]), 79, break_on_hyphens=False, break_long_words=False
            ),
            "",
            "",
        ]
    )


def _escape(text: str) -> str:
    """Return a text as the value of a tag, on one line."""
    return " ".join(text.splitlines()).replace("\\", "\\\\").replace('"', '\\"')
