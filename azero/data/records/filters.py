"""Filters of recorded games, and their division into splits. Loads fast: the command line reads the
settings from here."""

import re
from dataclasses import dataclass, fields
from typing import Any, Literal

from azero.config import check_range
from azero.games.chess.settings import ChessConfig
from azero.games.go.settings import LARGEST_SIDE, GoConfig
from azero.games.settings import GameConfig
from azero.games.shogi.settings import ShogiConfig

SPLITS = ("train", "validation", "test")
"""Names of the parts of a data set, and of their directories."""
GAMES = ("go", "chess", "shogi")
"""Games whose records are read."""
_NUMERALS = "初一二三四五六七八九"
_RANK = re.compile(rf"\s*(P?)(\d{{1,2}}|[{_NUMERALS}])\s*(k|d|p|级|級|급|段|단)", re.IGNORECASE)
"""As servers write it; the Fox server has a P before the dan of professionals, as in P9段."""
_OF_GO = ("size", "min_rank", "max_handicap", "rules", "suicide", "superko")
"""Filters that games of pieces do not have."""
_OF_PIECES = ("min_rating",)
"""Filters that Go does not have."""
_LONGEST_OF_PIECES = 512
"""Moves of both sides (AZ pseudocode: max_moves)."""
_FIRST_DAN, _FIRST_PROFESSIONAL = 0, 9
"""Offsets added to the dan rank of amateurs (1 to 9) and of professionals."""


