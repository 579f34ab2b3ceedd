"""Openings of a match from a file: a collection of SGF games, or lines of moves."""

from __future__ import annotations

from pathlib import Path

from azero.games.game import Game
from azero.games.go.sgf import SUFFIXES, GameRecord, read_games
from azero.play.player import Position


def read_openings(path: Path, game: Game, num_moves: int | None = None) -> list[tuple[int, ...]]:
    """Return the openings of a file as actions, each one legal and not the end of the game; of equal ones the first stays.

    Args:
      path: SGF (see `azero.games.go.sgf.read_games`), or a text with the moves of one opening on each line, as people write them ("E5 C3 pass"), separated by
        blanks or commas; what follows a # is a remark.
      game: the rules.
      num_moves: moves to take of each; None is all of them.

    Raises:
      ValueError: the file cannot be read, or an opening is not possible in this game; its place is named.
    """
    if num_moves is not None and num_moves < 1:
        raise ValueError(f"an opening has at least one move, not {num_moves}")
    if path.name.lower().endswith(SUFFIXES):
        openings = [_of_record(record, game, num_moves) for record in read_games(path)]
    else:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"cannot read {path}: {error}") from error
        openings = [_of_line(line, f"{path.name}, line {number}", game, num_moves) for number, line in enumerate(lines, start=1)]
    chosen = list(dict.fromkeys(opening for opening in openings if opening))
    if not chosen:
        raise ValueError(f"there is no opening in {path}")
    return chosen


def _of_record(record: GameRecord, game: Game, num_moves: int | None) -> tuple[int, ...]:
    if game.name != "go" or record.board_shape != game.board_shape:
        raise ValueError(f"{record.name} is a game on {record.board_shape[0]}x{record.board_shape[1]}, the match is {game.name} on {game.board_shape}")
    if record.black_points or record.white_points or record.to_play:
        raise ValueError(f"{record.name} does not begin on the empty board with Black to move")
    moves = record.moves[:num_moves]
    if any(colour != ply % 2 for ply, (colour, _) in enumerate(moves)):
        raise ValueError(f"{record.name}: the players do not take turns")
    names = Position.start(game)
    return _checked([names.action_name(action) for _, action in moves], record.name, game)


def _of_line(line: str, place: str, game: Game, num_moves: int | None) -> tuple[int, ...]:
    return _checked(line.partition("#")[0].replace(",", " ").split()[:num_moves], place, game)


def _checked(moves: list[str], place: str, game: Game) -> tuple[int, ...]:
    position = Position.start(game)
    for move in moves:
        try:
            position = position.play(position.parse_action(move))
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error
        if position.is_over:
            raise ValueError(f"{place}: the game is over after move {len(position.actions)}; an opening leaves something to play")
    return position.actions
