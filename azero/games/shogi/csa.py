"""Shogi games in the CSA format, version 2.2 (Computer Shogi Association,
www2.computer-shogi.org/protocol/record_v22.html). Host side only."""

import re
from collections.abc import Iterator, Sequence

from azero.games.archives import RecordError
from azero.games.shogi.position import HAND_KINDS, SET_SIZES
from azero.games.shogi.records import MoveList, Ratings, ShogiGame, read_rating
from azero.games.shogi.sfen import (
    LETTERS,
    START,
    digits_of,
    format_hands,
    parse_square,
    square_of_digits,
)
from azero.games.shogi.text import ShogiBoard, board_of_sfen, format_usi

PIECES = ("", "FU", "KY", "KE", "GI", "KA", "HI", "KI", "OU", "TO", "NY", "NK", "NG", "UM", "RY")
"""Kinds by their codes."""
VERDICTS = {
    "%TORYO": "opponent",
    "%TSUMI": "opponent",
    "%TIME_UP": "opponent",
    "%ILLEGAL_MOVE": "opponent",
    "%+ILLEGAL_ACTION": "white",
    "%-ILLEGAL_ACTION": "black",
    "%KACHI": "mover",
    "%SENNICHITE": "draw",
    "%JISHOGI": "draw",
    "%HIKIWAKE": "draw",
    "%MAX_MOVES": "draw",
}
"""Winner by special move: the side to move ("mover"), the other side ("opponent"), a colour, or
none. Others (%CHUDAN, %MATTA, %ERROR) leave it open."""

_COMMENT = re.compile(r"(?:^|,)\s*'")
"""The beginning of a comment, which goes on to the line's end; AobaZero writes them after moves."""
_MOVE = re.compile(r"([+-])(\d\d)(\d\d)([A-Z]{2})")


def parse_games(
    content: str, name: str, skipped: list[RecordError] | None = None
) -> Iterator[ShogiGame]:
    """Yield the games of CSA text, which a line "/" separates; `name` says where it comes from.
    With `skipped` their moves need not be legal, and it gets an error for every game that cannot be
    read.

    Raises:
      ValueError: there is no game in the text, it is not CSA, or a move is not legal; `name`, the
        number of the game and the line are quoted.
    """
    lines = content.replace("\r\n", "\n").replace("\r", "\n")
    games = re.split(r"^/[ \t]*$", lines, flags=re.MULTILINE)
    number, line = 0, 1
    for text in games:
        if text.strip():
            number += 1
            try:
                game = _Reader(f"{name} game {number}", line, skipped is None).read(text)
            except RecordError as error:
                if skipped is None:
                    raise
                skipped.append(error)
            else:
                yield game
        line += text.count("\n")
    if number == 0:
        raise RecordError(name, "there is no game in it")