@dataclass(frozen=True)
class Filters:
    """Which games are taken."""

    game: Literal["go", "chess", "shogi"] = "go"
    """Go is read from SGF, chess from PGN, shogi from CSA, KIF and KI2."""
    size: tuple[int, ...] = (19,)
    """Go: points per side; two numbers for a rectangular board (rows columns)."""
    min_rank: str | None = None
    """Go: lowest rank of both players, such as 9d, 2k or 1p; players without a rank are then left
    out."""
    min_rating: float | None = None
    """Chess and shogi: lowest rating of both players (PGN's WhiteElo and BlackElo, floodgate's
    black_rate and white_rate); players without a rating are then left out."""
    max_handicap: int | None = None
    """Go: most handicap stones; 0 takes even games only."""
    min_moves: int = 1
    """Fewest moves."""
    max_moves: int | None = None
    """Most moves; None is two moves a point in Go (AGZ: 722), 512 of both sides in chess and shogi
    (AZ)."""
    results: Literal["known", "any"] = "known"
    """Whether the winner must be known; with "any" an unknown result counts as a draw."""
    rules: tuple[str, ...] = ()
    """Go: words of which one must be in the record's ruleset, upper or lower case; none accepts
    all."""
    suicide: bool = False
    """Go: whether several stones may capture themselves, as in Tromp-Taylor."""
    superko: Literal["positional", "situational", "simple"] = "positional"
    """Go: which repetitions are forbidden; a game with a forbidden move is left out."""

    def check(self) -> None:
        """Check the settings. This is not done at creation, because the command line could not name
        the flag then.

        Raises:
          ValueError: a setting is invalid, or one of another game.
        """
        for name in self.foreign():
            if getattr(self, name) != next(f.default for f in fields(self) if f.name == name):
                raise ValueError(
                    f"--{name.replace('_', '-')} is not a filter of {self.game}; --game says which "
                    "game is read"
                )
        check_range(self, "--", "size", 1, LARGEST_SIDE)
        check_range(self, "--", "max_moves", 1)
        check_range(self, "--", "min_moves max_handicap min_rating", 0)
        if len(self.size) not in (1, 2):
            raise ValueError(
                f"--size of a board is one or two numbers, not "
                f"{' '.join(map(str, self.size)) or 'none'}"
            )
        if self.min_rank is not None and parse_rank(self.min_rank) is None:
            raise ValueError(
                f"--min-rank {self.min_rank!r} is not a rank; ranks are a number and k, d or p, "
                "such as 2k, 9d or 1p"
            )

    def foreign(self) -> tuple[str, ...]:
        """Return the names of the filters that games of this kind do not have."""
        return _OF_PIECES if self.game == "go" else _OF_GO

    @property
    def board_shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.size[0], self.size[-1]

    @property
    def longest(self) -> int:
        """Most moves of a game."""
        if self.max_moves is not None:
            return self.max_moves
        rows, columns = self.board_shape
        return 2 * rows * columns if self.game == "go" else _LONGEST_OF_PIECES

    def rules_of_game(self) -> GameConfig:
        """Return the rules that the games are replayed under. Shogi has no declaration of an
        entering king, with which many games go on."""
        if self.game == "chess":
            return ChessConfig(max_moves=self.longest)
        if self.game == "shogi":
            return ShogiConfig(max_moves=self.longest, entering_king=False)
        return GoConfig(
            size=self.size, superko=self.superko, suicide=self.suicide, max_moves=self.longest
        )

    def objection(self, record: Any) -> str:
        """Return why a game (`azero.data.records.formats.Record`) is left out, with the same text
        for all games with that reason; "" if it is taken."""
        if self.game == "go" and record.board_shape != self.board_shape:
            (rows, columns), (height, width) = record.board_shape, self.board_shape
            return f"board of {rows}x{columns}, not {height}x{width}"
        if len(record.moves) < max(1, self.min_moves):
            return f"fewer than {self.min_moves} moves" if self.min_moves > 1 else "no moves"
        if len(record.moves) > self.longest:
            return f"more than {self.longest} moves"
        if self.results == "known" and record.rewards is None:
            return "winner not known"
        return (
            self._objection_to_stones(record)
            if self.game == "go"
            else self._objection_to_ratings(record)
        )

    def _objection_to_ratings(self, record: Any) -> str:
        if self.min_rating is None:
            return ""
        if None in record.ratings:
            return "a player's rating is not known"
        is_below = min(record.ratings) < self.min_rating
        return f"a player below {self.min_rating:g}" if is_below else ""

    def _objection_to_stones(self, record: Any) -> str:
        if self.max_handicap is not None and record.handicap > self.max_handicap:
            return f"handicap above {self.max_handicap}"
        if self.rules and not any(word.lower() in record.rules.lower() for word in self.rules):
            return f"rules {record.rules or 'not named'}"
        return self._objection_to_ranks(record)

    def _objection_to_ranks(self, record: Any) -> str:
        wanted = parse_rank(self.min_rank) if self.min_rank is not None else None
        if wanted is None:
            return ""
        ranks = [parse_rank(text) for text in record.ranks]
        if None in ranks:
            return "a player's rank is not known"
        is_below = any(rank is not None and rank < wanted for rank in ranks)
        return f"a player below {self.min_rank}" if is_below else ""


@dataclass(frozen=True)
class Fractions:
    """Shares of the games that are not for training."""

    validation: float = 0.02
    """Share of the games that are evaluated during training."""
    test: float = 0.03
    """Share of the games that are evaluated at the end."""

    def check(self) -> None:
        """Check that the shares are valid.

        Raises:
          ValueError: they are not.
        """
        if not (self.validation >= 0 and self.test >= 0 and self.validation + self.test <= 1):
            raise ValueError(
                f"--validation and --test: shares of {self.validation} and {self.test} "
                f"are not possible: neither is negative, and together they are at most 1"
            )

    def split_of(self, key: bytes) -> str:
        """Return the split of the game with this key, which is the same in every import."""
        chance = int.from_bytes(key[:8], "big") / 2**64
        if chance < self.test:
            return "test"
        return "validation" if chance < self.test + self.validation else "train"


def parse_rank(text: str) -> int | None:
    """Return a rank as a number: kyu up to 0 (1k), amateurs 1 to 9 dan, professionals from 10 on;
    None if the text is not a rank."""
    found = _RANK.match(text)
    if not found:
        return None
    professional, text, kind = found.groups()
    number = max(1, _NUMERALS.index(text)) if text in _NUMERALS else int(text)
    kind = kind.lower()
    if kind in "k级級급":
        return 1 - number
    return number + (_FIRST_PROFESSIONAL if professional or kind == "p" else _FIRST_DAN)
