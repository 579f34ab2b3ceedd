"""The measured settings: board, network, search, and the number of concurrent games on a CPU and on
an accelerator."""

import dataclasses
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax

from azero.data.settings import ReplayConfig
from azero.experiment import load
from azero.games.go.settings import GoConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.make import resolve
from azero.networks.settings import ResNetConfig
from azero.search.settings import GumbelConfig
from azero.selfplay.settings import SelfplayConfig
from azero.settings import Config

SettingName = Literal["5x5", "9x9", "19x19"]


class Scale(NamedTuple):
    """The size of an iteration."""

    games: int
    """Concurrent games: on a CPU, as few as reach full speed; otherwise on each accelerator."""
    moves: int
    """Moves of every game."""


@dataclass(frozen=True)
class Setting:
    """A board with its network and search, and the sizes that suit a CPU and an accelerator."""

    size: int
    komi: float
    blocks: int
    filters: int
    num_simulations: int
    cpu: Scale
    accelerator: Scale
    batch_size: int
    """Positions of a learning step on each accelerator; on a CPU at most those of an iteration."""


SETTINGS: dict[SettingName, Setting] = {
    # The setting of `go5`: what a first user runs.
    "5x5": Setting(5, 0.5, 4, 32, 16, Scale(256, 32), Scale(4096, 32), 512),
    # Board, network, simulations, games and batch of Pgx's AlphaZero example.
    "9x9": Setting(9, 7.5, 6, 128, 32, Scale(32, 4), Scale(1024, 32), 4096),
    # AlphaGo Zero's network (AGZ: 20 blocks of 256, batch 2048).
    "19x19": Setting(19, 7.5, 20, 256, 32, Scale(4, 1), Scale(256, 8), 2048),
}


def make_config(setting: Setting) -> Config:
    """Return the settings of a run at `setting` on the devices that are there: Gumbel, one pass
    over each iteration's positions, no matches."""
    on_cpu, count = jax.default_backend() == "cpu", jax.device_count()
    if on_cpu and setting.size == 5:
        return one_pass(load("go5").config)
    dtype: Literal["float32", "bfloat16"] = "float32" if on_cpu else "bfloat16"
    network = ResNetConfig(
        blocks=setting.blocks, filters=setting.filters, train_dtype=dtype, inference_dtype=dtype
    )
    games, moves = setting.cpu if on_cpu else setting.accelerator
    games = -(-games // count) * count if on_cpu else games * count
    config = Config(
        game=GoConfig(size=(setting.size,), komi=setting.komi),
        network=resolve(network),
        search=GumbelConfig(num_simulations=setting.num_simulations, max_considered=16),
        selfplay=SelfplayConfig(
            num_games=games,
            moves_per_dispatch=moves,
            dispatches_per_iteration=1,
            temperature_moves=0,
            resign=False,
        ),
        learner=LearnerConfig(
            batch_size=min(games * moves, setting.batch_size * count),
            optimiser="adamw",
            learning_rate=((0, 1e-3),),
        ),
    )
    return one_pass(config)


def one_pass(config: Config) -> Config:
    """Return `config` with as many learning steps as an iteration has batches, from the first
    iteration on, and without matches."""
    selfplay = config.selfplay
    positions = selfplay.num_games * selfplay.moves_per_dispatch * selfplay.dispatches_per_iteration
    return dataclasses.replace(
        config,
        replay=ReplayConfig(window_games=config.replay.window_games, min_positions=1),
        learner=dataclasses.replace(
            config.learner, steps_per_iteration=max(1, positions // config.learner.batch_size)
        ),
        evaluation=EvaluationConfig(gate=False, every=0),
    )
