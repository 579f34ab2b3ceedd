"""The events that a stage yields, in the order in which they happen; the driver logs them."""

from __future__ import annotations

from dataclasses import dataclass

from azero.evaluate.accuracy import Accuracy
from azero.match.score import MatchResult


@dataclass(frozen=True)
class Phase:
    """The loop's next activity."""

    text: str


@dataclass(frozen=True)
class Played:
    """A dispatch of self-play has come back from the devices."""

    positions: int
    games: int
    """Games that ended in it."""


@dataclass(frozen=True)
class Trained:
    """The learner's steps of one iteration are done."""

    steps: int
    metrics: dict[str, float]
    """Means over the steps: loss, policy_loss, value_loss, entropies, accuracy, gradient norm; the
    last learning rate."""


@dataclass(frozen=True)
class Evaluated:
    """A match of the current player against an earlier one."""

    iteration: int
    opponent_iteration: int
    result: MatchResult
    """Of the current player."""
    promoted: bool | None
    """With the gate: whether the current player became the best one. None without a gate."""


@dataclass(frozen=True)
class MatchSkipped:
    """A match that was due but would have been uninformative."""

    iteration: int
    opponent_iteration: int
    reason: str


@dataclass(frozen=True)
class SampleGame:
    """One finished game of self-play, a sample for the report."""

    frame: list[int]
    """Start position, packed (`Game.pack_frame`)."""
    actions: list[int]
    values: list[float]
    """Root values for the side to move, one per action."""
    result: float
    """Reward of the first mover: 1, 0 or -1."""
    resigned: bool


@dataclass(frozen=True)
class IterationDone:
    """One iteration is complete; the state may be saved now."""

    iteration: int
    """Iterations done in all."""
    games: int
    positions: int
    steps: int
    new_games: int
    new_positions: int
    first_wins: int
    """New games won by the first mover."""
    draws: int
    resigned: int
    """New games that ended by resignation."""
    mean_length: float
    """Moves per new game; 0 where none ended."""
    network_age: float
    """Iterations from the network that played a new game's first move to this one, on average; 0
    where none ended."""
    window_games: int
    window_positions: int
    resign_threshold: float
    resign_false_positives: float
    """Share of the calibration games that the threshold would have resigned wrongly."""
    selfplay_seconds: float
    learner_seconds: float
    learner_wait_seconds: float
    samples: list[SampleGame]
    warnings: list[str]
    board_size: int | None = None
    """Of self-play, where it was another than the run's own (`GoConfig.selfplay_sizes`)."""


@dataclass(frozen=True)
class Validated:
    """The accuracy of the current network on held-out positions."""

    accuracy: Accuracy


@dataclass(frozen=True)
class LearnedFromRecords:
    """One iteration of learning from records is complete; the state may be saved now."""

    iteration: int
    """Iterations done in all."""
    steps: int
    samples: int
    """Total positions the learner has seen, counting repeats."""
    games: int
    """Games that positions are sampled from."""
    seconds: float
    wait_seconds: float
    """Time the learner waited for batches."""


@dataclass(frozen=True)
class PolicyImproved:
    """One mini-batch of games against an earlier self has been played and learned from; the state
    may be saved now."""

    iteration: int
    """Iterations done in all."""
    opponent_iteration: int
    """Iteration at which the opponent joined the pool; 0 is the initial policy."""
    pool: int
    """Policies in the pool."""
    result: MatchResult
    """Score of the learning policy."""
    moves: int
    """Its moves in these games."""
    mean_length: float
    """Moves of both sides in a game."""
    play_seconds: float
    learn_seconds: float


Event = Phase | Played | Trained | Evaluated | MatchSkipped | IterationDone
SupervisedEvent = Phase | Trained | Validated | LearnedFromRecords
ReinforceEvent = Phase | Trained | PolicyImproved
