"""A game in progress as SGF, and an SGF file as a game in progress."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from azero.games.go import sgf_write
from azero.games.go.sgf import GameRecord, parse_games

if TYPE_CHECKING:
    from azero.engines.go_game import GoGame


def format_game(
    game: GoGame,
    result: str = "",
    players: tuple[str, str] = ("", ""),
    moves: Sequence[tuple[int, int]] | None = None,
    opened: GameRecord | None = None,
) -> str:
    """Return the game as SGF FF[4]: set-up stones, handicap, `moves` (colour and action; None takes
    the game's) in the order played. Rules, ranks, date, comments and other texts come from the
    record from which the game was `opened`, if any."""
    black, white = game.first_stones
    kept = opened or GameRecord("game", game.shape, None, ())
    record = dataclasses.replace(
        kept,
        board_shape=game.shape,
        komi=game.komi,
        moves=tuple(game.moves if moves is None else moves),
        black_points=tuple(black),
        white_points=tuple(white),
        to_play=game.first_to_play,
        result=result,
        rules=kept.rules or sgf_write.rules_name(game.rules.superko, game.rules.suicide),
        players=players,
    )
    return sgf_write.format_game(record).rstrip("\n")


def load(game: GoGame, path: Path, before: int | None = None) -> None:
    """Replace `game` by the main line of the (first) game in an SGF file, up to before move number
    `before`.

    Komi changes if the file names one that is possible; rules stay. On failure the game stays as it
    was.

    Raises:
      OSError: the file cannot be read.
      ValueError: it is not SGF, of a board that cannot be played on, or a move is illegal.
    """
    record = next(parse_games(path.read_bytes(), path.name))
    game.check_shape(record.board_shape)
    replay(game, record, before)


def replay(game: GoGame, record: GameRecord, before: int | None = None) -> None:
    """Replace `game` by the main line of a record of its board; the rest as in `load`."""
    kept = game.snapshot()
    try:
        game.clear(record.board_shape)
        komi, black, white = record.komi, record.black_points, record.white_points
        if komi is not None and abs(komi) <= math.prod(record.board_shape) and not 2 * komi % 1:
            game.set_komi(komi)
        if black or white or record.to_play:
            game.set_up(black, white, record.to_play)
        moves = record.moves[: None if before is None else before - 1]
        for number, (colour, action) in enumerate(moves, start=1):
            try:
                game.play(colour, action)
            except ValueError as error:
                raise ValueError(f"move {number} is illegal") from error
    except ValueError:
        game.restore(kept)
        raise
