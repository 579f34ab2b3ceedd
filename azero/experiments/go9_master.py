"""AlphaGo Master on 9x9: AlphaGo Zero's network, search and self-play, with the features of 2016
and a start from supervised learning (AGZ methods, 'AlphaGo versions').

    python -m azero.experiments.sl9 --data DATA --game.planes 49 --workdir runs/sl9-49
    python -m azero.experiments.go9_master --from-network runs/sl9-49
"""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import go9, sl9
from azero.train.main import main

_GO9 = go9.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="go9_master",
    title="AlphaGo Master on 9x9: self-play that starts from a supervised network with the planes "
    "of 2016 (--from-network)",
    config=dataclasses.replace(
        _GO9,
        # The rules of the records; the 49th plane is the colour, which the value needs (AG16).
        game=sl9.EXPERIMENT.config.game.replace(planes=49),
        network=sl9.EXPERIMENT.config.network,
        # 16 simulations of Gumbel, for a machine without an accelerator; Master's own are those of
        # AGZ. Its rollouts are not in self-play.
        search=_GO9.search.as_kind("gumbel").replace(num_simulations=16, max_considered=16),
        selfplay=dataclasses.replace(
            _GO9.selfplay,
            num_games=128,
            moves_per_dispatch=16,
            dispatches_per_iteration=1,
            temperature_moves=0,  # as in go9_gumbel
        ),
        replay=dataclasses.replace(_GO9.replay, window_games=3000, min_positions=4096),
        learner=dataclasses.replace(
            _GO9.learner,
            batch_size=256,
            steps_per_iteration=16,  # every new position twice on average
            learning_rate=((0, 2e-3),),  # it goes on from sl9's last rates
        ),
        evaluation=dataclasses.replace(_GO9.evaluation, every=20, games=64, num_simulations=16),
        checkpoint=dataclasses.replace(_GO9.checkpoint, every=10),
        run=dataclasses.replace(_GO9.run, iterations=200),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
