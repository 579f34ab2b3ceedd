"""Chess games in portable game notation (PGN standard, 1994; import format in, export format out).
Host side only."""

import codecs
import functools
import io
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from azero.games.archives import RecordError, Text, read_texts, with_compressed, without_utf16
from azero.games.chess.fen import complete_fen
from azero.games.chess.san import DASHES, GLYPHS
from azero.games.chess.text import START, ChessBoard, board_of_fen, format_san, parse_fen, parse_san
from azero.games.expanding import TooLargeError
from azero.games.notes import Note

SUFFIXES = with_compressed((".pgn",))
"""Of files of games."""
ROSTER = ("Event", "Site", "Date", "Round", "White", "Black", "Result")
"""Tags that every game has, in this order (PGN standard, section 8.1.1)."""
VARIANTS = ("", "?", "standard", "chess", "classical", "normal", "illegal", "from position")
"""Values of the tag Variant, in lower case, with the rules of chess (python-chess, chess.variant).
Chess960 is not among them: its castling rights are not those of chess."""
NULL_MOVES = ("--", "Z0")
"""How programs write that a side does not move, in analyses (python-chess, ChessBase)."""
RESULTS = {(1, -1): "1-0", (-1, 1): "0-1", (0, 0): "1/2-1/2"}
MARKS = {"!": 1, "?": 2, "!!": 3, "??": 4, "!?": 5, "?!": 6}
"""Glyphs by the suffixes of moves that mean them (PGN standard, section 8.2.3.8)."""

_END = r"(?=[\s(){};<]|\Z)"
# In a tag's value programs leave quotation marks and backslashes as they are; the last quotation
# mark before "]" ends it.
# "<...>" is reserved (section 7). Informators and ChessBase write evaluations as symbols, N and TN
# for a novelty and D for a diagram.
_TOKEN = re.compile(
    rf"""\$(?P<glyph>[0-9]{{1,3}}\b) | (?P<mark>[!?]{{1,2}}(?![!?]))
    | (?P<skip>\s+ | ^%[^\n]* | <[^>\n]*> | \$\d+ | \d*[.…]+ | \d+(?=\s)
        | [!?‼⁇⁈⁉±∓⩲⩱∞□○⟳↑→⇆⊕∆⌓]+ | (?!--)[=+/~{DASHES}-]+{_END} | (?:e\.?p\.?|mate|TN|N|D){_END})
    | ;(?P<remark>[^\n]*) | \{{(?P<comment>[^}}]*)\}}
    | \[\s*(?P<tag>[A-Za-z0-9][\w+#=:-]*)\s*"
        (?P<value>(?:[^"\\\n]|\\\\|\\"(?!\s*\][ \t]*$)|\\|"(?!\s*\]))*+)"\s*\]
    | (?P<open>\() | (?P<close>\))
    | (?P<result>1[:{DASHES}-]0|0[:{DASHES}-]1|(?:1/2|½)(?:[:{DASHES}-](?:1/2|½))?|\*)
    | (?P<move>[A-Za-z0{GLYPHS}-][^\s(){{}};$!?\[\]<‼⁇⁈⁉±∓⩲⩱∞□]*)""",
    re.VERBOSE | re.MULTILINE,
)

_TAG_LINE = re.compile(r'\s*\[\s*[A-Za-z0-9][\w+#=:-]*\s*"')
_REMARKS = ("%", ";")
"""What begins a line that is not part of a game, where it stands before the tags."""
LONGEST_GAME = 16 << 20
"""Bytes of one game when games are read one by one; one with a comment on every move has a few
thousand."""


@dataclass(frozen=True)
class PgnGame:
    """The main line of one game."""

    name: str
    """source: the file and the number of the game in it"""
    tags: Mapping[str, str]
    moves: tuple[str, ...]
    """as they are written"""
    comments: tuple[str, ...]
    """of the moves, "" where there is none; those before the first move and in variations are
    left out"""
    result: str
    """1-0, 0-1, 1/2-1/2, or * for an unknown one; that of the tag where the moves end without"""
    glyphs: tuple[tuple[int, ...], ...]
    """of the moves, as `Note` has them"""

    @property
    def fen(self) -> str:
        """Start position."""
        return self.tags.get("FEN", START)

    @property
    def rewards(self) -> tuple[float, float] | None:
        """Results of White and Black, +1, -1 or 0; None if unknown."""
        return {result: rewards for rewards, result in RESULTS.items()}.get(self.result)

    @property
    def is_resigned(self) -> bool:
        """False: PGN does not say whether a player resigned."""
        return False

    @property
    def ratings(self) -> tuple[float | None, float | None]:
        """Elo ratings of White and Black; None where there is none."""
        white, black = (
            float(rating) if (rating := self.tags.get(name, "").strip()).isdecimal() else None
            for name in ("WhiteElo", "BlackElo")
        )
        return white, black

    @functools.cached_property
    def actions(self) -> tuple[int, ...]:
        """The moves as actions (`azero.games.chess.moves`).

        Raises:
          ValueError: the first position or a move is not valid; the name and the number of the move
            are quoted.
        """
        actions, place = [], self.name
        try:
            check_start(self.fen, self.tags.get("Variant", ""))
            board = board_of_fen(self.fen)
            for move in self.moves:
                place = f"{self.name}, move {board.plies // 2 + 1}"
                if move in NULL_MOVES:
                    raise ValueError(f"{move!r} is a null move, which a game cannot have")
                action = parse_san(board, move)
                actions.append(action)
                board = board.after(action)
        except ValueError as error:
            raise RecordError(place, error) from error
        return tuple(actions)


