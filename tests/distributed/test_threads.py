"""The threads that make batches ready start no program: two threads would start them in another
order on every device, and a run would wait for ever."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from azero import mesh as mesh_lib
from azero.data.sample import unpack
from azero.data.settings import ReplayConfig
from azero.experiment import load
from azero.learn.learner import place_samples
from azero.learn.settings import LearnerConfig
from azero.search.settings import PuctConfig
from azero.selfplay.settings import SelfplayConfig
from azero.settings import Config
from azero.train.loop import Loop


def tiny() -> Config:
    config = load("tictactoe").config
    return dataclasses.replace(
        config,
        network=dataclasses.replace(
            config.network, blocks=1, filters=4, value_hidden=4, convolution="xla"
        ),
        search=PuctConfig(num_simulations=2),
        selfplay=SelfplayConfig(num_games=16, moves_per_dispatch=6, dispatches_per_iteration=2),
        replay=ReplayConfig(min_positions=1),
        learner=LearnerConfig(batch_size=16, steps_per_iteration=3),
        evaluation=dataclasses.replace(config.evaluation, gate=False, every=0),
    )


class Programs(logging.Handler):
    """Which threads had a program made ready: without anything compiled before, each program is, by
    the thread that starts it first."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.threads: dict[str, list[str]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.threads.setdefault(str(record.threadName), []).append(record.getMessage())


@pytest.fixture
def programs() -> Iterator[Programs]:
    handler = Programs()
    logger = logging.getLogger("jax")
    logger.addHandler(handler)
    jax.clear_caches()
    # in all threads; the context manager of the same name is for one
    jax.config.update("jax_log_compiles", True)
    yield handler
    jax.config.update("jax_log_compiles", False)
    logger.removeHandler(handler)


def of_replay(programs: Programs) -> list[str]:
    return [
        text
        for name, texts in programs.threads.items()
        if name.startswith("replay")
        for text in texts
    ]


def test_an_iteration_starts_every_program_from_one_thread(
    programs: Programs, tmp_path: Path
) -> None:
    loop = Loop(tiny(), mesh_lib.make_mesh(), tmp_path)
    state = loop.make_state(loop.fresh_arrays())
    for _ in loop.iterate(state):
        pass
    assert int(state.train.step) == 3
    assert any("unpack" in text for text in programs.threads["MainThread"])
    assert of_replay(programs) == []

    # What the threads once did is seen by the same look, so the test above cannot pass by accident.
    jax.clear_caches()
    place = functools.partial(place_samples, loop.mesh)
    with state.replay.stream(
        0, 0, 2, 16, lambda samples: unpack(loop.game, place(samples))
    ) as batches:
        assert next(batches).value.shape == (16,)
    assert any("unpack" in text for text in of_replay(programs))
