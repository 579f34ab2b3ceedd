"""Game records of Go: SGF files and collections as records (FF[4], red-bean.com/sgf). Host side
only."""

import dataclasses
import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from azero.games.archives import RecordError, count_in_texts, read_texts, with_compressed
from azero.games.go import setup
from azero.games.go.settings import LARGEST_KOMI
from azero.games.go.sgf_text import (
    LETTERS,
    Node,
    decode,
    main_line,
    plain_game,
    split_games,
    unescape,
)

SUFFIXES = with_compressed((".sgf",))
"""Of files of games."""

MOST_SET_UP_POINTS = 100_000
"""Each point of the largest board (52x52) 37 times; a few characters can name all points, and a
file may repeat them."""
MOST_POINTS_OF_KOMI = 100
"""A larger komi is in hundredths, as the Fox server writes it, if it is a multiple of 25."""
_WINNER_IN_WORDS = re.compile(r"(?:([黑黒흑])|[白백])[^黑黒흑白백負负敗败패]*[胜勝승]")
"""A result in Chinese, Japanese or Korean: 黑中盘胜, 白半目勝ち, 흑불계승."""
_WIN = re.compile(r"(B|W)(?:LACK|HITE)?(?: ?[+＋] ?| WINS?\b(?: BY\b)? ?)(.*)")
"""A result: "B+3.5"; "White+R" and "Black wins by 3.5" as some programs write it."""
_RESIGNED = re.compile(r"(B|W)(?:LACK|HITE)? RESIGN(?:S|ED)?")
"""A result that names the loser."""
_KOMI = re.compile(
    r"([+-]?)(\d+(?:[.,]\d*)?|[.,]\d+)(?:(?:又|\s)\s*(\d)/([24]))?\s*"
    r"(?:([目点子집호])\s*([半반])?|points?|pts?\.?|moku)?",
    re.IGNORECASE,
)
"""A komi: 6.5, 6目半, 3又3/4子 (MultiGo)."""
_HANDICAP = re.compile(r"(\d{1,4})(?:\.0*)?\s*(?:[子目点점]|stones?)?", re.IGNORECASE)
_DIGITS = str.maketrans(
    {numeral: str(digit) for digit, numeral in enumerate("〇一二三四五六七八九")}
)
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_DRAWS = ("0", "DRAW", "JIGO", "和", "和棋", "和局", "平局", "持碁", "持棋", "ジゴ", "무승부", "빅")
KEPT = ("GN", "EV", "RO", "PC", "BT", "WT", "TM", "OT", "ON", "SO", "US", "AN", "CP", "GC", "C")
"""Game information of SGF that is kept as text, and the root's comment."""


