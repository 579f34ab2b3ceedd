"""Settings of Go."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from azero.config import check
from azero.games.settings import GameConfig

LARGEST_SIDE = 25
"""Points per side that the protocols can name: GTP's letters end at Z, which is 25 (GTP version 2,
section 2.11)."""
LARGEST_KOMI = 10_000
"""Points for either side; far more than a board has."""


def check_komi(komi: float) -> None:
    """Check a komi.

    Raises:
      ValueError: it is not a multiple of 0.5, or too large for any board.
    """
    check(
        abs(komi) <= LARGEST_KOMI and not (2 * komi) % 1,
        f"komi is a multiple of 0.5 from -{LARGEST_KOMI:,} to {LARGEST_KOMI:,}, not {komi:g}",
    )


@dataclass(frozen=True)
class GoConfig(GameConfig):
    """Go: board, komi, repetition, and what the network sees."""

    RULES: ClassVar[str] = "azero.games.go.rules:Go"

    name: Literal["go"] = "go"
    """Which game."""
    size: tuple[int, ...] = (19,)
    """Points per side, 1 to 25; two numbers for a rectangular board (rows columns)."""
    komi: float = 7.5
    """Points added to White's area, a multiple of 0.5; a whole number makes draws (AGZ: 7.5)."""
    superko: Literal["positional", "situational", "simple"] = "positional"
    """Which repetitions are illegal (AGZ methods: no repetition of a position of the game)."""
    suicide: bool = False
    """Several stones may capture themselves, as in Tromp-Taylor."""
    max_moves: int | None = None
    """Moves after which the game is scored; None is 2 x points (AGZ: 722)."""
    margin_weight: float = 0.0
    """Share of the reward of self-play and search that is the margin in points over the points of
    the board; the rest is the result. The papers have 0. Matches are decided without it. It
    needs selfplay.resign off: a resigned game has no margin."""
    planes: int = 17
    """What the network sees. 17 is AlphaGo Zero's input, 18 adds a plane of White to move (Leela
    Zero's input), 19 two planes of the komi instead; 4, 12, 20, 48 or 49 are the first planes of
    AlphaGo's of 2016, 6 and 10 the inputs of its rollout and its tree policy."""
    selfplay_komis: tuple[float, ...] = ()  # type: ignore[misc]
    """Komis of the games of self-play, all equally likely, for a network that sees the komi (planes
    19). Empty: all games are played at `komi`, as matches are."""

    selfplay_sizes: tuple[tuple[int, int, float], ...] = ()
    """Other board sizes in the same run, for a network that fits any board: triples of a first
    iteration, a size, and the share of iterations whose self-play is on it, and of batches from it,
    from that iteration on. The rest is `size`, as are all matches."""

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of the class of the rules."""
        size = self.size[0] if len(self.size) == 1 else tuple(self.size)
        rules = {
            "size": size,
            "komi": self.komi,
            "superko": self.superko,
            "suicide": self.suicide,
            "max_moves": self.max_moves,
        }
        return {**rules, "num_planes": self.planes, "margin_weight": self.margin_weight}

    def for_matches(self) -> Self:
        """Return the same game with rewards that depend only on who won."""
        return dataclasses.replace(self, margin_weight=0.0, selfplay_komis=(), selfplay_sizes=())

    def on_board(self, size: int) -> Self:
        """Return the same game of self-play on another board."""
        return dataclasses.replace(self, size=(size,), max_moves=None, selfplay_sizes=())

    def size_shares(self, iteration: int) -> dict[int, float]:
        """Return the shares of the other board sizes in self-play after `iteration` iterations."""
        shares = {size: 0.0 for _, size, _ in self.selfplay_sizes}
        began = [entry for entry in self.selfplay_sizes if entry[0] <= iteration]
        return shares | {size: share for _, size, share in sorted(began)}

    def seen_as(self, trained: GameConfig) -> Self:
        """Return these rules with the planes of a network that learned with `trained`."""
        if not isinstance(trained, GoConfig):
            return self
        return dataclasses.replace(
            self,
            planes=trained.planes,
            margin_weight=trained.margin_weight,
            selfplay_komis=trained.selfplay_komis,
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        check(len(self.size) in (1, 2), f"game.size is one or two numbers, not {self.size}")
        check(
            all(1 <= side <= LARGEST_SIDE for side in self.size),
            f"size {'x'.join(map(str, self.size))}: sides are 1 to {LARGEST_SIDE}",
        )
        for komi in (self.komi, *self.selfplay_komis):
            check_komi(komi)
        sizes = {size for _, size, _ in self.selfplay_sizes}
        check(
            self.size not in {(size,) for size in sizes} and sizes <= set(range(2, 20)),
            f"the boards of game.selfplay-sizes have 2 to 19 points a side, and none is game.size; "
            f"they are {sorted(sizes)}",
        )
        for first, _, share in self.selfplay_sizes:
            check(first >= 0, f"game.selfplay-sizes begin at iteration 0 or later, not at {first}")
            total = sum(self.size_shares(first).values())
            check(
                share >= 0 and total <= 1 + 1e-9,
                f"the shares of game.selfplay-sizes are at least 0 and add up to at most 1, not to "
                f"{total:g} from iteration {first} on",
            )
        check(
            not self.selfplay_komis or self.planes == 19,
            "game.selfplay-komis needs a network that sees the komi: game.planes 19",
        )
