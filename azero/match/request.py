"""The settings of a match, and of a ladder. No heavy imports here."""

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional
from tyro.constructors import PrimitiveConstructorSpec

from azero.config import check_range
from azero.players.clock import NO_CLOCK, TimeControl


def _two_numbers(words: list[str]) -> tuple[float, float]:
    """Return the numbers of "0,10".

    Raises:
      ValueError: they are not two.
    """
    low, high = map(float, words[0].split(","))
    return low, high


_TWO_NUMBERS = PrimitiveConstructorSpec(
    nargs=1,
    metavar="ELO0,ELO1",
    instance_from_str=_two_numbers,
    is_instance=lambda value: isinstance(value, tuple),
    str_from_instance=lambda value: [f"{value[0]:g},{value[1]:g}"],
)


@dataclass(frozen=True)
class MatchRequest:
    """Play a match between two players and print the score with its 95% interval."""

    first: str
    """A player: "go9?visits=64" (a network of `azero models`),
    "checkpoint:WORKDIR?visits=64&iteration=100" (visits=0 is the raw policy, without
    an iteration the newest; search=engine plays with the engines' settings, search=alphago_zero,
    alphazero or gumbel by that rule; the default is the search of the run's matches),
    "random-net:EXPERIMENT", "apv:POLICY_DIR?value=DIR&rollout=DIR&tree=DIR&visits=800&lambda=0.5"
    (AlphaGo of 2016), "gtp:PROGRAM ARGUMENTS" ({seed} in an argument is replaced by the seed plus
    the game number), "uci:stockfish?skill=0&nodes=1000", "usi:fairy-stockfish?elo=1350&movetime=50"
    (also depth=N, option.NAME=VALUE), or "gnushogi:gnushogi?depth=2"."""
    second: str
    """The other player."""
    games: int = 400
    """Number of games, even; colours alternate."""
    temperature_moves: int = 4
    """Moves at the start of a game, including an opening, that a network samples in proportion to
    the search's weights, for variety."""
    game: Literal["chess", "go", "shogi"] | None = None
    """The game; default that of the players."""
    komi: float | None = None
    """Go: points for White; default the first network's, 7.5 if both players are programs."""
    size: int | None = None
    """Go: points per side; default the first network's, 19 if both players are programs."""
    suicide: bool | None = None
    """Go: whether suicide is legal; default as in the first network's training, False if both
    players are programs. Programs must be configured separately."""
    entering_king: bool | None = None
    """Shogi: whether a player who may declare an entering king by the 27-point rule wins; default
    as in the first network's training, True if both are programs."""
    max_moves: int | None = None
    """Moves of both sides after which a game ends: drawn, in Go counted; default as in the first
    network's training, the game's own number if both players are programs."""
    seed: int = 0
    """Random seed."""
    openings: Path | None = None
    """Games (SGF; PGN; CSA, KIF or KI2) or lines of moves ("E5 C3", "e2e4 e7e5"), taken in turn;
    each opening is played with both colours."""
    opening_moves: int | None = None
    """Moves to use from each opening; default all."""
    random_plies: int | None = None
    """Instead of openings from a file: start every pair of games with this number of random legal
    moves."""
    start_positions: Path | None = None
    """Instead of openings: a file of positions (FEN, SFEN), one per line, taken in turn; each is
    played with both colours."""
    first_side: Literal["stronger"] | None = None
    """With chess start positions: stronger always gives the first player the side with more
    material, and every game its own position."""
    sprt: Annotated[tuple[float, float], _TWO_NUMBERS] | None = None
    """ELO0,ELO1: stop as soon as a sequential test decides between these differences (errors
    5%)."""
    clock: Annotated[TimeControl, tyro.conf.arg(name="")] = NO_CLOCK
    """Time control: a player without visits in its name uses the time it has, and one that runs out
    of time loses."""
    handicap: int | None = None
    """Go: the second player is Black in every game and makes this many moves before the first
    player's first one, which passes until then; komi stays (AG16 Extended Data Table 6: 4)."""
    resign: float | None = None
    """A network resigns when its win probability is below this, in [0, 1] (AZ: 0.05)."""
    resign_score: int | None = None
    """A UCI or USI program loses after ten moves in a row with a score at least this many
    centipawns behind (AZ: 900)."""
    timeout: float = 60.0
    """Seconds a program may take to answer and, without a clock, a player to move."""
    first_name: str | None = None
    """Name of the first player in records; default derived from it."""
    second_name: str | None = None
    """Name of the second player in records."""
    workers: int = 1
    """Games at once, where they are not batched: with a program, search=engine, a clock, handicap,
    start positions or resign."""
    out: Path | None = None
    """Directory for the result and the games; the same command continues the match."""

    def __post_init__(self) -> None:
        if self.games < 2 or self.games % 2:
            raise ValueError(
                f"a match has an even number of games, half with each colour, not {self.games}"
            )
        self.clock.check()
        check_range(self, "", "workers resign_score random_plies", 1)
        check_range(self, "", "timeout", 0, above=True)
        check_range(self, "", "seed temperature_moves", 0)
        check_range(self, "", "resign", 0, 1)
        check_range(self, "", "handicap", 2)
        excluded = (self.openings, self.random_plies, self.start_positions, self.sprt)
        if self.handicap is not None and excluded != (None,) * 4:
            raise ValueError("handicap excludes openings, random-plies, start-positions and sprt")
        if self.opening_moves is not None and self.openings is None:
            raise ValueError("opening-moves needs a file of openings")
        if self.random_plies is not None and self.openings is not None:
            raise ValueError("random-plies excludes a file of openings")
        if self.start_positions is not None and (
            self.openings is not None or self.random_plies is not None
        ):
            raise ValueError("start-positions excludes openings and random-plies")
        if self.first_side is not None and (self.start_positions is None or self.sprt is not None):
            raise ValueError(
                "first-side needs start-positions, and no sprt, which needs pairs of games with "
                "both colours"
            )

    @property
    def plays_singly(self) -> bool:
        """Whether an option requires single games where batched games would do."""
        asked = (self.start_positions, self.handicap, self.resign)
        return self.clock.is_set or asked != (None,) * 3

    @property
    def command(self) -> dict[str, Any]:
        """The settings that determine the games: all but the output directory and the number of
        workers."""
        facts = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("out", "workers")
        }
        facts["clock"] = dataclasses.asdict(self.clock) if self.clock.is_set else None
        for name in ("openings", "start_positions"):
            path: Path | None = facts[name]
            if path is not None:
                content = path.read_bytes() if path.is_file() else b""
                facts[name] = f"{path.name} (sha256 {hashlib.sha256(content).hexdigest()[:12]})"
        return facts


