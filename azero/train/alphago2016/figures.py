"""The measuring stages that make figures of AG16: Figure 2a (strength by the accuracy of the policy
network) and Figure 2b (error of values by the stage of the game)."""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from azero import mesh as mesh_lib
from azero.checkpoint import load_variables
from azero.console.progress import Progress
from azero.data.records.dataset import Dataset
from azero.evaluate.accuracy import Mean, clustered_mean, predict_positions
from azero.games.game import Game
from azero.games.go.rollouts.rollouts import Rollouts, Starts
from azero.games.go.rules import Go
from azero.match.compiled import replay
from azero.match.games import MatchSummary
from azero.match.matches import MatchRequest, play_match
from azero.players.alphago2016 import make_go
from azero.report.paper import claim, format_mean
from azero.report.plots import Chart, Series
from azero.selfplay.policy_games import make_result_sampler
from azero.selfplay.trajectory import HostArray
from azero.train.alphago2016.config import stage_config
from azero.train.alphago2016.measures import (
    ERROR_NOTE,
    MATCHES,
    compared_policies,
    format_score,
    held_out,
    held_out_records,
    measure_accuracy,
    raw_match,
    search_games,
)
from azero.train.alphago2016.stages import Outcome, StageContext
from azero.train.alphago2016.value_games import SelfPlayer, sampler
from azero.types import Array, PyTree

SampleFn = Callable[[PyTree], Array]
"""states[B] -> the result float32[B] of one rollout each, for Black."""


def measure_strength(context: StageContext) -> Outcome:
    """Play the policy networks of the stages `planes` and `filters` against that of the stage
    `policy`, alone and in the search (AG16 Figure 2a, Extended Data Table 3)."""
    rows, position = held_out_records(context)
    lines, points = [], []
    for stage in _compared_stages(context):
        accuracy = measure_accuracy(context, context.directory(stage), rows, position).top1
        scores = (raw_match(context, stage, "policy"), _search_match(context, stage))
        points.append((100 * accuracy.value, scores))
        kinds = ("alone", "in the search")
        lines.append(claim(f"{stage} accuracy", format_mean(accuracy, 100, 1, "%")))
        lines += [
            claim(f"{stage} {kind}", format_score(score))
            for kind, score in zip(kinds, scores, strict=True)
        ]
    points.sort(key=lambda point: point[0])
    series = [
        _score_series(kind, [(x, scores[index]) for x, scores in points])
        for index, kind in enumerate(("policy alone", "policy in the search"))
    ]
    chart = Chart(
        "Score against the policy of `policy`, %", series, "moves of held-out games predicted, %"
    )
    settings = context.settings.matches
    note = f"{settings.visits} rollouts a move, a node after {settings.threshold}"
    return Outcome(rows=lines, notes=[note], charts=[chart])


def _compared_stages(context: StageContext) -> list[str]:
    """Return the stages with a policy network for comparison."""
    return [
        stage
        for kind in ("planes", "filters")
        for stage, _ in compared_policies(context, kind).values()
        if stage != "policy" and context.directory(stage).is_dir()
    ]


def _score_series(label: str, points: list[tuple[float, MatchSummary]]) -> Series:
    scores = [summary.score for _, summary in points]
    return Series(
        label,
        [x for x, _ in points],
        [100 * score.score for score in scores],
        [100 * score.low for score in scores],
        [100 * score.high for score in scores],
    )


def player_with(context: StageContext, policy: str, value: Path) -> str:
    """Return the player with the policy network of a stage and a value network."""
    settings = context.settings.matches
    parts = {"value": value, **{part: context.directory(part) for part in ("rollout", "tree")}}
    networks = "&".join(f"{part}={path}" for part, path in parts.items())
    return (
        f"apv:{context.directory(policy)}?{networks}"
        f"&visits={settings.visits}&threshold={settings.threshold}"
    )


def _search_match(context: StageContext, stage: str) -> MatchSummary:
    """Play the player with the policy of a stage against the one with that of `policy`."""
    value = context.directory("value")
    request = MatchRequest(
        player_with(context, stage, value),
        player_with(context, "policy", value),
        **search_games(context),
        first_name=stage,
        second_name="policy",
        out=context.workdir / MATCHES / "strength" / stage.replace("/", "-"),
    )
    return play_match(request, context.console)


def measure_value_by_move(context: StageContext) -> Outcome:
    """Compare the error of the value network with that of mean results of rollouts, by the stage
    of the game (AG16 Figure 2b)."""
    settings = context.settings.by_move
    game = make_go(stage_config(context.settings, "policy").game)
    rows, position = held_out(Dataset.open(context.data()), settings.positions)
    states, is_whole = replay_positions(game, rows, position)
    position, states = position[is_whole], jax.tree.map(lambda leaf: leaf[is_whole], states)
    if not len(position):
        raise ValueError("no game of the test split can be replayed from the empty board")
    results, to_play = rows["value"][position].astype(np.float32), rows["to_play"][position]
    games, moves = np.cumsum(rows["ply"] == 0)[position], rows["ply"][position].astype(int)
    errors = {}
    for name, sample in _samplers(context, game):
        with (
            Progress(settings.rollouts, console=context.console, unit="rollout") as progress,
            progress.working(name),
        ):
            outcomes = np.zeros((settings.rollouts, len(position)))
            for number in range(settings.rollouts):
                outcomes[number] = np.where(to_play == 0, 1, -1) * np.asarray(sample(states))
                progress.update({"iteration": number + 1})
        noise = outcomes.var(axis=0, ddof=1) / settings.rollouts
        errors[name] = (np.square(results - outcomes.mean(axis=0)) - noise) / 4
    errors["value network"] = predict_positions(
        context.directory("value"), rows, position, context.console
    ).value_error
    outcome = _by_move_outcome(errors, games, moves, settings.moves_per_band, settings.rollouts)
    note = (
        f"rollouts are counted with komi {game.komi:g}; a data set does not keep that of its games"
    )
    return dataclasses.replace(outcome, notes=[*outcome.notes, note])


