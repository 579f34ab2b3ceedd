"""9x9 Go from scratch with Gumbel search at 16 simulations (Danihelka et al. 2022, Figure 2)."""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import go9
from azero.search.settings import GumbelConfig
from azero.train.main import main

EXPERIMENT = Experiment(
    name="go9_gumbel",
    title="9x9 Go with Gumbel at 16 simulations, where visit-count search hardly learns (GUM "
    "Figure 2)",
    config=dataclasses.replace(
        go9.EXPERIMENT.config,
        # GUM section 7 and appendix
        search=GumbelConfig(num_simulations=16, max_considered=16, c_visit=50.0, c_scale=1.0),
        # The Gumbel noise explores already: with 16 simulations over 16 moves, visit counts would
        # be a uniform draw.
        selfplay=dataclasses.replace(go9.EXPERIMENT.config.selfplay, temperature_moves=0),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
