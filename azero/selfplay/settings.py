"""Settings of self-play.

Sources: AGZ = Silver et al. 2017 (Nature 550); AZ = Silver et al. 2018 (Science 362) and its
pseudocode; GUM = Danihelka et al. 2022 (ICLR); KG = Wu 2019; MZ = Wu et al. 2023 (MiniZero, arXiv
2310.11305).
"""

from dataclasses import dataclass
from typing import Literal

from azero.config import check, check_range

CALIBRATION_GAMES = 2000
"""Games played to the end, the most recent ones, from which the threshold of resignation is
calibrated."""


@dataclass(frozen=True)
class SelfplayConfig:
    """Games played at once, and how a move is chosen."""

    num_games: int = 4096
    """Games played in parallel, over all devices."""
    search_batch: int | None = None
    """Games of one device searched at once; fewer bound the memory of the trees. None is all of
    them."""
    moves_per_dispatch: int = 16
    """Moves of every game per compiled call; nothing leaves the devices in between."""
    dispatches_per_iteration: int = 4
    """Compiled calls per iteration of the loop."""
    temperature_moves: int = 30
    """Moves at temperature 1 from the start of a game, then 0 (AGZ: 30)."""
    random_moves: int = 0
    """Moves at the start of a game that may be drawn from all legal ones (random-share), so that
    self-play visits positions that it would otherwise avoid (the papers have none)."""
    random_share: float = 0.1
    """Share of those moves that are drawn in this way; the policy target remains the search's."""
    value_before_random: Literal["result", "search"] = "result"
    """Value target of the positions up to such a move, including the one in which it is drawn: the
    result of the game, or the value of the search in that position. A loss through a move that
    nobody chose says nothing about the moves before it."""
    resign: bool = True
    """Whether self-play resigns: when the root's value and the best child's are below a threshold
    that is calibrated as games arrive (AGZ: yes)."""
    resign_false_positives: float = 0.05
    """Share of won games that the threshold may resign (AGZ: below 5%)."""
    resign_disabled: float = 0.10
    """Share of games played to the end, from which the threshold is calibrated (AGZ: 10%)."""
    resign_min_games: int = 200
    """Games played to the end before any resignation (none given; below it the 5% is not
    measurable)."""
    played_on_games: int = 0
    """Games played in addition to num_games, over all devices, that start where a game was last
    resigned and are played to the end with a cheap search: the values, ownership and scores of
    decided positions are learned from their results, with the weight of that many games; their
    moves are not learned (KG plays all games out, with fewer visits and less weight where they are
    decided). They have no random moves and temperature 0, like the end of any game. Until the
    first resignation they are ordinary games. 0 is off."""
    played_on_simulations: int = 8
    """Simulations of their moves."""
    archive: Literal["none", "games", "searches"] = "none"
    """Positions that games start from, besides the start of the game (Go-Exploit, Trudeau & Bowling
    2023): a position of one of the last num_games finished games, or (searches) one after a move of
    its searches, drawn from their policies."""
    archive_share: float = 0.5
    """archive: share of the games that start from it."""
    simulations: tuple[tuple[int, int], ...] = ()
    """Progressive simulations (MZ): pairs of a first iteration, from 0 upwards, and the simulations
    of the full search from there on, at most search.num-simulations. Empty is that number in all
    iterations."""
    fast_simulations: int | None = None
    """Playout-cap randomisation (KG): simulations of the fast moves; None is off."""
    full_search_probability: float = 0.25
    """Playout-cap randomisation (KG): share of moves that get the full search and become policy
    targets."""

    @property
    def num_slots(self) -> int:
        """Games in flight, over all devices."""
        return self.num_games + self.played_on_games

    def __post_init__(self) -> None:
        check(
            self.resign or not self.played_on_games,
            "selfplay.played-on-games plays resigned games on, and selfplay.resign is off",
        )
        starts = [first for first, _ in self.simulations]
        check(
            starts == sorted(set(starts)) and starts[:1] in ([], [0]),
            "selfplay.simulations is pairs (first iteration, simulations) from iteration 0 upwards",
        )
        check(
            all(count >= 1 for _, count in self.simulations),
            "the simulations of selfplay.simulations are at least 1",
        )
        check_range(
            self,
            "selfplay",
            "num_games search_batch moves_per_dispatch dispatches_per_iteration "
            "fast_simulations played_on_simulations",
            1,
        )
        check_range(self, "selfplay", "resign_min_games", 1, CALIBRATION_GAMES)
        counts = "temperature_moves random_moves played_on_games simulations"
        check_range(self, "selfplay", counts, 0)
        check_range(
            self,
            "selfplay",
            "random_share resign_disabled full_search_probability archive_share",
            0,
            1,
        )
        check(
            self.fast_simulations is None or self.full_search_probability > 0,
            "selfplay.full-search-probability = 0: no move would be learned",
        )
        check(
            0 < self.resign_false_positives < 1,
            "selfplay.resign-false-positives is above 0 and below 1, not "
            f"{self.resign_false_positives}",
        )
