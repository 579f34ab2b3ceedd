"""The stages of AlphaGo of 2016 that make its networks, each a run or a data set in its own
directory."""

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console

from azero import mesh as mesh_lib
from azero.checkpoint import load_variables
from azero.checkpoint.record import format_changes
from azero.config import to_dict
from azero.console.progress import Progress
from azero.console.tables import count_of, format_count
from azero.data.records.dataset import DATASET, Dataset
from azero.data.records.filters import SPLITS, Filters, Fractions
from azero.data.records.importing import run_import
from azero.data.records.requests import ImportRequest
from azero.data.rows import read_rows, replace_text
from azero.data.run_files import METRICS, read_json
from azero.report.paper import Comparison, claim
from azero.report.plots import Chart
from azero.selfplay.trajectory import select_games
from azero.settings import Config
from azero.train.alphago2016.config import AlphaGoConfig, ValueDataConfig, stage_config, stage_seed
from azero.train.alphago2016.reinforce_run import make_reinforce_stage
from azero.train.alphago2016.value_games import MadeShard, SelfPlayer, ValueGames
from azero.train.driver import run_stage
from azero.train.stage import MakeStage
from azero.train.stopping import stop_on_signals
from azero.train.supervised_run import make_supervised_stage

RECORDS = "data"
"""Directory of the imported records inside the working directory."""
MADE_WITH = "made_with.json"
"""In a data set of self-play: the settings of its first games."""
_SPLIT_EVERY = 20
"""One in this many self-play games goes to the test split, and one to validation."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a stage."""

    rows: Sequence[Comparison] = ()
    """The paper's figures and ours."""
    notes: Sequence[str] = ()
    """Notes for the reader."""
    charts: Sequence[Chart] = ()


@dataclass(frozen=True)
class StageContext:
    """The context that all stages share."""

    name: str
    """Of the experiment."""
    settings: AlphaGoConfig
    workdir: Path
    records: Path | None
    """The data set of recorded games; None if there is none."""
    console: Console

    def directory(self, stage: str) -> Path:
        """Return the directory of a stage."""
        return self.workdir / stage

    def data(self, *splits: str) -> Path:
        """Return the data set of recorded games.

        Raises:
          ValueError: there is none, or one of `splits` has no games.
        """
        if self.records is None:
            raise ValueError(
                f"no records in {self.workdir}: --data takes a data set (azero data import) or "
                "files of records"
            )
        for split in splits:
            check_split(Dataset.open(self.records), split)
        return self.records

    def learn(self, stage: str, config: Config, data: Path) -> None:
        """Train a network on a data set, in the directory of a stage; errors as of `run`."""
        self.run(stage, config, functools.partial(make_supervised_stage, data))

    def run(self, stage: str, config: Config, make_stage: MakeStage[Any]) -> None:
        """Start or continue a run in the directory of a stage.

        Raises:
          KeyboardInterrupt: it was stopped before its end.
        """
        if run_stage(self.name, config, self.directory(stage), make_stage, self.console):
            raise KeyboardInterrupt


def check_split(data: Dataset, split: str) -> None:
    """Check that a split of a data set has games.

    Raises:
      ValueError: it has none.
    """
    if not data.shards(split):
        raise ValueError(f"{data.directory} has no games in its {split} split; it needs more games")


def prepare_data(
    settings: AlphaGoConfig, workdir: Path, data: Path | None, console: Console
) -> Path | None:
    """Return the data set to learn from: the given one, or records imported into the working
    directory, or what was imported before.

    Raises:
      ValueError: not one game can be imported, or the data set is of another board.
    """
    own = workdir / RECORDS
    if data is None:
        data = own if (own / DATASET).exists() else None
    elif not (data / DATASET).exists():
        game = settings.game
        filters = Filters(size=game.size, suicide=game.suicide, superko=game.superko)
        run_import(ImportRequest((data,), own, filters), console)
        data = own
    wanted = settings.game.size[0], settings.game.size[-1]
    if data is not None and (shape := Dataset.open(data).filters.board_shape) != wanted:
        boards = f"{shape[0]}x{shape[1]}; the experiment is for {wanted[0]}x{wanted[1]}"
        raise ValueError(f"{data} holds games on {boards}")
    return data


def _last(directory: Path, key: str) -> float | None:
    """Return the newest number of this name in a run's metrics."""
    found = [row[key] for row in read_rows(directory / METRICS) if row.get(key) is not None]
    return float(found[-1]) if found else None


def _learn_moves(stage: str) -> Callable[[StageContext], Outcome]:
    def build(context: StageContext) -> Outcome:
        context.learn(stage, stage_config(context.settings, stage), context.data())
        top1 = _last(context.directory(stage), "top1")
        ours = "not measured" if top1 is None else f"{100 * top1:.1f}% of held-out moves"
        return Outcome([claim(f"{stage} accuracy", ours)])

    return build


