"""What making the player of AlphaGo (2016) costs."""

from __future__ import annotations

import jax

from azero.train.alphago2016.config import AlphaGoConfig, stage_config
from azero.train.estimate import evaluation_flops

MOVES_PER_POINT = 1.2
"""Length of a game that policies play until nothing but eyes is left (a planning figure)."""


def alphago_flops(settings: AlphaGoConfig) -> float:
    """Return the floating-point operations of the convolutional networks of AlphaGo (2016) in the stages that make the player."""

    def forward(stage: str) -> float:
        config = stage_config(settings, stage)
        game = config.game.build()
        network = config.network.build(game)
        return evaluation_flops(jax.eval_shape(network.init, jax.random.key(0))["params"], game.board_shape)

    points = settings.game.size[0] * settings.game.size[-1]
    moves = MOVES_PER_POINT * points
    learned = {name: getattr(settings, name) for name in ("policy", "value")}
    # A training step is a forward pass and a backward pass of twice its cost.
    flops = sum(3 * forward(name) * stage.iterations * stage.learner.steps_per_iteration * stage.learner.batch_size for name, stage in learned.items())
    # Each side's moves of a game are evaluated once; those of the side that learns twice more, and backwards.
    flops += settings.reinforce.iterations * settings.reinforce.num_games * moves * (1 + 3 / 2) * forward("policy")
    return flops + settings.value_data.positions * moves * forward("policy")
