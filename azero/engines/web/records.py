"""Game records that visitors open: SGF, PGN, CSA, KIF and KI2, as games on the network's board."""

import functools
import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from azero.engines.web.go_adapter import GoAdapter
from azero.engines.web.networks import ServedNetwork
from azero.engines.web.squares_adapter import SquaresAdapter
from azero.games.archives import RecordError, Text, find_game, without_utf16
from azero.games.chess import pgn
from azero.games.chess.text import START as CHESS_START
from azero.games.go.sgf import GameRecord, parse_games
from azero.games.quoting import reason
from azero.games.shogi.record_files import PARSERS, Parser, decode, special_move
from azero.games.shogi.records import Ratings, ShogiGame
from azero.games.shogi.sfen import START as SHOGI_START

SUFFIXES = {".sgf": "go", ".pgn": "chess"} | dict.fromkeys(PARSERS, "shogi")
"""Games by the suffixes of their records."""
KEPT_TAGS = (
    *("Event", "Site", "Date", "Round", "WhiteElo", "BlackElo", "WhiteTitle", "BlackTitle"),
    *("WhiteTeam", "BlackTeam", "WhiteFideId", "BlackFideId", "EventDate", "TimeControl"),
    *("UTCDate", "UTCTime", "Annotator"),
)
"""Tags of PGN that are true of a game however it is continued."""


class Record(NamedTuple):
    """A record that has been read."""

    game: str
    shape: tuple[int, int]
    players: tuple[str, str]
    go: GameRecord | None = None
    actions: tuple[int, ...] = ()
    start: str = ""
    """FEN or SFEN; empty for the usual position."""
    result: str = ""
    """In the words of the format in which the page saves the game; empty if it is not known."""
    said: str = ""
    """The result as the record gives it, for people."""
    tags: Mapping[str, str] = {}
    """Tags of PGN, or facts of CSA, that a saved game keeps."""
    comments: tuple[str, ...] = ()
    """Of the moves, "" where there is none; there may be fewer."""
    ratings: Ratings = (None, None)
    """Of the players of shogi; those of chess are among the tags."""
    place: tuple[int, int] = (1, 1)
    """Its number in the file, and the number of games there."""


def read_record(name: str, content: bytes, number: int = 1) -> Record:
    """Read the game with the given number of a file called `name`.

    Raises:
      ValueError: the format is unknown, or the record is not valid; the place is named.
    """
    suffix = "." + name.rpartition(".")[2].lower()
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise ValueError(f"{name[:60]!r} is not a game record; the suffixes are {known}")
    if not content.strip():
        raise ValueError(f"{name[:60]!r} is empty")
    try:
        skipped: list[RecordError] = []
        make, parse = _READERS[suffix]
        games = list(parse(name, content, skipped))
        record = make(find_game(games, skipped, name, number))
        return record._replace(place=(number, len(games) + len(skipped)))
    except (UnicodeError, RecursionError) as error:
        raise ValueError(f"{name[:60]!r} cannot be read: {reason(error)}") from error


def _parse_sgf(name: str, content: bytes, skipped: list[RecordError]) -> Iterator[GameRecord]:
    return parse_games(content, name, skipped)


def _of_go(record: GameRecord) -> Record:
    shape, result, comments = record.board_shape, record.result, record.comments
    return Record("go", shape, record.players, record, (), "", result, result, comments=comments)


def _parse_pgn(name: str, content: bytes, skipped: list[RecordError]) -> Iterator[pgn.PgnGame]:
    parts = pgn.split_games(io.BytesIO(without_utf16(content)))
    return pgn.parse_texts((Text(name, part) for part in parts), skipped)


def _of_chess(game: pgn.PgnGame) -> Record:
    players = (game.tags.get("White", ""), game.tags.get("Black", ""))
    start = "" if game.fen == CHESS_START else game.fen
    result = "" if game.result == "*" else game.result
    tags = {name: game.tags[name] for name in KEPT_TAGS if name in game.tags}
    return Record(
        "chess", (8, 8), players, None, game.actions, start, result, result, tags, game.comments
    )


def _parse_shogi(
    parse: Parser, name: str, content: bytes, skipped: list[RecordError]
) -> Iterator[ShogiGame]:
    return parse(decode(content), name, skipped)


def _of_shogi(game: ShogiGame) -> Record:
    start, players = "" if game.sfen == SHOGI_START else game.sfen, (game.black, game.white)
    return Record(
        "shogi",
        (9, 9),
        players,
        actions=game.actions,
        start=start,
        result=special_move(game),
        said=game.verdict,
        tags=dict(game.facts),
        comments=game.comments,
        ratings=game.ratings,
    )


_Parse = Callable[[str, bytes, list[RecordError]], Iterator[Any]]
_READERS: dict[str, tuple[Callable[[Any], Record], _Parse]] = {
    ".sgf": (_of_go, _parse_sgf),
    ".pgn": (_of_chess, _parse_pgn),
    **{
        suffix: (_of_shogi, functools.partial(_parse_shogi, parse))
        for suffix, parse in PARSERS.items()
    },
}
"""By suffix: what makes a record of a game, and the games of a text (name, text, list for errors).
"""


def open_record(network: ServedNetwork, record: Record) -> GoAdapter | SquaresAdapter:
    """Return the game of a record, played to its end, on the network's board.

    Raises:
      ValueError: the record is longer than games may be here, or a move is illegal under our rules.
    """
    count = len(record.actions if record.go is None else record.go.moves)
    if count > network.limits.moves:
        most = network.limits.moves
        raise ValueError(f"the record has {count:,} moves; {most:,} are the most here")
    if record.go is not None:
        board = GoAdapter(network)
        board.replay(record.go)
        return board
    squares = SquaresAdapter(network, record.start, record.tags, record.ratings)
    for number, action in enumerate(record.actions, 1):
        try:
            squares.play(0, action)
        except ValueError as error:
            raise ValueError(f"move {number} is illegal, or the game was over before it") from error
    return squares