class _Reader:
    """Reads one game."""

    def __init__(self, name: str, first_line: int, is_checked: bool) -> None:
        self.name, self.number, self.is_checked = name, first_line - 1, is_checked
        self.ratings: Ratings = (None, None)
        self.players = {"+": "", "-": ""}
        self.pieces: dict[int, str] = {}
        """pieces by square as in SFEN"""
        self.hands: dict[str, dict[str, int]] = {"+": {}, "-": {}}
        self.line: MoveList | None = None
        self.ending = self.winner = ""
        self.facts: list[tuple[str, str]] = []

    def read(self, text: str) -> ShogiGame:
        for row in text.split("\n"):
            self.number += 1
            self.ratings = read_rating(row, self.ratings)
            try:
                if row[:1] in ("N", "$"):  # a name or a fact may have commas in it
                    self.statement(row)
                    continue
                statements, *comment = _COMMENT.split(row, maxsplit=1)
                for statement in statements.split(","):
                    self.statement(statement.strip())
                if comment and self.line is not None:
                    self.line.comment(comment[0])
            except ValueError as error:
                raise RecordError(f"{self.name}, line {self.number}", error) from error
        if self.line is None:
            raise RecordError(self.name, "it does not say who moves first (a line + or -)")
        return ShogiGame(
            self.name,
            self.players["+"],
            self.players["-"],
            self.line.sfen,
            tuple(self.line.actions),
            self.winner,
            self.ending,
            tuple(self.facts),
            tuple(self.line.comments),
            self.ratings,
        )

    def statement(self, statement: str) -> None:
        if statement[:2] in ("N+", "N-"):
            self.players[statement[1]] = statement[2:]
        elif statement[:1] == "$":
            name, _, value = statement[1:].strip().partition(":")
            self.facts.append((name, value))
        elif statement[:1] == "P":
            self.setup(statement)
        elif statement in ("+", "-") and self.line is None:
            self.line = MoveList(self.sfen(statement), self.is_checked)
        elif match := _MOVE.fullmatch(statement):
            self.move(*match.groups())
        elif statement[:1] == "%" and self.line is not None:
            if not self.winner:  # %MATTA may stand before the special move that ends the game.
                self.winner = self.line.winner(VERDICTS.get(statement, ""))
                self.ending = statement if self.winner or not self.ending else self.ending
        elif statement[:1] not in ("V", "T", ""):
            raise ValueError(f"{statement!r} is not CSA")

    def move(self, sign: str, start: str, end: str, piece: str) -> None:
        if self.line is None or (sign == "-") != self.line.board.is_white or piece not in PIECES:
            raise ValueError(f"{sign}{start}{end}{piece} is not a move of the side to play")
        code = PIECES.index(piece)
        if start == "00":
            usi = f"{LETTERS[code]}*{square_of_digits(end)}" if code in HAND_KINDS else "?"
        else:
            was = self.line.board.pieces[parse_square(square_of_digits(start))].upper()
            becomes = LETTERS[code]
            if was not in (becomes, becomes.lstrip("+")):
                raise ValueError(f"{sign}{start}{end}{piece} moves a piece that is not there")
            usi = square_of_digits(start) + square_of_digits(end) + ("+" if was != becomes else "")
        self.line.play(usi, f"{sign}{start}{end}{piece}")

    def setup(self, row: str) -> None:
        if row.startswith("PI"):
            board = board_of_sfen(START)
            self.pieces = {square: piece for square, piece in enumerate(board.pieces) if piece}
            for square, _ in _squares(row):
                self.pieces.pop(parse_square(square_of_digits(square)), None)
        elif re.match(r"P[1-9]", row):
            for file, cell in enumerate(re.findall(r".{3}|.+", row[2:].ljust(27)[:27])):
                if cell.strip() not in ("*", ""):
                    self.put(f"{9 - file}{row[1]}", cell[0], cell[1:3])
        elif row[1:2] in ("+", "-"):
            for square, piece in _squares(row):
                self.put(square, row[1], piece)
        else:
            raise ValueError(f"{row!r} is not CSA")

    def put(self, square: str, sign: str, piece: str) -> None:
        if piece == "AL" and sign in self.hands:  # all remaining pieces of the set
            self.rest(sign)
            return
        if sign not in self.hands or piece not in PIECES[1:]:
            raise ValueError(
                f"{sign}{piece} is not a piece; they are + or - and {' '.join(PIECES[1:])}"
            )
        letter = LETTERS[PIECES.index(piece)]
        if square == "00":
            self.hands[sign][letter] = self.hands[sign].get(letter, 0) + 1
        else:
            self.pieces[parse_square(square_of_digits(square))] = (
                letter if sign == "+" else letter.lower()
            )

    def rest(self, sign: str) -> None:
        for code in HAND_KINDS:
            letter = LETTERS[code]
            used = sum(piece.upper().lstrip("+") == letter for piece in self.pieces.values()) + sum(
                hand.get(letter, 0) for hand in self.hands.values()
            )
            self.hands[sign][letter] = self.hands[sign].get(letter, 0) + SET_SIZES[code] - used

    def sfen(self, sign: str) -> str:
        rows = (
            "".join(self.pieces.get(9 * rank + file) or "1" for file in range(9))
            for rank in range(8, -1, -1)
        )
        return (
            f"{'/'.join(rows)} {'b' if sign == '+' else 'w'} "
            f"{format_hands(self.hands['+'], self.hands['-'])} 1"
        )


