"""Files of shogi games: CSA (`csa`), KIF and KI2 (`kif`). Host side only."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from azero.games.archives import RecordError, read_texts, with_compressed, without_utf16
from azero.games.shogi import csa, kif
from azero.games.shogi.records import ShogiGame

Parser = Callable[[str, str, list[RecordError] | None], Iterator[ShogiGame]]
PARSERS: dict[str, Parser] = {
    ".csa": csa.parse_games,
    ".kif": kif.parse_games,
    ".kifu": kif.parse_games,
    ".ki2": kif.parse_games,
    ".ki2u": kif.parse_games,
}
"""By the suffixes of their files."""
SUFFIXES = with_compressed(tuple(PARSERS))


def read_games(path: str | Path, skipped: list[RecordError] | None = None) -> Iterator[ShogiGame]:
    """Yield the games of a .csa, .kif, .kifu, .ki2 or .ki2u file, in UTF-8, EUC-JP or Shift JIS
    (code page 932), or of a compressed one, or of all in a .zip or .tar.gz. With `skipped` their
    moves need not be legal, and it gets an error for every game, or file in an archive, that
    cannot be read.

    Raises:
      ValueError: the file has another suffix or cannot be read, or without `skipped` a game is not
        valid; the place and the reason are named.
    """
    for name, content, problem in read_texts(Path(path), SUFFIXES):
        try:
            if problem:
                raise RecordError(name, problem)
            yield from _parse(name, content, skipped)
        except RecordError as error:
            if skipped is None:
                raise
            skipped.append(error)


def _parse(name: str, content: bytes, skipped: list[RecordError] | None) -> Iterator[ShogiGame]:
    """Yield the games of a text.

    Raises:
      ValueError: it is not in a known encoding, or a game is not valid.
    """
    kind = name.lower().removesuffix(".gz")
    try:
        text = decode(content)
    except UnicodeError as error:
        raise RecordError(name, error) from error
    yield from PARSERS[f".{kind.rpartition('.')[2]}"](text, name, skipped)


def decode(raw: bytes) -> str:
    """Return the text of bytes in UTF-16 with its mark, or in the first that fits of UTF-8, EUC-JP
    and Shift JIS.

    EUC-JP is tried before Shift JIS, because most texts in EUC-JP are valid Shift JIS, too. A text
    in Shift JIS with full-width kana or the name of a piece is not valid EUC-JP.

    Raises:
      UnicodeError: they are none of these.
    """
    raw = without_utf16(raw)
    for name in ("utf-8-sig", "euc_jp", "cp932"):
        with contextlib.suppress(UnicodeDecodeError):
            return raw.decode(name)
    raise UnicodeError("its text is not in UTF-8, EUC-JP or Shift JIS")


def special_move(game: ShogiGame) -> str:
    """Return the special move of CSA that ends a game: that of a resignation where the record names
    only the winner, empty where it names neither."""
    ending = kif.SPECIAL_MOVES.get(game.ending, game.ending)
    if ending.startswith("%"):
        return ending
    if game.winner in ("black", "white"):
        return csa.resignation(game.sfen, len(game.actions), game.winner == "black")
    return ""
