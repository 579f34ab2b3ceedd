"""A game in progress as SGF, and an SGF file as a game in progress."""

from __future__ import annotations

import math
import string
from pathlib import Path

import numpy as np

from azero.engines.go_game import GoGame
from azero.games.go.sgf import GameRecord, parse_games

_LETTERS = string.ascii_lowercase


def format_game(game: GoGame, result: str = "") -> str:
    """Return the game as SGF FF[4]: set-up stones, handicap, moves in the order played; `result` as the RE property has it."""
    height, width = game.shape
    size = str(height) if height == width else f"{width}:{height}"
    superko, suicide = game.rules.superko, game.rules.suicide
    head = [f"GM[1]FF[4]CA[UTF-8]AP[azero]SZ[{size}]KM[{game.komi:g}]"]
    head.append("RU[Tromp-Taylor]" if superko == "positional" and suicide else f"RU[ko:{superko} area:1 suicide:{int(suicide)}]")
    head.append(f"HA[{game.num_handicap}]" if game.num_handicap else "")
    head.append(f"RE[{result}]" if result else "")
    for name, colour in (("AB", 1), ("AW", -1)):
        points = np.flatnonzero(game.first_board.reshape(-1) == colour)
        head.append(name + "".join(f"[{_point(int(point), width)}]" for point in points) if points.size else "")
    head.append("PL[W]" if game.first_to_play else "PL[B]" if game.first_board.any() else "")
    nodes = [f";{'BW'[colour]}[{_point(action, width) if action < height * width else ''}]" for colour, action in game.moves]
    rows = ["".join(nodes[index : index + 10]) for index in range(0, len(nodes), 10)]
    return "\n".join(["(;" + "".join(head), *rows]) + ")"


def _point(point: int, width: int) -> str:
    return _LETTERS[point % width] + _LETTERS[point // width]


def load(game: GoGame, path: Path, before: int | None = None) -> None:
    """Replace `game` by the main line of the (first) game in an SGF file, up to before move number `before`.

    Komi changes if the file names one that is possible; rules stay. On failure the game stays as it was.

    Raises:
      OSError: the file cannot be read.
      ValueError: it is no SGF, of a board that cannot be played on, or a move is illegal.
    """
    record = next(iter(parse_games(path.read_bytes(), path.name)), None)
    if record is None:
        raise ValueError("there is no game in it")
    game.check_shape(record.board_shape)
    _replay(game, record, before)


def _replay(game: GoGame, record: GameRecord, before: int | None) -> None:
    kept = game.snapshot()
    try:
        game.clear(record.board_shape)
        if record.komi is not None and abs(record.komi) <= math.prod(record.board_shape) and not (2 * record.komi) % 1:
            game.set_komi(record.komi)
        if record.black_points or record.white_points or record.to_play:
            handicap = len(record.black_points) if record.to_play == 1 and not record.white_points else 0
            game.set_up(record.black_points, record.white_points, record.to_play, handicap)
        for number, (colour, action) in enumerate(record.moves[: None if before is None else before - 1], start=1):
            try:
                game.play(colour, action)
            except ValueError as error:
                raise ValueError(f"move {number} is illegal") from error
    except ValueError:
        game.restore(kept)
        raise
