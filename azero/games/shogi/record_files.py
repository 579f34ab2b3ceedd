"""Files of shogi games: CSA (`csa`) and KIF (`kif`). Host side only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from azero.games.shogi import csa, kif
from azero.games.shogi.records import ShogiGame

SUFFIXES = (".csa", ".kif", ".kifu")


def read_games(path: str | Path) -> Iterator[ShogiGame]:
    """Yield the games of a .csa, .kif or .kifu file, in UTF-8 or Shift JIS (code page 932).

    Raises:
      ValueError: the file has another suffix or cannot be read, or a game is not valid; the place
        and the reason are named.
    """
    parsers: dict[str, Callable[[str, str], Iterator[ShogiGame]]] = dict(
        zip(SUFFIXES, (csa.parse_games, kif.parse_games, kif.parse_games), strict=True)
    )
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in parsers:
        raise ValueError(
            f"{path.name} is not a file of shogi games: the suffixes are {', '.join(SUFFIXES)}"
        )
    try:
        content = decode(path.read_bytes())
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    yield from parsers[suffix](content, path.name)


def decode(raw: bytes) -> str:
    """Return the text of bytes in UTF-8 or, if they are not, in Shift JIS.

    Raises:
      UnicodeDecodeError: they are neither.
    """
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp932")
