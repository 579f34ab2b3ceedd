"""Learning from recorded games: the learner of self-play on positions of a data set (AGZ,
'Supervised learning from human data').

A generator of events without input or output, like the loop of self-play. Every batch is a function
of (seed, step), so a continued run equals an uninterrupted one. On several hosts each takes its
rows of every batch, and the result is that of one host.
"""

import functools
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import jax
import numpy as np
from jax.sharding import Mesh

from azero import mesh as mesh_lib
from azero.data.records.dataset import Dataset
from azero.data.sample import unpack
from azero.evaluate.accuracy import HeldOut, summarise
from azero.learn.learner import TrainState, make_learner, place_samples
from azero.learn.metrics import StepMetrics
from azero.settings import Config
from azero.train.events import Event, Phase


@dataclass
class SupervisedState:
    """Everything a run is: what a checkpoint keeps."""

    train: TrainState
    iteration: int = 0
    positions: int = 0
    """Positions learned from, counting repeats."""
    games: int = 0
    """Games of the data set."""
    data: str = ""
    """`Dataset.digest` of what is learned from; "" in a checkpoint of an older version."""


COUNTS = ("positions", "games", "data")
"""What a checkpoint keeps of the state, other than arrays."""


class Supervised:
    """The compiled programs of one configuration, and the loop over them."""

    def __init__(self, config: Config, mesh: Mesh, dataset: Dataset) -> None:
        """Build the programs and open the data; nothing is compiled yet.

        Raises:
          ValueError: settings do not fit each other, the devices or the data; the data set has no
            games for training.
        """
        self.config = config
        self.mesh = mesh
        self.game = config.game.build()
        self.network = config.network.build(self.game)
        if config.learner.needs_auxiliary_targets:
            raise ValueError(
                "the weights of auxiliary heads and the shares of root values, lambda-returns and "
                "surprise (learner.*-share) are for self-play: records hold no searches"
            )
        if config.evaluation.records is not None:
            raise ValueError(
                "evaluation.records is for self-play: learning from records predicts the "
                "validation split of its data set"
            )
        self.learner = make_learner(config.learner, self.network, self.game, mesh)
        self.replay = dataset.open_split("train", self.game, config.replay)
        self.fold = jax.jit(self.network.fold, out_shardings=mesh_lib.replicated(mesh))
        self._held_out = self._open_held_out(dataset) if config.evaluation.every else None

    def _open_held_out(self, dataset: Dataset) -> HeldOut | None:
        """Return the positions of the validation split, evenly spaced; None if it is empty."""
        rows = dataset.rows("validation")
        positions = dataset.positions(rows)
        if not len(positions):
            return None
        count = min(len(positions), self.config.evaluation.validation_positions)
        chosen = positions[np.linspace(0, len(positions) - 1, count).astype(np.int64)]
        return HeldOut(self.game, self.network, self.mesh, rows, chosen)

    def fresh_state(self) -> SupervisedState:
        """Return the state before the first iteration."""
        learner = self.learner.init(jax.random.key(self.config.run.seed))
        return SupervisedState(learner, games=self.replay.count_games())

    def iterate(self, state: SupervisedState) -> Iterator[Event]:
        """Run one iteration on `state`, in place; the state may be saved at its end."""
        started, batch = time.monotonic(), self.config.learner.batch_size
        # checkpoints of an older version do not have it
        before = state.positions or int(state.train.step) * batch
        wait = yield from self._learn(state)
        learned = self.config.learner.steps_per_iteration * batch
        state.positions = before + learned
        seconds = time.monotonic() - started
        state.iteration += 1
        if self._held_out is not None and self.config.evaluation.is_due(
            state.iteration, self.config.run.iterations
        ):
            yield Phase("predicting games of the validation split")
            params = self.fold(state.train.variables)
            yield summarise(self._held_out.predict(params))
        yield {
            "games": self.replay.count_games(),
            "positions": state.positions,
            "learn_seconds": seconds,
            "wait_seconds": wait,
            "positions_per_second": learned / seconds,
        }

    def _learn(self, state: SupervisedState) -> Generator[Event, None, float]:
        """Take the learning steps of an iteration; return the seconds spent waiting for data."""
        config = self.config.learner
        yield Phase("learning")
        first = int(state.train.step)
        collected = StepMetrics(
            first, None if self.config.network.name == "value2016" else self.game.num_actions
        )
        place = functools.partial(place_samples, self.mesh)
        share = mesh_lib.process_slice(config.batch_size)
        with self.replay.stream(
            self.config.run.seed, first, config.steps_per_iteration, config.batch_size, place, share
        ) as batches:
            for samples in batches:
                state.train, metrics = self.learner.train_step(
                    state.train, unpack(self.game, samples)
                )
                collected.add(metrics)
            wait = batches.waited_s
        yield collected.means()
        return wait
