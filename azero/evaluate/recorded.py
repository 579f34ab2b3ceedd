"""Recorded games of Go, chess and shogi as a first position and the moves from there."""

from dataclasses import dataclass
from typing import cast

from azero.games.chess.pgn import PgnGame
from azero.games.chess.text import START as CHESS_START
from azero.games.game import Game
from azero.games.go.rules import Go
from azero.games.go.sgf import GameRecord
from azero.games.position import Position, position_of, start_of_record
from azero.games.shogi.records import ShogiGame
from azero.games.shogi.sfen import START as SHOGI_START

Record = GameRecord | PgnGame | ShogiGame
"""A game of Go, chess or shogi as its file has it."""


@dataclass(frozen=True)
class RecordedGame:
    """A recorded game."""

    record: Record
    start: Position
    """The first position; handicap stones are on the board."""
    moves: tuple[tuple[int, int], ...]
    """(0 the first mover of the game or 1, action); colours of Go need not alternate."""
    first_number: int
    """Number of the first of the moves in the record, from 1."""
    players: tuple[str, str]
    """Names, with ranks or ratings where they are known; empty where there are none."""
    facts: tuple[tuple[str, str], ...]
    """The result, the date and the like: name and text."""


def recorded_game(record: Record, game: Game) -> RecordedGame:
    """Return a game of Go, chess or shogi, played by the rules of `game`. Whether its moves are
    legal is not checked in Go and shogi.

    Raises:
      ValueError: the first position is impossible, or a move is not legal; it is quoted.
    """
    if isinstance(record, GameRecord):
        return _of_go(record, game)
    if isinstance(record, PgnGame):
        start, tags = record.fen, record.tags
        is_usual, players = start == CHESS_START, (tags.get("White", ""), tags.get("Black", ""))
        facts = [("result", "" if record.result == "*" else record.result)]
        facts += [(name.lower(), tags.get(name, "")) for name in ("Date", "Event", "Opening")]
        _ = record.actions  # raises with the place of an impossible position
    else:
        start, is_usual = record.sfen, record.sfen == SHOGI_START
        players, facts = (record.black, record.white), [("result", record.verdict)]
        facts += [(name.lower().replace("_", " "), text) for name, text in record.facts]
    position = Position.start(game) if is_usual else position_of(start, game)
    ranks = ["" if rating is None else f"{rating:.0f}" for rating in record.ratings]
    return RecordedGame(
        record,
        position,
        tuple(((position.to_play + ply) % 2, action) for ply, action in enumerate(record.actions)),
        1,
        _with_ranks(players, ranks),
        _known(facts),
    )


def _of_go(record: GameRecord, game: Game) -> RecordedGame:
    start, moves, skipped = start_of_record(record, cast(Go, game))
    facts = [("result", record.result), ("date", record.date), ("rules", record.rules)]
    facts.append(("komi", "" if record.komi is None else f"{record.komi:g}"))
    players = _with_ranks(record.players, record.ranks)
    return RecordedGame(record, start, tuple(moves), 1 + skipped, players, _known(facts))


def _with_ranks(names: tuple[str, str], ranks: list[str] | tuple[str, str]) -> tuple[str, str]:
    first, second = (
        f"{name} {rank}".strip() if _is_known(name) else ""
        for name, rank in zip(names, ranks, strict=True)
    )
    return first, second


def _known(facts: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, text) for name, text in facts if _is_known(text))


def _is_known(text: str) -> bool:
    """Return whether a text says something: PGN has question marks for what is not known."""
    return bool(text.strip("?. "))
