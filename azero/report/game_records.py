"""Games of self-play and of matches as one file for other programs: SGF, PGN or CSA."""

import heapq
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from azero.data.files import writing_atomic
from azero.data.run_files import board_directories, read_config
from azero.data.shard import RESIGNED, read_replay
from azero.games.game import Game
from azero.games.go.rules import Go
from azero.games.go.settings import GoConfig
from azero.games.settings import GameConfig
from azero.match.directory import MATCH, read_match
from azero.match.games import MatchGame
from azero.match.records import RECORDS, Occasion
from azero.match.referee import PLAYED_OUT
from azero.report.pieces import start_of
from azero.selfplay.trajectory import NO_NETWORK

_SEPARATORS = {".sgf": "", ".pgn": "\n", ".csa": "/\n"}
"""Separator between games in a collection: SGF's grammar of collections, a blank line (PGN
standard, section 8.2.1), a line of one slash (CSA 2.2)."""
_OCCASION = Occasion(event="azero self-play")
_FORMATS = ", ".join(f"{suffix} of {game}" for game, (suffix, _) in RECORDS.items())


def export_games(source: Path, out: Path, last: int | None = None) -> int:
    """Write the games of a run (its self-play games in the replay, oldest first) or of a match
    (`azero match --out`), or only the `last` ones, to one file, whose suffix is that of the game's
    format.

    Returns:
      The number of games.

    Raises:
      ValueError: there are no games, the game has no file format, the suffix is wrong, or the file
        is a record of the match itself.
      StorageError: the file cannot be written.
    """
    is_match = (source / MATCH).exists()
    texts = _match_texts(source, out) if is_match else _run_texts(source, out, last)
    chosen = iter(texts if last is None else deque(texts, maxlen=last))
    first = next(chosen, None)
    if first is None:
        raise ValueError(f"{source} has no games")
    separator = _SEPARATORS[out.suffix].encode()
    out.parent.mkdir(parents=True, exist_ok=True)
    with writing_atomic(out) as file:
        file.write(first.encode())
        count = 1
        for text in chosen:
            file.write(separator + text.encode())
            count += 1
    return count


def _check_suffix(name: str, out: Path) -> None:
    if name not in RECORDS:
        raise ValueError(f"there is no file format for games of {name}, only {_FORMATS}")
    if out.suffix != RECORDS[name][0]:
        raise ValueError(f"{out}: a file of {name} games ends in {RECORDS[name][0]}")


def _match_texts(directory: Path, out: Path) -> Iterator[str]:
    """Yield the records that a match has written, in the order of the games."""
    read_match(directory)
    suffixes = {suffix: name for name, (suffix, _) in RECORDS.items()}
    # Reviews and earlier exports may be beside them: game0001.review.sgf, games.sgf.
    paths = sorted(
        (
            path
            for path in directory.glob("game*.*")
            if path.suffix in suffixes and path.stem.removeprefix("game").isdecimal()
        ),
        key=lambda path: (len(path.name), path.name),  # game9999 comes before game10000
    )
    if not paths:
        raise ValueError(f"{directory} has no games in a format of other programs: {_FORMATS}")
    _check_suffix(suffixes[paths[0].suffix], out)
    if out.name in (path.name for path in paths) and out.parent.resolve() == directory.resolve():
        raise ValueError(f"{out} is a record of the match itself; use another name")
    for path in paths:
        yield path.read_text(encoding="utf-8")


def _run_texts(workdir: Path, out: Path, last: int | None) -> Iterator[str]:
    """Yield the games of self-play in the replay of a run, on all its boards, oldest first; of each
    board only the `last` ones."""
    config = read_config(workdir)
    rules, has_auxiliary = config.game, config.learner.needs_auxiliary_targets
    _check_suffix(rules.name, out)
    boards = []
    for size, directory in board_directories(workdir).items():
        own = rules
        if size is not None and isinstance(rules, GoConfig):
            own = rules.on_board(size)
        boards.append(_board_texts(directory, own, has_auxiliary, last))
    for _, text in heapq.merge(*boards, key=lambda game: game[0]):
        yield text


def _board_texts(
    directory: Path, rules: GameConfig, has_auxiliary: bool, last: int | None
) -> Iterator[tuple[int, str]]:
    """Yield the games in the replay in a directory, oldest first, each after the iteration of the
    network that made its last move."""
    board, write = rules.build(), RECORDS[rules.name][1]
    for _, (rows, _), games in read_replay(directory, board, has_auxiliary, last):
        starts = np.cumsum(games["length"]) - games["length"]
        for entry, start in zip(games, starts.tolist(), strict=True):
            played = rows[start : start + int(entry["length"])]
            game, names = _as_match_game(rules, board, entry, played)
            network = entry["network"][1] if "network" in entry.dtype.names else NO_NETWORK
            yield int(network), write(game, _rules_of(rules, board, played), names, _OCCASION)


def _as_match_game(
    rules: GameConfig, board: Game, entry: Any, rows: np.ndarray
) -> tuple[MatchGame, tuple[str, str]]:
    """Return a game of self-play, with its entry and rows of a shard, and the players' names."""
    first, second = (float(result) for result in entry["result"])
    is_resigned = bool(entry["flags"] & RESIGNED)
    actions, begin = rows["action"].tolist(), rows[0]
    start = (begin["frame"], int(begin["to_play"]), actions[0])
    game = MatchGame(
        number=int(entry["number"]) + 1,
        opening=None,
        first_is_black=True,
        reward=float(np.sign(first - second)),
        actions=tuple(action for action in actions if action >= 0),  # without a resignation
        num_opening_moves=0,
        ending="resignation" if is_resigned else PLAYED_OUT,
        start=start_of(rules.name, board.board_shape, *start),
    )
    name = "azero"
    if "network" in (entry.dtype.names or ()):  # of the first and of the last move
        begin, end = entry["network"].tolist()
        name += f", iteration {begin}" if begin == end else f", iterations {begin} to {end}"
    return game, (name, name)


def _rules_of(rules: GameConfig, board: Game, rows: np.ndarray) -> Game:
    """Return the rules of one game: where the planes show the komi, it has its own."""
    if not isinstance(board, Go):
        return board
    return rules.replace(komi=board.komi_of(rows["frame"][0]), selfplay_komis=()).build()