def _squares(row: str) -> list[tuple[str, str]]:
    """Return the squares and pieces of a row PI82HI22KA or P+00FU."""
    if not re.fullmatch(r"P.(\d\d[A-Z]{2})*", row):
        raise ValueError(f"{row!r} is not CSA")
    return re.findall(r"(\d\d)([A-Z]{2})", row)


def format_move(board: ShogiBoard, action: int) -> str:
    """Return a legal move in CSA notation: +7776FU, -0055KA."""
    usi, sign = format_usi(board, action), "-" if board.is_white else "+"
    if usi[1] == "*":
        return f"{sign}00{digits_of(usi[2:])}{PIECES[LETTERS.index(usi[0])]}"
    piece = board.pieces[parse_square(usi[:2])].upper()
    becomes = PIECES[LETTERS.index(f"+{piece}" if usi.endswith("+") else piece)]
    return f"{sign}{digits_of(usi[:2])}{digits_of(usi[2:4])}{becomes}"


def format_csa(
    actions: Sequence[int],
    sfen: str = START,
    black: str = "",
    white: str = "",
    ending: str = "",
    comments: Sequence[str] = (),
    facts: Sequence[tuple[str, str]] = (),
    ratings: Ratings = (None, None),
) -> str:
    """Return a game of legal moves from the position `sfen` as CSA text: with the names of the
    players, the special move at its end (%TORYO; none if empty), the comments of the moves ("" for
    none), one line of CSA for each of their lines, and facts and ratings (see `ShogiGame`)."""
    board = board_of_sfen(sfen)
    black, white = (" ".join(name.splitlines()) for name in (black, white))
    lines = ["V2.2"] + [f"N{sign}{name}" for sign, name in (("+", black), ("-", white)) if name]
    lines += [f"${name}:{value}" for name, value in facts]
    lines += [
        f"'{side}_rate:{name}:{rating}"
        for side, name, rating in zip(("black", "white"), (black, white), ratings, strict=True)
        if rating is not None
    ]
    for rank in range(8, -1, -1):
        cells = (board.pieces[9 * rank + file] for file in range(9))
        lines.append(f"P{9 - rank}" + "".join(_cell(piece) if piece else " * " for piece in cells))
    for sign, hand in zip("+-", board.hands, strict=True):
        if pieces := "".join(
            f"00{PIECES[LETTERS.index(letter)]}" * count for letter, count in hand.items()
        ):
            lines.append(f"P{sign}{pieces}")
    lines.append("-" if board.is_white else "+")
    for ply, action in enumerate(actions):
        lines.append(format_move(board, action))
        comment = comments[ply] if ply < len(comments) else ""
        lines += ["'" + " ".join(line.split()) for line in comment.splitlines()]
        board = board.after(action)
    return "\n".join([*lines, *([ending] if ending else []), ""])


def resignation(sfen: str, num_moves: int, black_wins: bool) -> str:
    """Return the special move by which the loser resigns `num_moves` moves after the position
    `sfen`. %TORYO is for the side to move; the other side has no special move but that of a
    foul."""
    is_white = board_of_sfen(sfen).is_white != (num_moves % 2 == 1)
    return "%TORYO" if is_white == black_wins else foul(black_wins)


def foul(black_wins: bool) -> str:
    """Return the special move of a game that the loser ended by a foul."""
    return "%-ILLEGAL_ACTION" if black_wins else "%+ILLEGAL_ACTION"


def _cell(piece: str) -> str:
    return ("+" if piece.isupper() else "-") + PIECES[LETTERS.index(piece.upper())]