def check_start(fen: str, variant: str) -> None:
    """Check the first position of a game, and its tag Variant.

    Raises:
      ValueError: it is not a position of chess, or the game has other rules.
    """
    if variant.strip().lower() not in VARIANTS:
        raise ValueError(f"the variant {variant!r} has other rules than chess")
    parse_fen(fen)


def read_games(path: str | Path, skipped: list[RecordError] | None = None) -> Iterator[PgnGame]:
    """Yield the games of a file: .pgn or .pgn.gz, .tar.gz or .zip of such files. With `skipped` the
    file may be of any size, moves need not be legal, and it gets an error for every game, or file
    in an archive, that cannot be read.

    Raises:
      ValueError: the file has another suffix or cannot be read, or without `skipped` a game is not
        valid; the place and the reason are named.
    """
    if skipped is not None:
        yield from parse_texts(read_texts(Path(path), SUFFIXES, split_games), skipped)
        return
    for name, content, problem in read_texts(Path(path), SUFFIXES):
        if problem:
            raise RecordError(name, problem)
        yield from parse_games(decode(content), name)


def parse_texts(texts: Iterable[Text], skipped: list[RecordError]) -> Iterator[PgnGame]:
    """Yield the games of texts, each with one game or several, whose moves need not be legal;
    `skipped` gets an error for every game that cannot be read."""
    number, last = 0, ""
    for name, content, problem in texts:
        number, last = (number if name == last else 0), name
        try:
            if problem:
                raise RecordError(name, problem)
            for game in parse_unchecked(decode(content), name, number + 1):
                number += 1
                yield game
        except RecordError as error:
            number += 1
            skipped.append(error)


