"""The settings of a tuning. No heavy imports here."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import Positional

from azero.config import check_range
from azero.players.clock import NO_CLOCK, TimeControl

_MAY_CHANGE = ("trials", "confirm_games", "out", "workers")
"""Options that may differ when a tuning is continued."""


@dataclass(frozen=True)
class TuneRequest:
    """Tune settings of a player by Gaussian-process optimisation: every trial is a match of the
    player with settings of its own against an opponent with fixed ones (docs/tuning.md)."""

    player: Positional[str]
    """The player, as `azero match` takes it, with its visits: "go9?visits=64&search=engine"."""
    parameter: tuple[str, ...]
    """Settings in the player's name and their ranges: NAME=LOW..HIGH, with :log for one that is
    searched on a logarithmic scale ("pb-c-init=0.3..3:log")."""
    against: str | None = None
    """The opponent; the player with the settings in its name by default."""
    trials: int = 30
    """Matches; more may be asked for later, to continue a tuning."""
    first_trials: int = 8
    """Matches at evenly spread settings, before the process proposes any."""
    games: int = 40
    """Games of a match, even."""
    at_once: int = 1
    """Matches at once. Those of a round are proposed together, so this decides what is tried."""
    confirm_games: int = 400
    """Games of the best settings against the opponent after the last trial, from other openings; 0
    for none."""
    random_plies: int = 4
    """Random legal moves at the start of every pair of games."""
    temperature_moves: int = 0
    """Moves, including the random ones, that a network samples from its visit counts."""
    komi: float | None = None
    """Go: points for White; default as in `azero match`."""
    size: int | None = None
    """Go: points per side; likewise."""
    clock: Annotated[TimeControl, tyro.conf.arg(name="")] = NO_CLOCK
    """Time control; none by default."""
    seed: int = 0
    """Seed of the trials and of the games."""
    timeout: float = 60.0
    """Seconds a program may take to answer."""
    workers: int = 1
    """Games of a match at once, where games are played singly."""
    out: Path = Path("runs/tuning")
    """Directory of the matches, their results and the plot; the same command continues."""

    def __post_init__(self) -> None:
        check_range(self, "", "trials at_once", 1)
        check_range(self, "", "first_trials", 2)
        if not self.parameter:
            raise ValueError("nothing to tune: --parameter NAME=LOW..HIGH")
        if self.confirm_games < 0 or self.confirm_games % 2:
            raise ValueError(f"confirm-games is even and at least 0, not {self.confirm_games}")

    @property
    def command(self) -> dict[str, Any]:
        """What decides the trials."""
        facts = dataclasses.asdict(self)
        return {name: value for name, value in facts.items() if name not in _MAY_CHANGE}
