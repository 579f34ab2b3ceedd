"""The measuring stages of AlphaGo of 2016: predictions, matches, value errors, and networks for
comparison."""

import dataclasses
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from azero.checkpoint import load_settings
from azero.data.records.dataset import Dataset
from azero.evaluate.accuracy import Accuracy, Mean, clustered_mean, predict_positions, summarise
from azero.match.games import MatchSummary
from azero.match.matches import MatchRequest, play_match
from azero.report.paper import Comparison, claim, format_mean
from azero.report.ratings import rate
from azero.selfplay.trajectory import HostArray
from azero.settings import Config
from azero.train.alphago2016.config import stage_config
from azero.train.alphago2016.stages import (
    Outcome,
    StageContext,
    check_split,
    make_positions,
    reinforce_in,
)

LAMBDAS = (0.0, 0.5, 1.0)
"""Values alone, both, rollouts alone (AG16 Extended Data Table 7)."""
MATCHES = "matches"
"""Directory of the matches inside the working directory."""
ERROR_NOTE = "(z - v)^2 / 4: always saying 0 gives 0.25"


def measure_prediction(context: StageContext) -> Outcome:
    """Measure the move prediction of each policy, and of chance, on the test split."""
    rows, position = held_out_records(context)
    lines = [
        _accuracy(context, f"{part} accuracy", context.directory(part), rows, position)
        for part in ("policy", "tree", "rollout")
    ]
    stones = np.bitwise_count(rows["frame"][position]).sum(axis=1, dtype=np.int64)
    empty = math.prod(Dataset.open(context.data()).game().board_shape) - stones
    chance = clustered_mean(1 / np.maximum(empty, 1), np.cumsum(rows["ply"] == 0)[position])
    lines.append(claim("chance accuracy", format_mean(chance, 100, 1, "%")))
    return Outcome(rows=lines, notes=[f"{len(position):,} positions of the test split"])


def held_out(data: Dataset, most: int, split: str = "test") -> tuple[HostArray, HostArray]:
    """Return rows of a split with a limited number of its positions, evenly spaced.

    Raises:
      ValueError: the split is empty.
    """
    check_split(data, split)
    rows = data.rows(split, most)
    position = data.positions(rows)
    return rows, position[
        np.linspace(0, len(position) - 1, min(most, len(position))).astype(np.int64)
    ]


def held_out_records(context: StageContext) -> tuple[HostArray, HostArray]:
    """Return rows of the records' test split and its positions, as many as `evaluation` says."""
    most = context.settings.evaluation.validation_positions
    return held_out(Dataset.open(context.data()), most)


def value_error(context: StageContext, network: Path, data: Path, split: str = "test") -> Mean:
    """Return the value error of a network on a split of a data set."""
    most = context.settings.evaluation.validation_positions
    return measure_accuracy(
        context, network, *held_out(Dataset.open(data), most, split)
    ).value_error


def measure_accuracy(
    context: StageContext, network: Path, rows: HostArray, position: HostArray
) -> Accuracy:
    """Return how well a network predicts the positions int64[P] of packed rows [T]."""
    return summarise(predict_positions(network, rows, position, context.console))


def _accuracy(
    context: StageContext, name: str, network: Path, rows: HostArray, position: HostArray
) -> Comparison:
    return claim(
        name, format_mean(measure_accuracy(context, network, rows, position).top1, 100, 1, "%")
    )


def measure_reinforcement(context: StageContext) -> Outcome:
    """Play the policy of reinforcement learning against the supervised one it started from."""
    return Outcome(
        rows=[claim("rl-match", format_score(raw_match(context, "reinforce", "policy")))]
    )


def make_second_pass(context: StageContext) -> Outcome:
    """Repeat reinforcement learning from the start with the value network as baseline (AG16: the
    second pass)."""
    outcome = reinforce_in(context, "second-pass", context.directory("value"))
    rows = [
        claim(f"second pass against {name}", format_score(raw_match(context, "second-pass", stage)))
        for name, stage in (("SL", "policy"), ("the first", "reinforce"))
    ]
    return dataclasses.replace(outcome, rows=rows)


def raw_match(context: StageContext, first: str, second: str) -> MatchSummary:
    """Play the policies of two stages against each other without search, every move sampled
    (AG16)."""
    settings = context.settings.matches
    longest = 2 * context.settings.game.size[0] * context.settings.game.size[-1]
    request = MatchRequest(
        first=f"checkpoint:{context.directory(first)}?visits=0",
        second=f"checkpoint:{context.directory(second)}?visits=0",
        games=settings.games,
        temperature_moves=context.settings.game.max_moves or longest,
        seed=context.settings.seed,
        first_name=first,
        second_name=second,
        out=context.workdir / MATCHES / f"{first}-{second}".replace("/", "-"),
    )
    return play_match(request, context.console)


def format_score(summary: MatchSummary) -> str:
    """Return the first player's score with its interval and the number of games."""
    score = summary.score
    low, high = 100 * score.low, 100 * score.high
    return f"{100 * score.score:.1f}% ({low:.1f} to {high:.1f}) of {score.games} games"


def search_games(context: StageContext) -> dict[str, Any]:
    """Return the arguments that the matches between players with a search share."""
    settings = context.settings.matches
    return {
        "games": settings.search_games,
        "temperature_moves": 0,
        "random_plies": 2,
        "seed": context.settings.seed,
        "workers": settings.workers,
    }