def match_of(request: Any, first: str, second: str, **settings: Any) -> MatchRequest:
    """Return a match of two players with `settings`, and with those that `request` has under the
    same names."""
    names = {field.name for field in dataclasses.fields(MatchRequest)} & vars(request).keys()
    shared = {name: getattr(request, name) for name in names}
    return MatchRequest(first, second, **(shared | settings))


@dataclass(frozen=True)
class LadderRequest:
    """Play fixed public opponents at fixed settings and print the score against each, as a table
    for a page."""

    player: Positional[str]
    """The player, as `azero match --first` takes it, with its visits:
    "checkpoint:DIR?visits=400&search=engine"."""
    opponents: tuple[str, ...] = ()
    """More opponents, each NAME=PLAYER, above the others: your own networks, or KataGo ("KataGo
    b6=gtp:katago gtp -model ...")."""
    only: str | None = None
    """Only the opponents whose name contains this."""
    games: int = 200
    """Games against each, even; colours alternate."""
    komi: float | None = None
    """Go: points for White; default 7."""
    size: int | None = None
    """Go: points per side; default the player's."""
    random_plies: int | None = None
    """Start every pair of games with this number of random legal moves; default none in Go, 4 in
    other games, whose opponents answer the same moves in the same way."""
    temperature_moves: int = 4
    """Moves at the start of a game that the player draws from its search, so that games differ."""
    seed: int = 0
    """Random seed."""
    timeout: float = 600.0
    """Seconds for an answer."""
    workers: int = 1
    """Games at once."""
    out: Path = Path("runs/ladder")
    """Directory of the matches; the same command continues."""


@dataclass(frozen=True)
class TournamentRequest:
    """Play a round robin of several players and rate them all in one list."""

    players: Positional[tuple[str, ...]]
    """Two players or more, as `azero match` takes them, or NAME=PLAYER."""
    games: int = 20
    """Games of each pair, even; colours alternate."""
    komi: float | None = None
    """Go: points for White; default as in `azero match`."""
    size: int | None = None
    """Go: points per side; likewise."""
    suicide: bool | None = None
    """Go: whether suicide is legal; likewise."""
    entering_king: bool | None = None
    """Shogi: whether the 27-point rule holds; likewise."""
    max_moves: int | None = None
    """Moves of both sides after which a game ends; likewise."""
    openings: Path | None = None
    """Games or lines of moves that pairs of games begin with, as in `azero match`."""
    opening_moves: int | None = None
    """Moves to use from each opening; default all."""
    random_plies: int | None = None
    """Instead of openings from a file: start every pair of games with this number of random legal
    moves."""
    start_positions: Path | None = None
    """Instead of openings: a file of positions (FEN, SFEN), one per line."""
    temperature_moves: int = 4
    """Moves at the start of a game that a network samples from its visit counts, so that games
    differ."""
    clock: Annotated[TimeControl, tyro.conf.arg(name="")] = NO_CLOCK
    """Time control; none by default."""
    seed: int = 0
    """Random seed."""
    timeout: float = 60.0
    """Seconds a program may take to answer."""
    workers: int = 1
    """Games at once, if a program takes part."""
    anchor: str | None = None
    """Name of the player at 0 Elo; the first by default."""
    out: Path = Path("runs/tournament")
    """Directory of the matches; the same command continues, and more players may be named."""
