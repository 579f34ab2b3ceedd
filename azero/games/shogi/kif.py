"""Shogi games in the formats KIF and KI2 of Kifu for Windows (kifu version 2.0), with Japanese
names. Host side only."""

import re
from collections.abc import Iterator

from azero.games.archives import RecordError
from azero.games.shogi import csa, ki2
from azero.games.shogi.names import FILES, LETTERS, NUMERALS, PIECE_NAME, RANKS, destination
from azero.games.shogi.position import HAND_KINDS
from azero.games.shogi.records import MoveList, ShogiGame
from azero.games.shogi.sfen import LETTERS as SFEN_LETTERS
from azero.games.shogi.sfen import START, format_hands, parse_square, square_of_digits
from azero.games.shogi.text import ShogiBoard

_DROPPED = tuple(SFEN_LETTERS[code] for code in HAND_KINDS)
HANDICAPS = {
    "平手": START,
    "香落ち": "lnsgkgsn1/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "右香落ち": "1nsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "角落ち": "lnsgkgsnl/1r7/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "飛車落ち": "lnsgkgsnl/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "飛香落ち": "lnsgkgsn1/7b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "二枚落ち": "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "三枚落ち": "lnsgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "四枚落ち": "1nsgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "五枚落ち": "2sgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "左五枚落ち": "1nsgkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "六枚落ち": "2sgkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "左七枚落ち": "2sgkg3/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "右七枚落ち": "3gkgs2/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "八枚落ち": "3gkg3/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "十枚落ち": "4k4/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
}
"""Start positions, by the name of the handicap."""
SPECIAL_MOVES = {
    "投了": "%TORYO",
    "詰み": "%TSUMI",
    "切れ負け": "%TIME_UP",
    "時間切れ": "%TIME_UP",
    "反則負け": "%ILLEGAL_MOVE",
    "入玉勝ち": "%KACHI",
    "勝ち宣言": "%KACHI",
    "宣言勝ち": "%KACHI",
    "入玉宣言": "%KACHI",
    "千日手": "%SENNICHITE",
    "持将棋": "%JISHOGI",
    "引き分け": "%HIKIWAKE",
    "中断": "%CHUDAN",
}
"""Special moves of CSA by the words that end a game. 反則勝ち has none of its own: CSA says whose
move was illegal."""

VERDICTS = {word: csa.VERDICTS.get(move, "") for word, move in SPECIAL_MOVES.items()}
VERDICTS |= {"反則勝ち": "mover", "不戦勝": "mover", "不戦敗": "opponent"}
"""Winner by the word that ends a game, as `csa.VERDICTS`; other words leave it open."""

FACTS = {
    "棋戦": "EVENT",
    "場所": "SITE",
    "開始日時": "START_TIME",
    "終了日時": "END_TIME",
    "戦型": "OPENING",
}
"""Names of headers in CSA."""

_SIDE = "[▲△▼▽☗☖]?"
"""The mark of the side, which a move may begin with; whose move it is follows from the game."""
_ROW = re.compile(r"\s*([0-9]+)\s+(.*?)\s*(?:\(\s*[0-9]+:[0-9:/ ]+\))?\s*\+?\s*$")
_MOVE = re.compile(
    rf"{_SIDE}(?:([{FILES}])([{RANKS}])|同\s*)({PIECE_NAME})\s*"
    r"(?:(打)|(成|不成)?\(([0-9])([0-9])\))"
)
_HEADER = re.compile(r"([^：:]+)[：:](.*)")
"""A fact before the moves; some programs write the colon in its half-width form."""
_RESULT = re.compile(
    r"まで、?\s*\d+手で(?:\w*により)?(?:(先手|後手|下手|上手)の\w*?(勝ち|負け)|(\w+))"
)
"""The line under the moves; it has the result where the last row of the moves leaves it open."""
_LIKE_A_MOVE = re.compile(rf"{_SIDE}(?:[１-９同]|[1-9][{RANKS}])|.*(?:打|\([0-9]+\))$")
"""What cannot be the word that ends a game."""
_COLOURS = {"先手": "black", "下手": "black", "後手": "white", "上手": "white"}


def parse_games(
    content: str, name: str, skipped: list[RecordError] | None = None
) -> Iterator[ShogiGame]:
    """Yield the game of KIF text, its main line alone; `name` says where it comes from. With
    `skipped`, which is for `csa.parse_games`, its moves need not be legal.

    Raises:
      ValueError: the text is not KIF, or a move is not legal; `name` and the line are quoted.
    """
    reader = _Reader(f"{name} game 1", skipped is None)
    try:
        for row in content.splitlines():
            if row.startswith("変化"):
                break
            reader.row(row)
        line = reader.begin()
        if not reader.is_kif:
            raise ValueError("there is no header, diagram or move in KIF up to here")
    except ValueError as error:
        raise RecordError(f"{reader.name}, line {reader.number}", error) from error
    yield ShogiGame(
        reader.name,
        reader.players["black"],
        reader.players["white"],
        line.sfen,
        tuple(line.actions),
        reader.winner,
        reader.ending,
        tuple(reader.facts),
        tuple(line.comments),
    )


