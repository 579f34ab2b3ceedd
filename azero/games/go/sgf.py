"""Game records of Go: a thin reader on sgfmill (an optional extra). Host side only."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azero.games.go import setup

SUFFIXES = (".sgf", ".sgf.gz", ".tar.gz", ".tgz", ".zip")


@dataclass(frozen=True)
class GameRecord:
    """The main line of one game. Points and actions are numbered as in `azero.games.go.rules.Go`."""

    name: str
    """where it comes from: the file, and the member or the number of the game in it"""
    size: int
    komi: float | None
    """as written, which some servers do in units of their own; None if it is missing or no number"""
    black_points: tuple[int, ...]
    """set-up and handicap stones"""
    white_points: tuple[int, ...]
    to_play: int
    """who moves first: 0 Black, 1 White"""
    moves: tuple[tuple[int, int], ...]
    """(0 Black or 1 White, action) in order; the colours of a real record need not alternate"""
    result: str
    """the RE property, e.g. "B+R" or "W+2.5"; empty if there is none"""
    rules: str
    """the RU property; empty if there is none"""


def read_games(path: str | Path) -> Iterator[GameRecord]:
    """Yield the games of a file: .sgf or .sgf.gz (one game or a collection), .tar.gz or .zip of such files.

    Raises:
      ValueError: the file has another suffix or cannot be read, or a game is not valid SGF; the place and the reason are named.
    """
    path = Path(path)
    if not path.name.endswith(SUFFIXES):
        raise ValueError(f"{path.name} is not a file of game records: the suffixes are {', '.join(SUFFIXES)}")
    try:
        for name, content in _members(path):
            yield from parse_games(content, name)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise ValueError(f"cannot read {path}: {error}") from error


def parse_games(content: bytes, name: str) -> Iterator[GameRecord]:
    """Yield the games of the SGF text `content`; `name` says where it comes from.

    Raises:
      ValueError: sgfmill is not installed, or a game is not valid SGF; `name` and the number of the game are quoted.
    """
    try:
        from sgfmill import sgf, sgf_grammar
    except ImportError as error:
        raise ValueError("reading game records needs sgfmill: pip install 'azero[records]'") from error
    try:
        trees = sgf_grammar.parse_sgf_collection(content)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    for number, tree in enumerate(trees, start=1):
        place = name if len(trees) == 1 else f"{name} game {number}"
        try:
            yield _record(sgf.Sgf_game.from_coarse_game_tree(tree), place)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{place}: {error}") from error


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the SGF texts in a file."""
    if path.name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(path) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.name.endswith(".sgf") else None
                if content is not None:
                    yield f"{path.name}:{member.name}", content.read()
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for member_name in archive.namelist():
                if member_name.endswith(".sgf"):
                    yield f"{path.name}:{member_name}", archive.read(member_name)
    else:
        raw = path.read_bytes()
        yield path.name, gzip.decompress(raw) if path.suffix == ".gz" else raw


def _record(game: Any, name: str) -> GameRecord:
    root, size = game.get_root(), game.get_size()

    def action(point: tuple[int, int] | None) -> int:
        return size * size if point is None else (size - 1 - point[0]) * size + point[1]

    moves = []
    for node in game.get_main_sequence():
        if node is not root and node.has_setup_stones():
            raise ValueError("stones are set up in the middle of the game")
        colour, point = node.get_move()
        if colour is not None:
            moves.append((0 if colour == "b" else 1, action(point)))
    black, white, _ = root.get_setup_stones()
    black_points = tuple(sorted(map(action, black)))
    handicap = _get(root, "HA")
    if isinstance(handicap, int) and handicap >= 2 and not black_points:
        black_points = tuple(setup.handicap_points(handicap, (size, size)))
    to_play = {"b": 0, "w": 1}.get(str(_get(root, "PL")), moves[0][0] if moves else int(bool(black_points)))
    komi = _get(root, "KM")
    return GameRecord(
        name=name,
        size=size,
        komi=komi if isinstance(komi, float) else None,
        black_points=black_points,
        white_points=tuple(sorted(map(action, white))),
        to_play=to_play,
        moves=tuple(moves),
        result=str(_get(root, "RE") or ""),
        rules=str(_get(root, "RU") or ""),
    )


def _get(node: Any, name: str) -> Any:
    """Return a property's value, None if it is missing or malformed (servers write what they like into the header)."""
    try:
        return node.get(name)
    except (KeyError, ValueError):
        return None