def split_games(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the texts of a file, each from the tags of a game to the next tags.

    Raises:
      TooLargeError: one is longer than LONGEST_GAME.
    """
    lines: list[str] = []
    size, has_tags, has_moves, in_comment = 0, False, False, False
    # Any line ends; the bytes stay as they are.
    text = io.TextIOWrapper(file, encoding="latin-1")
    mark = codecs.BOM_UTF8.decode("latin-1")
    while line := text.readline(LONGEST_GAME).removeprefix(mark):
        is_tag = _TAG_LINE.match(line) is not None
        # A comment may quote tags; after an empty line they are those of a game, and the comment
        # before them has no end.
        if is_tag and has_moves and not (in_comment and lines[-1].strip()):
            yield "".join(lines).encode("latin-1")
            lines, size, has_moves, in_comment = [], 0, False, False
        if "{" in line or "}" in line:
            in_comment = line.rfind("{") > line.rfind("}")
        has_tags = has_tags or is_tag
        is_text = not (is_tag or line.isspace() or line.startswith(_REMARKS))
        has_moves = has_moves or (has_tags and is_text)
        lines.append(line)
        size += len(line)
        if size >= LONGEST_GAME:
            raise TooLargeError(f"a game of more than {LONGEST_GAME >> 20} MiB")
    yield "".join(lines).encode("latin-1")


def decode(content: bytes) -> str:
    """Return the text of bytes in UTF-8, in UTF-16 with its mark or, if they are neither, in
    Latin-1 (PGN standard, section 4.1)."""
    content = without_utf16(content)
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
    for game in parse_unchecked(content, name):
        _ = game.actions  # raises if a move is not legal
        yield game


def parse_unchecked(content: str, name: str, first: int = 1) -> Iterator[PgnGame]:
    """Yield the games of PGN text, whose moves need not be legal; the number of the first is
    `first`.

    Raises:
      ValueError: there is no game in the text, or it is not PGN; `name`, the number of the game and
        the line are quoted.
    """
    tags: dict[str, str] = {}
    moves: list[tuple[str, list[str], list[int]]] = []
    depth, number, place = 0, first, 0

    def finish(written: str) -> PgnGame:
        result = _plain_result(written)
        if result == "*":
            result = _plain_result(tags.get("Result", ""))
        return PgnGame(
            f"{name} game {number}",
            tags,
            tuple(move for move, _, _ in moves),
            tuple(" ".join(words) for _, words, _ in moves),
            result,
            tuple(tuple(glyphs) for _, _, glyphs in moves),
        )

    content = re.sub(r"\r\n?", "\n", content)  # a comment may end with the line
    while place < len(content):
        match = _TOKEN.match(content, place)
        if match is None:
            line = content.count("\n", 0, place) + 1
            raise RecordError(
                f"{name} game {number}, line {line}", f"{content[place : place + 20]!r} is not PGN"
            )
        place = match.end()
        if match.lastgroup == "skip":
            continue
        depth += (match["open"] is not None) - (match["close"] is not None)
        if depth < 0:
            raise RecordError(f"{name} game {number}", "a ')' closes no variation")
        if match["tag"] and moves and not depth:  # the game before has no result
            yield finish("*")
            tags, moves, number = {}, [], number + 1
        if match["tag"]:
            tags[match["tag"]] = re.sub(r'\\([\\"])', r"\1", match["value"])
        elif match["move"] and not depth:
            moves.append((match["move"], [], []))
        elif (comment := match["comment"] or match["remark"]) and moves and not depth:
            moves[-1][1].extend(comment.split())
        elif (glyph := match["glyph"] or MARKS.get(match["mark"])) and moves and not depth:
            moves[-1][2].append(int(glyph))
        elif match["result"] and not depth:
            yield finish(match["result"])
            tags, moves, number = {}, [], number + 1
    if depth:
        raise RecordError(f"{name} game {number}", "a variation is not closed")
    if tags or moves:
        yield finish("*")
    elif number == first:
        raise RecordError(name, "there is no game in it")


def _plain_result(written: str) -> str:
    """Return one of RESULTS as the standard writes it; * for anything else."""
    result = re.sub(f"[:{DASHES}]", "-", written).replace("½", "1/2")
    result = "1/2-1/2" if result == "1/2" else result
    return result if result in RESULTS.values() else "*"


def format_pgn(
    actions: Sequence[int],
    tags: Mapping[str, str] | None = None,
    result: str = "*",
    fen: str = START,
    notes: Sequence[Note] = (),
) -> str:
    """Return a game of legal moves from the position `fen` as PGN text. Tags of the roster that are
    missing become "?"; `result` is one of RESULTS or *; `notes` belong to the moves, and there may
    be fewer."""
    given = dict(tags or {}) | {"Result": result}
    if fen != START:
        given |= {"SetUp": "1", "FEN": " ".join(complete_fen(fen))}
    names = [*ROSTER, *(name for name in given if name not in ROSTER)]
    header = [
        f'[{name} "{_escape(given.get(name, "????.??.??" if name == "Date" else "?"))}"]'
        for name in names
    ]
    words = " ".join([*_movetext(board_of_fen(fen), actions, notes), result])
    lines = textwrap.wrap(words, 79, break_on_hyphens=False, break_long_words=False)
    # Readers pass over a line that begins with % (section 6).
    lines = [f" {line}" if line.startswith("%") else line for line in lines]
    return "\n".join([*header, "", *lines, "", ""])


def _movetext(board: ChessBoard, actions: Sequence[int], notes: Sequence[Note]) -> list[str]:
    """Return moves as words, with their notes and variations."""
    words: list[str] = []
    for ply, action in enumerate(actions):
        if (
            not board.is_black or ply == 0 or words[-1][-1] in "})"
        ):  # Black's move has its number after a comment or a variation (section 8.2.2.2)
            words.append(f"{board.plies // 2 + 1}." + ("" if not board.is_black else ".."))
        words.append(format_san(board, action))
        note = notes[ply] if ply < len(notes) else Note()
        words += [f"${glyph}" for glyph in note.glyphs]
        if note.comment:
            words.append("{" + note.comment.replace("}", ")") + "}")
        for line in note.variations:
            first, *others = _movetext(board, line, ())
            words += [f"({first}", *others]
            words[-1] += ")"
        board = board.after(action)
    return words


def _escape(text: str) -> str:
    """Return a text as the value of a tag, on one line."""
    return " ".join(text.splitlines()).replace("\\", "\\\\").replace('"', '\\"')