@dataclass(frozen=True)
class GameRecord:
    """The main line of one game. Points and actions are numbered as in `azero.games.go.rules.Go`:
    row by row from the top left, then pass."""

    name: str
    """source: the file, and the member or the number of the game in it"""
    board_shape: tuple[int, int]
    """rows and columns"""
    komi: float | None
    """points for White (see `parse_komi`); None if it is missing, not a number, or contradicts the
    result"""
    moves: tuple[tuple[int, int], ...]
    """(0 Black or 1 White, action) in order; the colours of a real record need not alternate"""
    black_points: tuple[int, ...] = ()
    """set-up and handicap stones"""
    white_points: tuple[int, ...] = ()
    to_play: int = 0
    """who moves first: 0 Black, 1 White"""
    result: str = ""
    """the RE property, e.g. "B+R" or "W+2.5"; empty if there is none"""
    rules: str = ""
    """the RU property; empty if there is none"""
    players: tuple[str, str] = ("", "")
    """Black's and White's names"""
    ranks: tuple[str, str] = ("", "")
    """Black's and White's ranks as written (BR and WR), e.g. "9d"; empty where there is none"""
    stated_handicap: int = 0
    """the HA property where it is 2 or more and not the number of Black's set-up stones"""
    date: str = ""
    """the DT property"""
    others: tuple[tuple[str, str], ...] = ()
    """other properties of the root about the game, such as its event (see KEPT), as names and
    texts"""
    comments: tuple[str, ...] = ()
    """one for every move, "" where there is none; empty if the game has no comments"""

    @property
    def size(self) -> int:
        """Points per side of a square board.

        Raises:
          ValueError: the board is not square.
        """
        rows, columns = self.board_shape
        if rows != columns:
            raise ValueError(
                f"{self.name}: a board of {rows} rows and {columns} columns is not square"
            )
        return rows

    @property
    def handicap(self) -> int:
        """Stones that Black was given, as stated, set up or played before White's first; 0 in an
        even game."""
        rows, columns = self.board_shape
        given = setup.count_handicap(
            self.black_points, self.white_points, self.moves, rows * columns
        )
        return max(self.stated_handicap, given)

    @property
    def rewards(self) -> tuple[float, float] | None:
        """The result for Black and White: +1, -1 or 0; None if the record does not say."""
        word = self.result.strip().upper()
        if won := _WIN.match(word):
            return (1.0, -1.0) if won.group(1) == "B" else (-1.0, 1.0)
        if lost := _RESIGNED.fullmatch(word):
            return (1.0, -1.0) if lost.group(1) == "W" else (-1.0, 1.0)
        if in_words := _WINNER_IN_WORDS.search(word):
            return (1.0, -1.0) if in_words.group(1) else (-1.0, 1.0)
        return (0.0, 0.0) if word in _DRAWS else None

    @property
    def is_resigned(self) -> bool:
        """The record says that a player resigned."""
        word = self.result.strip().upper()
        won = _WIN.match(word)
        return bool(won.group(2).startswith("R") if won else _RESIGNED.fullmatch(word))

    @property
    def margin(self) -> float | None:
        """The points by which the game was won, 0 for a draw; None if it was not counted."""
        word = self.result.strip().upper()
        counted = _WIN.match(word)
        if counted and _NUMBER.fullmatch(counted.group(2)):
            return float(counted.group(2))
        return 0.0 if self.rewards == (0.0, 0.0) else None


def read_games(path: str | Path, skipped: list[RecordError] | None = None) -> Iterator[GameRecord]:
    """Yield the games of a file: .sgf or .sgf.gz (one game or a collection), .tar.gz or .zip of
    such files and of such archives.

    Args:
      path: the file.
      skipped: gets an error for every game, or file in an archive, that cannot be read, and
        reading continues; None raises the first one.

    Raises:
      ValueError: the file has another suffix or cannot be read, or a game is not valid SGF (without
        `skipped`); the place and the reason are named.
    """
    for name, content, problem in read_texts(Path(path), SUFFIXES):
        if not problem:
            yield from parse_games(content, name, skipped)
        elif skipped is None:
            raise RecordError(name, problem)
        else:
            skipped.append(RecordError(name, problem))


def estimate_games(path: Path) -> int:
    """Return about how many games `read_games` will yield, without parsing them (variations count,
    too); 0 of a file that cannot be read."""
    return count_in_texts(path, SUFFIXES, b"(;")


def parse_games(
    content: bytes, name: str, skipped: list[RecordError] | None = None
) -> Iterator[GameRecord]:
    """Yield the games of the SGF text `content`; `name` says where it comes from, `skipped` is as
    in `read_games`.

    Raises:
      ValueError: there is no game in it, or one is not valid SGF; `name` and the number of the game
        are quoted.
    """
    games = list(split_games(decode(content)))
    problems = [] if games else [RecordError(name, "no SGF data: there is no '(;' in it")]
    for number, (text, problem) in enumerate(games, start=1):
        place = name if len(games) == 1 else f"{name} game {number}"
        try:
            if problem:
                raise ValueError(problem)
            record = _parse_game(text, place)
        except ValueError as error:
            problems.append(RecordError(place, error))
        else:
            yield record
        if problems and skipped is None:
            break
    if problems and skipped is None:
        raise problems[0]
    if skipped is not None:
        skipped.extend(problems)