class _Reader:
    """Reads one game."""

    def __init__(self, name: str, is_checked: bool) -> None:
        self.name, self.number, self.is_checked = name, 0, is_checked
        self.players = {"black": "", "white": ""}
        self.handicap = "平手"
        self.rows: list[str] = []
        self.hands: dict[str, dict[str, int]] = {"black": {}, "white": {}}
        self.side = "b"
        self.line: MoveList | None = None
        self.ending = self.winner = ""
        self.facts: list[tuple[str, str]] = []
        self.is_kif = False
        """a line of the format was found"""

    def begin(self) -> MoveList:
        """Return the moves of the game; the first call fixes the start position."""
        if self.line is None:
            if self.rows:
                sfen = (
                    f"{'/'.join(self.rows)} {self.side} "
                    f"{format_hands(self.hands['black'], self.hands['white'])} 1"
                )
            elif self.handicap in HANDICAPS:
                sfen = HANDICAPS[self.handicap]
            else:
                raise ValueError(
                    f"the handicap {self.handicap!r} needs a diagram; those without one are "
                    f"{' '.join(HANDICAPS)}"
                )
            self.line = MoveList(sfen, self.is_checked)
        return self.line

    def row(self, row: str) -> None:
        self.number += 1
        if row[:1] == "*" and self.line is not None:
            self.line.comment(row[1:])
        if row[:1] in ("#", "*", "&", ""):
            return
        if (self.ending or self.winner) and _ROW.match(row):
            raise ValueError("another game begins after the end of one; a KIF file has one game")
        if self.ending:
            self.result(row)
        elif row.startswith(tuple(ki2.MARKS)):
            self.ki2_moves(row)
        elif row.startswith("|"):
            self.is_kif = True
            self.rows.append(_board_row(row))
        elif row.startswith(("後手番", "上手番")):
            self.side = "w"
        elif match := _ROW.match(row):
            self.is_kif = True
            self.move(match[2])
        elif self.line is None and (match := _HEADER.match(row)):
            self.header(*match.groups())
        else:
            self.result(row)

    def header(self, key: str, value: str) -> None:
        self.is_kif, value = True, value.strip()
        if key == "手合割" and value:
            self.handicap = value
        elif key in _COLOURS:
            self.players[_COLOURS[key]] = value
        elif key.endswith("の持駒") and key[:2] in _COLOURS:
            self.hands[_COLOURS[key[:2]]] = _hand(value)
        elif key in FACTS and value:
            self.facts.append((FACTS[key], value))

    def result(self, row: str) -> None:
        """Take the result from `row` if it is the line under the moves, and the last row of the
        moves leaves the winner open."""
        match = _RESULT.match(row)
        if match is None or self.winner:
            return
        side, outcome, word = match.groups()
        if side:
            named = _COLOURS[side]
            other = "white" if named == "black" else "black"
            self.winner = named if outcome == "勝ち" else other
        elif word in SPECIAL_MOVES:
            self.ending = self.ending or word
            self.winner = self.begin().winner(VERDICTS[word])

    def ki2_moves(self, row: str) -> None:
        """Play a row of moves in KI2, which say little without the legal moves."""
        self.is_kif = self.is_checked = True
        line = self.begin()
        for move in ki2.split_moves(row):
            if not isinstance(line.board, ShogiBoard):
                raise ValueError(f"{move[0]!r} is in KI2, and the moves before it are in KIF")
            line.play(ki2.find_move(line.board, move, line.last_square), repr(move[0]))

    def move(self, text: str) -> None:
        line = self.begin()
        match = _MOVE.match(text)
        if match is None:
            if not text or _LIKE_A_MOVE.match(text):
                raise ValueError(f"{text!r} is not a move in KIF")
            self.ending, self.winner = text, line.winner(VERDICTS.get(text, ""))
            return
        digit, numeral, piece, drop, promotes, file, rank = match.groups()
        end = destination(digit, numeral, line.last_square)
        letter = LETTERS[piece]
        if drop:
            usi = f"{letter}*{end}" if letter in _DROPPED else "?"
        else:
            if "0" in (file, rank):
                raise ValueError(f"{text!r} does not start from a square of the board")
            start = square_of_digits(file + rank)
            if line.board.pieces[parse_square(start)].upper() != letter:
                raise ValueError(f"{text!r} moves a piece that is not there")
            usi = start + end + ("+" if promotes == "成" else "")
        line.play(usi, repr(text))


def _board_row(row: str) -> str:
    """Return one rank in SFEN from a row of a diagram: |v香v桂 ・ ...|一."""
    cells = re.findall(r"([ v^])(\S)", row[1:].split("|")[0])
    letters = {"・": "1", ".": "1"} | LETTERS
    if len(cells) != 9 or any(piece not in letters for _, piece in cells):
        raise ValueError(f"{row!r} is not a rank of a diagram")
    return "".join(
        letters[piece].lower() if side == "v" else letters[piece] for side, piece in cells
    )


def _hand(value: str) -> dict[str, int]:
    """Return pieces in hand of 飛　金二　歩十八, or なし for none."""
    hand: dict[str, int] = {}
    for item in value.split():
        if item == "なし":
            continue
        if LETTERS.get(item[0]) not in _DROPPED or not re.fullmatch(rf"十?[{NUMERALS}]?", item[1:]):
            raise ValueError(f"{item!r} is not pieces in hand")
        units = item[1:].lstrip("十")
        count = (10 if "十" in item else 0) + (NUMERALS.index(units) + 1 if units else 0)
        hand[LETTERS[item[0]]] = count or 1
    return hand
