"""Files of shogi games: CSA (`csa`) and KIF (`kif`). Host side only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from azero.games.quoting import reason
from azero.games.shogi import csa, kif
from azero.games.shogi.records import ShogiGame

SUFFIXES = (".csa", ".kif", ".kifu")


def read_games(path: str | Path) -> Iterator[ShogiGame]:
    """Yield the games of a .csa, .kif or .kifu file, in UTF-8, EUC-JP or Shift JIS (code page 932).

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
    except (OSError, UnicodeError) as error:
        raise ValueError(f"cannot read {path}: {reason(error)}") from error
    yield from parsers[suffix](content, path.name)


def decode(raw: bytes) -> str:
    """Return the text of bytes in the first that fits of UTF-8, EUC-JP and Shift JIS.

    EUC-JP is tried before Shift JIS, which most of its texts fit as well. Shift JIS does not fit
    EUC-JP where it has full-width kana or the name of a piece.

    Raises:
      UnicodeError: they are none of these.
    """
    for name in ("utf-8-sig", "euc_jp", "cp932"):
        with contextlib.suppress(UnicodeDecodeError):
            return raw.decode(name)
    raise UnicodeError("its text is not in UTF-8, EUC-JP or Shift JIS")