def reinforce_in(
    context: StageContext, stage: str = "reinforce", value: Path | None = None
) -> Outcome:
    """Improve the policy, by games against earlier policies, in the directory of a stage; `value`
    is the directory of the value network that is the baseline, None is a baseline of 0."""
    config, settings = stage_config(context.settings, "reinforce"), context.settings.reinforce
    seed = stage_seed(context.settings.seed, stage)
    config = dataclasses.replace(config, run=dataclasses.replace(config.run, seed=seed))
    make_stage = functools.partial(
        make_reinforce_stage, context.directory("policy"), settings.pool_every, value
    )
    context.run(stage, config, make_stage)
    score = _last(context.directory(stage), "score")
    games = f"{settings.iterations:,} mini-batches of {settings.num_games} games"
    last = f"score of the last mini-batch against its opponent: {100 * (score or 0):.0f}%"
    return Outcome([claim("reinforce size", games)], [] if score is None else [last])


def make_positions(
    context: StageContext, stage: str = "value-data", which: Literal["one", "all"] = "one"
) -> Outcome:
    """Make a data set of self-play in the directory of a stage, or continue it."""
    settings, directory = context.settings.value_data, context.directory(stage)
    settings = dataclasses.replace(settings, seed=stage_seed(settings.seed, stage))
    first, second = (
        SelfPlayer(*load_variables(context.directory(name))) for name in ("policy", "reinforce")
    )
    maker = ValueGames(settings, which, first, second, mesh_lib.make_mesh())
    fractions = Fractions(validation=1 / _SPLIT_EVERY, test=1 / _SPLIT_EVERY)
    game = context.settings.game
    dataset = Dataset.create(
        directory,
        Filters(size=game.size, superko=game.superko, suicide=game.suicide),
        fractions,
        maker.rows_per_position,
    )
    total, positions = settings.positions, _positions_in(dataset)
    _note_settings(settings, directory, positions, context.console)
    number, played = len(dataset.shards("train")), 0
    with (
        stop_on_signals(directory) as stop,
        Progress(total, min(positions, total), context.console, unit="position") as progress,
    ):
        stop.kept = lambda: (
            f"{directory} has {count_of(positions, 'position')}, and the same command continues "
            "from there"
        )
        while positions < total:
            stop.doing = f"shard {number} of games"
            with progress.working(f"games of self-play{'' if played else ' (compiling at first)'}"):
                made = maker.make(number, total - positions)
                _keep(dataset, made)
            number, played = number + 1, played + made.played
            positions = _positions_in(dataset)
            progress.update({"iteration": min(positions, total), "games": played})
            if stop.is_set:
                raise KeyboardInterrupt
    games = sum(shard.games for split in SPLITS for shard in dataset.shards(split))
    size = f"{format_count(positions)} positions of {format_count(games)} games"
    return Outcome([claim(stage, size)])


def _note_settings(
    settings: ValueDataConfig, directory: Path, positions: int, console: Console
) -> None:
    """Keep the settings of a data set's first games; print how the present ones differ."""
    facts = {name: value for name, value in to_dict(settings).items() if name != "positions"}
    if not positions:
        replace_text(directory / MADE_WITH, json.dumps(facts, indent=2) + "\n")
    changes = format_changes(
        read_json(directory / MADE_WITH, advice=""), facts, "{name} = {before} there, {now} now"
    )
    if changes:
        text = f"{directory} has {count_of(positions, 'position')} of other settings"
        listed = "; ".join(changes.values())
        console.print(f"{text}, which are kept: {listed}", style="yellow", soft_wrap=True)


def _positions_in(dataset: Dataset) -> int:
    rows = sum(shard.positions for split in SPLITS for shard in dataset.shards(split))
    return rows // dataset.rows_per_position


def _keep(dataset: Dataset, made: MadeShard) -> None:
    """Add the games of a shard to those of their splits that do not have them, the training split
    last."""
    place = np.arange(len(made.games.length)) % _SPLIT_EVERY
    for split, chosen in (
        ("test", place == 1),
        ("validation", place == 2),
        ("train", (place == 0) | (place > 2)),
    ):
        games = select_games(made.games, chosen)
        sources = [f"self-play {game}" for game in games.number]
        shards = dataset.shards(split)
        # The last shard has them if an interruption came between two splits.
        if not sources or (shards and dataset.sources(split, shards[-1].shard)[0] == sources[0]):
            continue
        dataset.append(split, made.rows[np.repeat(chosen, made.games.length)], games, sources)


def build_value(context: StageContext) -> Outcome:
    """Learn the results of the positions."""
    config, data = stage_config(context.settings, "value"), context.directory("value-data")
    context.learn("value", config, data)
    error = _last(context.directory("value"), "held_out_value_error")
    return Outcome([] if error is None else [claim("value error", f"{error:.3f} held out")])


BUILDERS: dict[str, Callable[[StageContext], Outcome]] = {
    "rollout": _learn_moves("rollout"),
    "tree": _learn_moves("tree"),
    "policy": _learn_moves("policy"),
    "reinforce": reinforce_in,
    "value-data": make_positions,
    "value": build_value,
}
"""Training stages by name."""
