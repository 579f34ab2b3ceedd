"""Settings of the evaluations of a run: matches and predictions of recorded games.

Sources: AGZ = Silver et al. 2017 (Nature 550); AZ = Silver et al. 2018 (Science 362) and its
pseudocode.
"""

from dataclasses import dataclass

from azero.config import check, check_range


@dataclass(frozen=True)
class EvaluationConfig:
    """Matches against former checkpoints, the gate, and predictions of recorded games."""

    gate: bool = True
    """Self-play uses the best player so far, which a new one must beat (AGZ: yes); otherwise always
    the newest (AZ)."""
    gate_games: int = 400
    """Games of the gate's match (AGZ: 400)."""
    gate_win_rate: float = 0.55
    """The new player replaces the best one above this win rate (AGZ: 55%)."""
    every: int = 10
    """Iterations between evaluations (AGZ: one per 1,000 training steps); 0 is never, which a gate
    does not allow."""
    validation_positions: int = 10_000
    """Positions of `records`, or of the validation split in learning from records, that are
    predicted in an evaluation."""
    records: str | None = None
    """Self-play: file of recorded games (as `azero data import` reads them) whose moves and results
    the newest network predicts in every evaluation (AGZ, Figures 3b and 3c)."""
    games: int = 0
    """Games against the checkpoint of the previous evaluation, for the Elo curve; 0 plays none
    (with the gate, the gate's match counts)."""
    num_simulations: int | None = None
    """Simulations per move in matches; None is as in self-play (AGZ: 1600)."""
    average_symmetries: bool = False
    """Evaluate a position as the mean over all its symmetries: much stronger for a small network,
    and eight times the work (AGZ: no, a random one)."""
    temperature_moves: int = 0
    """Moves at the start of a match game that are sampled in proportion to the search's weights,
    for variety (AGZ: 0, its random symmetries vary the games)."""
    random_plies: int = 0
    """Random legal moves that every pair of match games begins with, colours exchanged: variety
    that does not depend on how sure the networks are (AGZ: 0)."""
    sensible_moves: bool = False
    """Go: players fill their own eyes only if no other move is left, a pass included (AG16's
    sensible moves). Networks that learned from recorded games need it: those games end before the
    passes, so such networks never pass."""

    def __post_init__(self) -> None:
        check_range(self, "evaluation", "gate_games validation_positions num_simulations", 1)
        check_range(self, "evaluation", "every games temperature_moves random_plies", 0)
        check_range(self, "evaluation", "gate_win_rate", 0, 1)
        check(
            self.gate_win_rate < 1,
            "evaluation.gate-win-rate is below 1, which no player can score above",
        )
        check(
            self.records is None or self.every > 0,
            "evaluation.records are predicted in every evaluation: set evaluation.every",
        )

    def is_due(self, iteration: int, last: int) -> bool:
        """Return whether recorded games are predicted after `iteration` iterations of `last`."""
        return self.every > 0 and (iteration % self.every == 0 or iteration == last)
