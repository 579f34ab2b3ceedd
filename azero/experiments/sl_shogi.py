"""Shogi learned from records on two CPU cores, with the settings of `sl_chess`:

azero data import games.csa --game shogi --out data/shogi
python -m azero.experiments.sl_shogi --data data/shogi
"""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import sl_chess
from azero.games.shogi.settings import ShogiConfig
from azero.train.main import main

EXPERIMENT = Experiment(
    name="sl_shogi",
    title="Shogi learned from records on two CPU cores: does a small network predict the moves?",
    config=dataclasses.replace(sl_chess.EXPERIMENT.config, game=ShogiConfig(history=1)),
    learns_from="records",
)

if __name__ == "__main__":
    main(EXPERIMENT)
