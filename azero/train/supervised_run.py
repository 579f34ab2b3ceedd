"""The stage that learns from recorded games."""

import contextlib
from functools import partial
from pathlib import Path

import jax
from rich.text import Text

from azero import mesh as mesh_lib
from azero.checkpoint import Checkpointer
from azero.console.tables import count_of
from azero.data.records.dataset import Dataset
from azero.settings import Config
from azero.train.saving import keep_first_network, restore_learner, save_learner, with_first_network
from azero.train.stage import Stage, report_accuracy
from azero.train.supervised import COUNTS, Supervised, SupervisedState


def make_supervised_stage(
    data: Path, config: Config, workdir: Path, from_network: Path | None = None
) -> Stage[SupervisedState]:
    """Return the stage on the data set in `data`; its programs are not compiled yet. A new run
    starts from the network in `from_network`, or from random parameters.

    Raises:
      ValueError: settings do not fit each other, the devices or the data, or the processes of the
        run have different data.
      CheckpointError: the network that the run starts from cannot be read.
    """
    dataset = Dataset.open(data)
    notes = keep_first_network(from_network, workdir)
    loop = Supervised(config, mesh_lib.make_mesh(), dataset)
    games, positions = loop.replay.count_games(), loop.replay.count_positions()
    digest = dataset.digest("train")
    if mesh_lib.from_lead(digest) != digest:
        raise ValueError(
            f"--data {data}: process {jax.process_index()} has other games there than process 0; "
            "all need the same data set"
        )

    def restore(checkpointer: Checkpointer) -> tuple[SupervisedState, list[str]]:
        state = restore_learner(checkpointer, loop.fresh_state(), COUNTS)
        if state.iteration == 0:
            state.train = with_first_network(
                state.train, config.network, workdir, loop.game, loop.mesh
            )
        warnings = notes + dataset.warnings + loop.replay.take_warnings()
        if state.games != games or state.data not in ("", digest):
            warnings.append(
                f"the run continues with other data: {data} has {count_of(games, 'game')} to learn "
                f"from, the run had {state.games:,}{' others' if state.games == games else ''}"
            )
        state.games, state.data = games, digest
        return state, warnings

    return Stage(
        config=config,
        restore=restore,
        save=partial(save_learner, games=games, counts=COUNTS),
        open=lambda state, stop: contextlib.nullcontext(loop.iterate),
        report=lambda accuracy, metrics, progress: report_accuracy(
            accuracy, progress, predicts_moves=config.network.name != "value2016"
        ),
        count=lambda state: count_of(int(state.train.step), "step"),
        announcement=Text(
            f"{count_of(games, 'game')}, {count_of(positions, 'position')} to learn from"
        ),
        exports_network=True,
    )