def parse_komi(text: str) -> float | None:
    """Return a komi in points, whatever its unit in the file; None if it is not a number, or larger
    than rules allow.

    A multiple of 25 above 100 is in hundredths (the Fox server: 650 is 6.5). Quarters are Chinese
    counting, in which one stone is two points: 3.75, or 375, is 7.5. A unit may follow: points (目,
    点, 집), with a half (6目半), or stones (子); the number may have a fraction (3又3/4子).
    """
    match = _KOMI.fullmatch(_with_digits(text))
    if match is None:
        return None
    sign, number, part, of, unit, half = match.groups()
    komi = float(number.replace(",", ".")) + (int(part) / int(of) if part else 0.0)
    komi = (komi + (0.5 if half else 0.0)) * (-1 if sign == "-" else 1)
    komi = 2 * komi if unit == "子" else komi
    komi = komi / 100 if abs(komi) > MOST_POINTS_OF_KOMI and komi % 25 == 0 else komi
    komi = 2 * komi if (4 * komi) % 2 == 1 else komi
    return komi if abs(komi) <= LARGEST_KOMI else None


def _parse_game(text: str, name: str) -> GameRecord:
    plain = plain_game(text)
    nodes = [plain[0]] if plain else main_line(text)
    root = nodes[0]
    if (game := root.get("GM", ["1"])[0].strip()) != "1":
        raise ValueError(f"GM[{game}] is not Go")
    shape = _parse_size(root)
    black, white, to_play, rest = _parse_setup(nodes, shape)
    moves, comments = _parse_moves(rest, shape)
    if plain:
        moves += [(int(colour == "W"), _action(point, shape)) for colour, point in plain[1]]
        comments += [""] * len(plain[1])
    handicap = _parse_handicap(stated := _text(root, "HA"))
    if not black and (not moves or moves[0][0] == 1):
        if handicap is None and moves:
            raise ValueError(f"HA[{stated}] is not a number of stones, and none are on the board")
        if handicap is not None and handicap >= 2:
            black = tuple(setup.handicap_points(handicap, shape))
    if to_play is None:
        to_play = moves[0][0] if moves else int(bool(black) and not white)
    record = GameRecord(
        name=name,
        board_shape=shape,
        komi=parse_komi(_text(root, "KM")),
        moves=tuple(moves),
        black_points=tuple(sorted(black)),
        white_points=tuple(sorted(white)),
        to_play=to_play,
        result=_text(root, "RE"),
        rules=_text(root, "RU"),
        players=(_text(root, "PB"), _text(root, "PW")),
        ranks=(_text(root, "BR"), _text(root, "WR")),
        stated_handicap=handicap if handicap and handicap not in (1, len(black)) else 0,
        date=_text(root, "DT"),
        others=tuple((name, _text(root, name)) for name in KEPT if name in root),
        comments=tuple(comments) if any(comments) else (),
    )
    return _without_impossible_komi(record)


def _without_impossible_komi(record: GameRecord) -> GameRecord:
    """Drop a komi of 0 where the margin of the result has half a point: the server did not write
    the komi.

    On Fox 2,645 of 3,421 games of professionals have KM[0]; 466 of them give a margin that is a
    number, 311 of these one with half a point, the others just 0.
    """
    if record.komi == 0 and record.margin is not None and record.margin % 1:
        return dataclasses.replace(record, komi=None)
    return record


def _parse_handicap(text: str) -> int | None:
    """Return the stones of HA, 0 where it is empty; None if it is not a number, with or without a
    unit."""
    match = _HANDICAP.fullmatch(_with_digits(text) or "0")
    return int(match.group(1)) if match else None


def _with_digits(text: str) -> str:
    """Return a text with its full-width and Chinese digits as ASCII digits."""
    return unicodedata.normalize("NFKC", text).translate(_DIGITS).strip()


