"""All settings of one experiment, composed of those of its parts."""

from dataclasses import dataclass, field
from typing import Any

from azero.config import overlay
from azero.data.settings import ReplayConfig
from azero.games.go.settings import GoConfig
from azero.games.settings import GameConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import NetworkConfig, ResNetConfig
from azero.search.settings import PuctConfig, SearchConfig
from azero.selfplay.settings import SelfplayConfig
from azero.train.settings import CheckpointConfig, RunConfig


@dataclass(frozen=True)
class Config:
    """All settings of one experiment."""

    game: GameConfig = field(default_factory=GoConfig)
    network: NetworkConfig = field(default_factory=ResNetConfig)
    search: SearchConfig = field(default_factory=PuctConfig)
    selfplay: SelfplayConfig = field(default_factory=SelfplayConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    run: RunConfig = field(default_factory=RunConfig)


def from_dict(data: dict[str, Any], base: Config | None = None, source: str = "settings") -> Config:
    """Return `base` (or the defaults) with the keys of `data`, as `to_dict` writes them, replaced;
    see `azero.config.overlay`."""
    return overlay(data, Config() if base is None else base, source, is_stored=True)
