"""Settings of the learner.

Sources: AGZ = Silver et al. 2017 (Nature 550); AZ = Silver et al. 2018 (Science 362) and its
pseudocode; GUM = Danihelka et al. 2022 (ICLR); KG = Wu 2019; KGM = KataGo's
docs/KataGoMethods.md.
"""

from dataclasses import dataclass
from typing import Literal

from azero.config import check, check_range

AUXILIARY_WEIGHTS = {
    "ownership": "ownership_weight",
    "score": "score_weight",
    "reply": "reply_weight",
    "soft_policy": "soft_policy_weight",
    "short_values": "short_value_weight",
    "moves_left": "moves_left_weight",
}
"""Auxiliary heads by name, and the settings of their weights in the loss."""
VALUE_SHARES = ("root_value_share", "lambda_return_share")
"""Settings of the shares of root values in the target of the value."""
AUXILIARY_TARGETS = (*AUXILIARY_WEIGHTS.values(), *VALUE_SHARES, "surprise_share")
"""Settings of what is learned from targets that only games of self-play have; 0 is off."""


@dataclass(frozen=True)
class LearnerConfig:
    """Equation 1 of AlphaGo Zero and its optimiser."""

    batch_size: int = 2048
    """Positions per step over all devices together (AGZ: 2048; AZ: 4096)."""
    steps_per_iteration: int = 100
    """Steps per iteration of the loop."""
    optimiser: Literal["momentum", "adamw", "muon"] = "momentum"
    """SGD with momentum (AGZ), AdamW, or Muon for matrices with AdamW for the rest."""
    momentum: float = 0.9
    """Momentum of SGD (AGZ: 0.9)."""
    learning_rate: tuple[tuple[int, float], ...] = ((0, 1e-2), (400_000, 1e-3), (600_000, 1e-4))
    """Steps of the learning rate: pairs of first training step and rate (AGZ Extended Data Table
    3)."""
    rate_between: Literal["steps", "linear", "cosine"] = "steps"
    """The rate between the steps that learning-rate names: that of the last one (AGZ), or on a line
    or half a cosine wave to the next one's."""
    warmup_steps: int = 0
    """Steps over which the rate grows linearly from zero (the papers have none)."""
    l2: float = 1e-4
    """Weight of the squared parameters in the loss; with AdamW and Muon the decoupled weight decay
    (AGZ: 1e-4)."""
    clip_norm: float | None = None
    """Gradients whose norm over all parameters is larger are scaled down to it, before momentum;
    None is off (the papers have none)."""
    value_weight: float = 1.0
    """Weight of the value loss (AGZ: 1 in reinforcement learning, 0.01 in the supervised
    comparison)."""
    ownership_weight: float = 0.0
    """Weight of the loss of the ownership head, of a network that has one (KG: 1.5; this and the
    other heads are not part of the papers of AlphaGo)."""
    score_weight: float = 0.0
    """Weight of the loss of the score head: cross-entropy, and squared differences of the
    cumulative distributions (KG: 0.02 each)."""
    reply_weight: float = 0.0
    """Weight of the loss of the head that predicts the opponent's reply (KG: 0.15)."""
    soft_policy_weight: float = 0.0
    """Weight of the loss of the soft policy head, whose target is the policy target with
    temperature 4 (KGM: 8)."""
    short_value_weight: float = 0.0
    """Weight of the loss of the head that predicts the means of future root values (KGM)."""
    moves_left_weight: float = 0.0
    """Weight of the loss of the head that predicts how many moves are left (Leela Chess Zero)."""
    root_value_share: float = 0.0
    """Share of the root's value after the search in the target of the value; the rest is the result
    of the game (AGZ: 0)."""
    lambda_return_share: float = 0.0
    """Share of the lambda-return (Sutton and Barto 2018, section 12.1) in the target of the value:
    the mean of this and the following root values, with weights that fall geometrically over the
    first of `azero.data.shard.HORIZONS`, and the result from the end of the game on (AGZ: 0)."""
    surprise_share: float = 0.0
    """Share of a position's weight in the loss that is proportional to how far the search moved the
    policy; the rest is equal for all (KGM: 0.5; AGZ: 0)."""
    average_decay: float | None = None
    """Self-play, matches and engines use a mean of the parameters over the steps, of which each
    step keeps this share; None is the newest parameters (AGZ)."""
    max_samples_per_position: float | None = None
    """Upper bound on how often the learner sees a new position on average; None is no bound."""

    @property
    def needs_auxiliary_targets(self) -> bool:
        """Whether anything is learned that only games of self-play have: targets of auxiliary
        heads, root values, the surprise."""
        return any(getattr(self, name) > 0 for name in AUXILIARY_TARGETS)

    @property
    def untrained_heads(self) -> frozenset[str]:
        """The auxiliary heads without a weight in the loss: their outputs mean nothing."""
        weights = AUXILIARY_WEIGHTS.items()
        return frozenset(head for head, weight in weights if not getattr(self, weight))

    @property
    def result_share(self) -> float:
        """Share of the game's result in the target of the value; what is left by rounding is 0."""
        return round(1.0 - sum(getattr(self, share) for share in VALUE_SHARES), 6)

    def __post_init__(self) -> None:
        steps = [first for first, _ in self.learning_rate]
        check(
            bool(steps) and steps[0] == 0 and steps == sorted(set(steps)),
            "learner.learning-rate is pairs (first step, rate) from step 0 upwards",
        )
        check_range(self, "learner", "learning_rate", 0)
        check_range(self, "learner", "batch_size", 1)
        check_range(
            self,
            "learner",
            "steps_per_iteration warmup_steps l2 value_weight ownership_weight score_weight "
            "reply_weight soft_policy_weight short_value_weight moves_left_weight",
            0,
        )
        check_range(self, "learner", f"{' '.join(VALUE_SHARES)} surprise_share average_decay", 0, 1)
        check(
            self.root_value_share + self.lambda_return_share <= 1,
            "learner.root-value-share and learner.lambda-return-share are together at most 1; the "
            "rest of the target is the result",
        )
        check_range(self, "learner", "momentum", 0, 1)
        check_range(self, "learner", "max_samples_per_position clip_norm", 0, above=True)