def _by_move_outcome(
    errors: dict[str, HostArray], games: HostArray, moves: HostArray, width: int, rollouts: int
) -> Outcome:
    """Return the table and the chart of errors [P] of positions with their games and the moves
    before them."""
    bands = np.unique(moves // width)
    lines, series = [], []
    for name, error in errors.items():
        lines.append(claim(name, format_mean(_mean_error(error, games), 1, 3)))
        means: list[Mean] = []
        for band in bands:
            inside = moves // width == band
            means.append(_mean_error(error[inside], games[inside]))
            what = f"{name}, moves {band * width} to {(band + 1) * width - 1}"
            lines.append(claim(what, format_mean(means[-1], 1, 3)))
        middle = [float(moves[moves // width == band].mean()) for band in bands]
        series.append(Series(name, middle, [mean.value for mean in means]))
    counts = ", ".join(str(int((moves // width == band).sum())) for band in bands)
    notes = [
        ERROR_NOTE,
        f"{len(moves):,} positions of {len(np.unique(games)):,} held-out games ({counts} by band)",
        f"{rollouts} rollouts each, whose own noise is subtracted from the errors",
    ]
    chart = Chart("Value error (z - v)^2 / 4 by moves played", series, "moves played")
    return Outcome(rows=lines, notes=notes, charts=[chart])


def _mean_error(errors: HostArray, games: HostArray) -> Mean:
    """Return the mean of errors [P] whose noise is subtracted, so that they may be below 0; their
    mean is not, and neither is its interval."""
    mean = clustered_mean(errors, games)
    low = max(0.0, mean.low) if np.isfinite(mean.low) else mean.low
    return Mean(max(0.0, mean.value), low, max(0.0, mean.high))


def replay_positions(game: Go, rows: HostArray, position: HostArray) -> tuple[PyTree, HostArray]:
    """Play the games of packed rows [T] up to the positions int64[P] again.

    Returns:
      (states[P], bool[P]: whether the game begins on the empty board and leads to the position)
    """
    starts = np.flatnonzero(rows["ply"] == 0)
    first = starts[np.searchsorted(starts, position, "right") - 1]
    lengths = position - first
    actions = np.full((len(position), int(lengths.max(initial=0))), -1, np.int32)
    for row, start, length in zip(actions, first, lengths, strict=True):
        row[:length] = rows["action"][start : start + length]
    states = jax.jit(functools.partial(replay, cast(Game, game)))(actions)
    seen = np.asarray(jax.vmap(game.pack_frame)(states))
    agrees = (seen == rows["frame"][position]).all(axis=1)
    return states, agrees & (np.asarray(states.to_play) == rows["to_play"][position])


def _samplers(context: StageContext, game: Go) -> Iterator[tuple[str, SampleFn]]:
    """Yield what plays rollouts, by name: the four policies of AG16 Figure 2b."""
    variables, _ = load_variables(context.directory("rollout"))
    even = jax.tree.map(np.zeros_like, variables["params"])
    for name, params in (("uniform rollouts", even), ("fast rollouts", variables["params"])):
        yield name, _rollout_sampler(game, params, context.settings.seed)
    for name, stage in (("SL rollouts", "policy"), ("RL rollouts", "reinforce")):
        yield name, _policy_sampler(context, game, stage)


def _policy_sampler(context: StageContext, game: Go, stage: str) -> SampleFn:
    """Return what plays the stage's `rollouts` games by its policy network."""
    player = SelfPlayer(*load_variables(context.directory(stage)))
    search, params = sampler(player, mesh_lib.make_mesh())
    play = make_result_sampler(cast(Game, game), search)
    settings = context.settings
    keys = iter(jax.random.split(jax.random.key(settings.seed), settings.by_move.rollouts))
    return lambda states: play(params, next(keys), states)


def _rollout_sampler(game: Go, params: PyTree, seed: int) -> SampleFn:
    """Return what plays rollouts by the policy with the parameters `params`."""
    rollouts = Rollouts(game.board_shape, params, seed=seed)

    def sample(states: PyTree) -> Array:
        leads = rollouts.begin(Starts.of(states, game.num_points))().leads
        return jnp.sign(jnp.asarray(leads - game.komi, jnp.float32))

    return sample


FIGURES: dict[str, Callable[[StageContext], Outcome]] = {
    "strength": measure_strength,
    "value-by-move": measure_value_by_move,
}
"""Measuring stages of this module by name."""
