"""How the games of a match start: with openings from game collections, from lines of moves, or at
random; or from given positions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from azero.games.chess import pgn
from azero.games.chess.text import START as CHESS_START
from azero.games.game import Game
from azero.games.go import sgf
from azero.games.position import Position
from azero.games.positions import read_positions
from azero.games.quoting import reason
from azero.games.shogi import record_files
from azero.games.shogi.records import ShogiGame
from azero.games.shogi.sfen import START as SHOGI_START
from azero.match.external import Pairing
from azero.match.request import MatchRequest
from azero.players.thinking import describe_board

MATERIAL = {"p": 1, "n": 3, "b": 3, "r": 5, "q": 9}
"""Values of the pieces, in pawns (Shannon 1950, 'Programming a Computer for Playing Chess', section
3)."""
_CHESS = ("chess", "minichess")


class Start(NamedTuple):
    """A position that a game begins with."""

    text: str
    """FEN or SFEN"""
    stronger: int | None
    """Chess: the side with more material, 0 White and 1 Black; None if they are equal, and in other
    games."""


def draw_pairings(request: MatchRequest, game: Game) -> list[Pairing]:
    """Return the games of a match: its openings or positions in turn, each one with both colours
    before the next, unless the first player has a side of its own.

    Raises:
      ValueError: a file cannot be read, or something in it is not possible in this game; its place
        is named.
    """
    numbers = range(1, request.games + 1)
    if request.handicap is not None:
        return [Pairing(number, first_colour=1) for number in numbers]
    if request.start_positions is not None:
        starts = read_starts(
            request.start_positions, game, need_stronger=request.first_side == "stronger"
        )
        pairings = []
        for number in numbers:
            both_sides = request.first_side is None
            index = ((number - 1) // 2 if both_sides else number - 1) % len(starts)
            colour = None if both_sides else starts[index].stronger
            pairings.append(
                Pairing(number, index + 1, start=starts[index].text, first_colour=colour)
            )
        return pairings
    if request.random_plies is not None:
        openings = draw_openings(game, request.games // 2, request.random_plies, request.seed)
    elif request.openings is not None:
        openings = read_openings(request.openings, game, request.opening_moves)
    else:
        return [Pairing(number) for number in numbers]
    return [
        Pairing(number, index + 1, openings[index])
        for number in numbers
        for index in [(number - 1) // 2 % len(openings)]
    ]


def read_starts(path: Path, game: Game, need_stronger: bool = False) -> list[Start]:
    """Return the positions of a file (see `read_positions`), each once.

    Raises:
      ValueError: the file cannot be read, a position is not possible, or, with `need_stronger`, has
        no stronger side.
    """
    if need_stronger and game.name not in _CHESS:
        raise ValueError(f"first-side stronger is for chess positions, not {game.name}")
    starts = [
        Start(line, stronger_side(line) if game.name in _CHESS else None)
        for line in dict.fromkeys(read_positions(game, path)[0])
    ]
    even = next((start.text for start in starts if start.stronger is None), None)
    if need_stronger and even is not None:
        raise ValueError(
            f"{path}: in {even!r} neither side has more material; first-side stronger needs one"
        )
    return starts


def stronger_side(fen: str) -> int | None:
    """Return the side of a FEN with more material, 0 White and 1 Black; None if they are equal."""
    pieces = fen.split()[0]
    balance = sum(
        MATERIAL[piece] * (pieces.count(piece.upper()) - pieces.count(piece)) for piece in MATERIAL
    )
    return None if balance == 0 else int(balance < 0)


def read_openings(path: Path, game: Game, num_moves: int | None = None) -> list[tuple[int, ...]]:
    """Return the openings of a file as actions, each one legal and not the end of the game,
    without repeats.

    Args:
      path: a game collection (SGF for Go, PGN for chess, CSA, KIF or KI2 for shogi; see
        `read_games` of each), or a text with the moves of one opening on each line, as people
        write them ("E5 C3 pass", "e2e4 e7e5"), separated by blanks or commas; what
        follows a # is a comment.
      game: the rules.
      num_moves: moves to take of each; None is all of them.

    Raises:
      ValueError: the file cannot be read, or an opening is not possible in this game; its place is
        named.
    """
    if num_moves is not None and num_moves < 1:
        raise ValueError(f"an opening has at least one move, not {num_moves}")
    suffixes, read, of_record = _COLLECTIONS.get(game.name, ((), None, None))
    if read is not None and path.name.lower().endswith(suffixes):
        openings = [of_record(record, game, num_moves) for record in read(path)]
    else:
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"cannot read {path}: {reason(error)}") from error
        openings = [
            _follow(_words(line)[:num_moves], f"{path}, line {number}", game)
            for number, line in enumerate(lines, start=1)
        ]
    chosen = list(dict.fromkeys(opening for opening in openings if opening))
    if not chosen:
        raise ValueError(f"no opening in {path}")
    return chosen


def draw_openings(
    game: Game, count: int, plies: int, seed: int | Sequence[int]
) -> list[tuple[int, ...]]:
    """Return `count` openings of `plies` moves, each drawn uniformly from the legal ones; none of
    them ends the game, and they are all different if that is possible."""
    openings: dict[tuple[int, ...], None] = {}
    random = np.random.default_rng(seed)
    for _ in range(20 * count):
        position = Position.start(game)
        while len(position.actions) < plies and not position.is_over:
            position = position.play(int(random.choice(np.flatnonzero(position.legal))))
        if not position.is_over:
            openings[position.actions] = None
        if len(openings) == count:
            break
    if not openings:
        raise ValueError(f"random-plies {plies}: every such game of {game.name} was over")
    return list(openings)


def _sgf_opening(record: sgf.GameRecord, game: Game, num_moves: int | None) -> tuple[int, ...]:
    if record.board_shape != game.board_shape:
        raise ValueError(
            f"{record.name} is a game on {record.board_shape[0]}x{record.board_shape[1]}, but the "
            f"match is {describe_board(game)}"
        )
    if record.black_points or record.white_points or record.to_play:
        raise ValueError(f"{record.name} does not start on the empty board with Black to move")
    moves = record.moves[:num_moves]
    if any(colour != ply % 2 for ply, (colour, _) in enumerate(moves)):
        raise ValueError(f"{record.name}: the players do not take turns")
    names = Position.start(game)
    return _follow([names.action_name(action) for _, action in moves], record.name, game)


def _record_opening(
    record: pgn.PgnGame | ShogiGame, game: Game, num_moves: int | None
) -> tuple[int, ...]:
    start, usual = (
        (record.fen, CHESS_START) if isinstance(record, pgn.PgnGame) else (record.sfen, SHOGI_START)
    )
    if start != usual:
        raise ValueError(f"{record.name} does not start from the game's own start position")
    return _follow(record.actions[:num_moves], record.name, game)


_COLLECTIONS: dict[str, tuple[tuple[str, ...], Any, Any]] = {
    "go": (sgf.SUFFIXES, sgf.read_games, _sgf_opening),
    "chess": (pgn.SUFFIXES, pgn.read_games, _record_opening),
    "shogi": (record_files.SUFFIXES, record_files.read_games, _record_opening),
}
"""Collections of games by game: the suffixes of their files, what reads the games of one, and what
returns the opening of a game."""


def _words(line: str) -> list[str]:
    return line.partition("#")[0].replace(",", " ").split()


def _follow(moves: Sequence[str | int], place: str, game: Game) -> tuple[int, ...]:
    """Return the actions of an opening, each of which must be legal and leave something to play."""
    position = Position.start(game)
    for move in moves:
        try:
            position = position.play(position.parse_action(move) if isinstance(move, str) else move)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
        if position.is_over:
            raise ValueError(
                f"{place}: the game is over after move {len(position.actions)}; an opening must "
                "not end the game"
            )
    return position.actions