def measure_mixing(context: StageContext) -> Outcome:
    """Play matches of the player against itself with values alone, rollouts alone, and both."""
    settings, directory = context.settings.matches, context.workdir / MATCHES / "mixing"
    rows = []
    for index, first in enumerate(LAMBDAS):
        for second in LAMBDAS[index + 1 :]:
            player = (
                f"apv:{context.workdir}?visits={settings.visits}&threshold={settings.threshold}"
            )
            names = [f"lambda {mixing:g}" for mixing in (first, second)]
            request = MatchRequest(
                f"{player}&lambda={first:g}",
                f"{player}&lambda={second:g}",
                first_name=names[0],
                second_name=names[1],
                out=directory / f"{first:g}-{second:g}",
                **search_games(context),
            )
            score = format_score(play_match(request, context.console))
            rows.append(claim(f"{names[0]} against {names[1]}", score))
    fit = rate([directory], {"lambda 1": 0.0}, console=context.console)
    for rating in fit.ratings:
        interval = f"({rating.low:z.0f} to {rating.high:z.0f})"
        rows.append(claim(f"rating of {rating.name}", f"{rating.elo:+z.0f} {interval}"))
    note = (
        f"{settings.visits} rollouts a move, a node after {settings.threshold}; every pair of "
        "games starts with two random moves"
    )
    return Outcome(rows=rows, notes=[note])


def measure_value_error(context: StageContext) -> Outcome:
    """Measure the error on positions that the value network learned from, on games that it has not
    seen, and on recorded games."""
    rows = _value_errors(context, "one position", "value", context.directory("value-data"))
    if context.records is not None and Dataset.open(context.records).shards("test"):
        error = value_error(context, context.directory("value"), context.records)
        rows.append(claim("value error on records", format_mean(error, 1, 3)))
    return Outcome(rows=rows, notes=[ERROR_NOTE])


def _value_errors(context: StageContext, name: str, stage: str, data: Path) -> list[Comparison]:
    network = context.directory(stage)
    return [
        claim(f"{name}, {split}", format_mean(value_error(context, network, data, split), 1, 3))
        for split in ("train", "test")
    ]


def compare_overfitting(context: StageContext) -> Outcome:
    """Train value networks on all positions of their games, of self-play and of records, and
    evaluate them on games that they have not seen."""
    made = make_positions(context, "value-data-all", "all")
    rows = _value_errors(context, "one position", "value", context.directory("value-data"))
    for name, data in (
        ("all positions of self-play", context.directory("value-data-all")),
        ("all positions of records", context.data()),
    ):
        stage = f"overfitting/{name.rsplit(' ', 1)[-1]}"
        context.learn(stage, stage_config(context.settings, "value"), data)
        rows += _value_errors(context, name, stage, data)
        if data != context.data():
            network, singles = context.directory(stage), context.directory("value-data")
            single = value_error(context, network, singles)
            rows.append(claim(f"{name}, test of one position", format_mean(single, 1, 3)))
    return Outcome(rows=rows, notes=[ERROR_NOTE, *(f"{row.what}: {row.ours}" for row in made.rows)])


def compared_policies(context: StageContext, kind: str) -> dict[int, tuple[str, Config]]:
    """Return the policy networks that the stage `kind` compares, "planes" or "filters", by that
    number: the stage that trains each, and its settings. Where the stage `policy` has the same
    settings, it is that."""
    base = stage_config(context.settings, "policy")
    if kind == "planes":
        games = {planes: base.game.replace(planes=planes) for planes in (4, 12, 20, 48)}
        configs = {planes: dataclasses.replace(base, game=game) for planes, game in games.items()}
    else:
        networks = {wide: base.network.replace(filters=wide) for wide in context.settings.filters}
        configs = {
            wide: dataclasses.replace(base, network=network) for wide, network in networks.items()
        }
    return {
        number: ("policy" if _is_policy(context, config) else f"{kind}/{number}", config)
        for number, config in configs.items()
    }


def compare(kind: str, context: StageContext) -> Outcome:
    """Train the policy networks of the stage `kind`, and predict the test split."""
    rows, position = held_out_records(context)
    context.directory(kind).mkdir(parents=True, exist_ok=True)
    lines = []
    for number, (stage, config) in compared_policies(context, kind).items():
        if stage != "policy":
            context.learn(stage, config, context.data())
        lines.append(
            _accuracy(context, f"{number} {kind}", context.directory(stage), rows, position)
        )
    return Outcome(rows=lines, notes=[f"{len(position):,} positions of the test split"])


def _is_policy(context: StageContext, config: Config) -> bool:
    """Whether the stage `policy` was run with these settings."""
    if not (context.directory("policy") / "checkpoint").is_dir():
        return False
    iteration, found = load_settings(context.directory("policy"))

    def facts(config: Config) -> tuple[object, ...]:
        network = config.network
        sizes = [getattr(network, name, None) for name in ("name", "blocks", "filters")]
        return config.game, sizes, config.learner, config.replay.symmetries, config.run.seed

    return facts(found) == facts(config) and iteration == config.run.iterations


MEASURES: dict[str, Callable[[StageContext], Outcome]] = {
    "prediction": measure_prediction,
    "rl-match": measure_reinforcement,
    "value-error": measure_value_error,
    "mixing": measure_mixing,
    "planes": functools.partial(compare, "planes"),
    "filters": functools.partial(compare, "filters"),
    "overfitting": compare_overfitting,
    "second-pass": make_second_pass,
}
"""Measuring stages by name."""
