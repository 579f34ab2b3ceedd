"""Settings of the replay window.

Sources: AGZ = Silver et al. 2017 (Nature 550); AZ = Silver et al. 2018 (Science 362) and its
pseudocode.
"""

from dataclasses import dataclass

from azero.config import check_range


@dataclass(frozen=True)
class ReplayConfig:
    """The window of games that the learner samples from."""

    window_games: int = 500_000
    """Games in the window, the most recent ones (AGZ: 500,000; AZ: 1,000,000)."""
    min_positions: int = 100_000
    """Positions in the window before learning begins."""
    symmetries: bool = True
    """Draw a random symmetry for every sample (AGZ: yes; AZ: no)."""
    prefetch: int = 4
    """Batches prepared ahead of the learner."""

    def __post_init__(self) -> None:
        check_range(self, "replay", "window_games prefetch", 1)
        check_range(self, "replay", "min_positions", 0)
