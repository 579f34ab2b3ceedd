"""The cost of training AlphaGo (2016), by arithmetic."""

from azero.train.alphago2016.config import AlphaGoConfig, stage_config
from azero.train.estimate import TRAINING_PASSES, evaluation_flops

MOVES_PER_POINT = 1.2
"""Moves per point of a game that policies play until only eyes are left (planning figure)."""


def alphago_flops(settings: AlphaGoConfig) -> float:
    """Return the operations of the convolutional networks in the stages that make the player."""
    moves = MOVES_PER_POINT * settings.game.size[0] * settings.game.size[-1]
    policy = _stage_flops(settings, "policy")
    flops = 0.0
    for name, stage in (("policy", settings.policy), ("value", settings.value)):
        positions = stage.iterations * stage.learner.steps_per_iteration * stage.learner.batch_size
        flops += TRAINING_PASSES * positions * _stage_flops(settings, name)
    # Every move is evaluated once; those of the learning side are also trained on.
    games = settings.reinforce.iterations * settings.reinforce.num_games
    flops += games * moves * (1 + TRAINING_PASSES / 2) * policy
    return flops + settings.value_data.positions * moves * policy


def _stage_flops(settings: AlphaGoConfig, stage: str) -> float:
    """Return the operations of one evaluation of the network of `stage`."""
    config = stage_config(settings, stage)
    return evaluation_flops(config.network, config.game.build())