def _parse_size(root: Node) -> tuple[int, int]:
    """Return rows and columns; SZ is 19, or columns:rows."""
    text = root.get("SZ", ["19"])[0].strip()
    sides = [int(side) if side.strip().isdecimal() else 0 for side in text.split(":")]
    if len(sides) > 2 or not all(1 <= side <= len(LETTERS) for side in sides):
        raise ValueError(f"SZ is 1 to {len(LETTERS)} or COLUMNS:ROWS, not {text!r}")
    return sides[-1], sides[0]


def _parse_setup(
    nodes: Sequence[Node], shape: tuple[int, int]
) -> tuple[tuple[int, ...], tuple[int, ...], int | None, Sequence[Node]]:
    """Return Black's and White's stones before the first move, the side to move if it is given, and
    the following nodes."""
    board: dict[int, str] = {}
    num_points = 0
    to_play = None
    first_move = next(
        (index for index, node in enumerate(nodes) if "B" in node or "W" in node), len(nodes)
    )
    for node in nodes[: first_move + 1]:
        for name in ("AB", "AW", "AE"):
            for value in node.get(name, ()):
                points = _points(value, shape)
                num_points += len(points)
                if num_points > MOST_SET_UP_POINTS:
                    raise ValueError(
                        f"stones are set up or taken away on more than "
                        f"{MOST_SET_UP_POINTS:,} points before the first move"
                    )
                board.update(dict.fromkeys(points, name))
        if (turn := _text(node, "PL").strip().upper()[:1]) in ("B", "W", "1", "2"):
            to_play = int(turn in ("W", "2"))
    black, white = (
        tuple(sorted(point for point, name in board.items() if name == wanted))
        for wanted in ("AB", "AW")
    )
    return black, white, to_play, nodes[first_move:]


def _parse_moves(
    nodes: Sequence[Node], shape: tuple[int, int]
) -> tuple[list[tuple[int, int]], list[str]]:
    moves: list[tuple[int, int]] = []
    comments: list[str] = []
    for node in nodes:
        if moves and not node.keys().isdisjoint(("AB", "AW", "AE")):
            raise ValueError("stones are set up in the middle of the game")
        # Bad style, says FF[4] of both colours in one node; they are played in their order there.
        played = [name for name in node if name in ("B", "W")]
        for colour in played:
            moves.append((int(colour == "W"), _action(node[colour][0].strip(), shape)))
            comments.append("")
        if played and "C" in node:
            comments[-1] = unescape(node["C"][0])
    return moves, comments


def _action(point: str, shape: tuple[int, int]) -> int:
    try:
        return _actions(shape)[point]
    except KeyError:
        raise ValueError(
            f"[{point}] is not a point of a board of {shape[0]} rows and {shape[1]} columns"
        ) from None


@functools.lru_cache(maxsize=16)
def _actions(shape: tuple[int, int]) -> dict[str, int]:
    """Return the action of every point by its SGF name; pass is empty, or tt on boards up to 19x19
    (FF[3])."""
    rows, columns = shape
    table = {
        LETTERS[column] + LETTERS[row]: row * columns + column
        for row in range(rows)
        for column in range(columns)
    }
    return {"": rows * columns} | ({"tt": rows * columns} if max(shape) <= 19 else {}) | table


def _points(value: str, shape: tuple[int, int]) -> list[int]:
    """Return the points of a list's element: one point, or a rectangle by two opposite corners, in
    either order."""
    corners = [divmod(_action(corner.strip(), shape), shape[1]) for corner in value.split(":")]
    if len(corners) > 2 or any(row == shape[0] for row, _ in corners):
        raise ValueError(f"[{value}] is not a point to set up")
    (top, left), (bottom, right) = corners[0], corners[-1]
    return [
        row * shape[1] + column
        for row in range(min(top, bottom), max(top, bottom) + 1)
        for column in range(min(left, right), max(left, right) + 1)
    ]


def _text(node: Node, name: str) -> str:
    return unescape(node[name][0]) if name in node else ""
