"""The driver on a stage that counts: what diverges is not saved, and a run goes back."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import pytest
from rich.console import Console

from azero.checkpoint import list_checkpoints
from azero.games.go.settings import GoConfig
from azero.learn.learner import TrainState
from azero.settings import Config
from azero.train import driver
from azero.train.saving import restore_learner, save_learner
from azero.train.settings import CheckpointConfig, RunConfig
from azero.train.stage import Stage


@dataclasses.dataclass
class State:
    train: TrainState
    iteration: int = 0


class Counting:
    """Adds `rate` to its one weight in every iteration, and overflows in iteration
    `overflows_in`; the weight is `first` before that."""

    config = Config(
        game=GoConfig(size=(5,)),
        run=RunConfig(iterations=4),
        checkpoint=CheckpointConfig(every=1, keep=10),
    )

    def __init__(self, rate: float = 1.0, overflows_in: int = 0, first: float = 0.0) -> None:
        self.rate = rate
        self.first = first
        self.overflows_in = overflows_in

    def fresh_state(self) -> State:
        return State(
            TrainState(
                {"weight": jnp.float32(self.first)},
                {"mean": jnp.zeros(())},
                {"trace": jnp.zeros(())},
                jnp.int32(0),
            )
        )

    def iterate(self, state: State) -> Iterator[object]:
        state.iteration += 1
        rate = jnp.inf if state.iteration == self.overflows_in else self.rate
        state.train = state.train.replace(
            params={"weight": state.train.params["weight"] + rate}, step=state.train.step + 1
        )
        yield from ()


def learn(
    loop: Counting, workdir: Path, from_checkpoint: int | None = None, command: str | None = None
) -> str:
    def make_stage(config: Config, workdir: Path) -> Stage[State]:
        return Stage(
            config=config,
            restore=lambda checkpointer: (restore_learner(checkpointer, loop.fresh_state()), []),
            save=lambda checkpointer, state: save_learner(checkpointer, state, 0),
            open=lambda state, stop: contextlib.nullcontext(loop.iterate),
            report=lambda event, metrics, progress: {},
            count=lambda state: f"{int(state.train.step)} steps",
            exports_network=True,
        )

    console = Console(record=True, width=400)
    status = driver.run_stage(
        "counting",
        loop.config,
        workdir,
        make_stage,
        console,
        from_checkpoint=from_checkpoint,
        command=command,
    )
    assert status == 0
    return console.export_text()


@pytest.fixture(autouse=True)
def without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "export_network", lambda workdir, path: path)


def test_what_overflows_is_not_saved_and_the_message_says_where_and_how_to_go_on(
    tmp_path: Path,
) -> None:
    with pytest.raises(FloatingPointError) as error:
        learn(Counting(overflows_in=3), tmp_path, command="azero train sl9 --data games")
    text = str(error.value)
    assert (
        "after step 3 the learner's params/weight is not finite" in text
        and "in iteration 3" in text
    )
    assert "there are 1, 2" in text and "azero train sl9 --data games --from-checkpoint 1" in text
    assert [row.iteration for row in list_checkpoints(tmp_path)] == [1, 2]
    with pytest.raises(FloatingPointError, match=r"remove the checkpoints after 1 from .*steps"):
        learn(Counting(overflows_in=3), tmp_path)
    with pytest.raises(FloatingPointError, match=r"there is no checkpoint yet, so start over"):
        learn(Counting(overflows_in=1), tmp_path / "new")


def test_first_variables_that_are_not_finite_are_no_divergence(tmp_path: Path) -> None:
    with pytest.raises(
        FloatingPointError, match=r"^before the first step the learner's params/weight is not"
    ):
        learn(Counting(first=float("nan")), tmp_path)
    assert list_checkpoints(tmp_path) == []


def test_a_run_without_a_replay_goes_back(tmp_path: Path) -> None:
    learn(Counting(), tmp_path)
    first = {row.iteration: row.digest for row in list_checkpoints(tmp_path)}
    assert f"gone back to checkpoint 2: moved checkpoints 3, 4 to {tmp_path}" in learn(
        Counting(rate=2.0), tmp_path, from_checkpoint=2
    )
    second = {row.iteration: row.digest for row in list_checkpoints(tmp_path)}
    assert [first[number] == second[number] for number in (1, 2, 3, 4)] == [
        True,
        True,
        False,
        False,
    ]
    assert sorted(
        path.name
        for path in (tmp_path / "set-aside" / "after-2" / "checkpoints" / "hosts").iterdir()
    ) == ["3.p000.host", "4.p000.host"]
