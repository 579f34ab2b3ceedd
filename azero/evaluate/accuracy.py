"""How well a network predicts the moves and the results of recorded games (AGZ, Extended Data
Tables 1 and 2)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from rich.console import Console

from azero import mesh as mesh_lib
from azero.checkpoint import load_variables
from azero.console.progress import Progress
from azero.data.records.recorded import ImportTally, pack_file
from azero.data.replay import samples_at
from azero.data.rows import Row
from azero.data.sample import unpack
from azero.data.shard import row_dtype
from azero.games.game import Game
from azero.learn.learner import place_samples
from azero.match.score import NORMAL_95, wilson_interval
from azero.mesh import fetch, process_slice
from azero.networks.network import NEVER, Network
from azero.networks.rollout import NUM_GROUPS
from azero.selfplay.trajectory import HostArray
from azero.settings import Config
from azero.types import Array, PyTree

BANDS = (1, 11, 31, 61, 91, 121, 151, 201, 251)
"""First move numbers of the bands that results are also given for; the last one is open."""
NO_MOVE = -1
"""Rank in a position without a move to predict: the player resigned or moved after a fast search,
only the result of the game is known, or the network has no output for the move (the pass of
AlphaGo's policies of 2016). The training loss also leaves these out."""
_BATCH = 256
"""Positions at a time over all devices."""
Score = Callable[[PyTree, Any], tuple[Array, Array, Array]]
"""(inference parameters, batch) -> rank of the move played int32[B], its log probability, squared
value error in [0, 1]: float32[B]"""


class Outcomes(NamedTuple):
    """A network's predictions of T positions."""

    rank: HostArray
    """int32[T]: number of actions with a higher probability than the one played; `NO_MOVE`."""
    log_probability: HostArray
    """float32[T]: of the move played, in nats."""
    value_error: HostArray
    """float32[T]: (z - v)^2 / 4, so that always saying 0 gives 0.25 (AGZ, Figure 3c)."""
    move: HostArray
    """int32[T]: number of the move in its game, from 1."""
    game: HostArray
    """int64[T]: which game it is from."""


@dataclass(frozen=True)
class Mean:
    """A mean over positions with its 95% interval; positions of one game count as dependent."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Accuracy:
    """Results over a set of positions."""

    moves: str
    """Which move numbers: "all", "31-60", "251-"."""
    positions: int
    games: int
    top1: Mean
    """Share of positions whose move has the highest probability; as all of the policy, of those
    that have a move to predict."""
    top5: Mean
    """Share of positions whose move is among the five with the highest probabilities."""
    value_error: Mean
    """See `Outcomes.value_error`."""
    policy_loss: Mean
    """Cross-entropy with the move played, in nats."""

    def row(self) -> Row:
        """Return the numbers as JSON can hold them: a mean is [value, low, high]."""
        means = {
            name: [mean.value, mean.low, mean.high]
            for name in ("top1", "top5", "value_error", "policy_loss")
            for mean in [getattr(self, name)]
        }
        return {"moves": self.moves, "positions": self.positions, "games": self.games, **means}


def _make_scorer(game: Game, network: Network, symmetries: bool = False) -> Score:
    """Make the compiled function that scores a batch; with `symmetries` the network's answer is the
    mean over all symmetries of the position."""
    count = game.num_symmetries if symmetries else 1

    def evaluate(params: PyTree, planes: Array) -> tuple[Array, Array]:
        if count == 1:
            return network.infer(params, planes)
        answers = []
        for symmetry in map(jnp.int32, range(count)):
            turned = jax.vmap(game.transform_planes, (0, None))(planes, symmetry)
            logits, value = network.infer(params, turned)
            back = jax.vmap(game.inverse_transform_policy, (0, None))(logits, symmetry)
            answers.append((back, value))
        logits, value = (jnp.stack(parts).mean(axis=0) for parts in zip(*answers, strict=True))
        return logits, value

    def score(params: PyTree, batch: Any) -> tuple[Array, Array, Array]:
        logits, value = evaluate(params, batch.planes)
        played = jnp.argmax(batch.weights, axis=-1)[:, None]
        at = jnp.take_along_axis(logits, played, axis=-1)
        # Of equal logits the lower action is first, as with argmax.
        is_before = (logits > at) | ((logits == at) & (jnp.arange(logits.shape[-1]) < played))
        is_move = (batch.weights > 0).any(axis=-1) & (at[:, 0] > NEVER)
        rank = jnp.where(is_move, is_before.sum(axis=-1, dtype=jnp.int32), NO_MOVE)
        log_probability = jnp.take_along_axis(jax.nn.log_softmax(logits), played, axis=-1)[:, 0]
        return rank, log_probability, jnp.square(batch.value - value) / 4

    return jax.jit(score)


class HeldOut:
    """Positions of recorded games that a network did not learn from, and the compiled program that
    predicts them."""

    def __init__(
        self,
        game: Game,
        network: Network,
        mesh: Mesh,
        rows: HostArray,
        position: HostArray,
        symmetries: bool = False,
    ) -> None:
        """Take the positions int64[P] of packed rows [T] of whole games; with `symmetries` the
        network's answer is the mean over all symmetries of a position."""
        self._game, self._mesh = game, mesh
        self._rows, self._position = _rows_for(game, rows), position
        self._score = _make_scorer(game, network, symmetries)

    def predict(self, params: PyTree, on_batch: Callable[[int], None] | None = None) -> Outcomes:
        """Return the predictions of the network with the inference parameters `params`. `on_batch`
        is told how many positions are done."""
        parts, size = [], max(1, _BATCH // self._mesh.size) * self._mesh.size
        for first in range(0, len(self._position), size):
            chosen = self._position[first : first + size]
            padded = np.resize(chosen, size)  # one shape, one compilation
            samples = samples_at(self._rows, padded[process_slice(size)], self._game.num_frames)
            batch = unpack(self._game, place_samples(self._mesh, samples))
            parts.append([fetch(column)[: len(chosen)] for column in self._score(params, batch)])
            if on_batch is not None:
                on_batch(first + len(chosen))
        rank, log_probability, value_error = (
            np.concatenate(columns) for columns in zip(*parts, strict=True)
        )
        games = np.cumsum(self._rows["ply"] == 0)
        moves = self._rows["ply"][self._position].astype(np.int32) + 1
        return Outcomes(rank, log_probability, value_error, moves, games[self._position])


def read_held_out(config: Config, game: Game, network: Network, mesh: Mesh) -> HeldOut | None:
    """Return the recorded games that the evaluations of a run of self-play predict; None without
    `evaluation.records`.

    Raises:
      ValueError: the file cannot be read, or has no game on the run's board.
    """
    evaluation = config.evaluation
    if evaluation.records is None:
        return None
    most = evaluation.validation_positions
    rows = pack_file(Path(evaluation.records), config.game, ImportTally(), most=most)
    position = np.arange(len(rows))
    return HeldOut(game, network, mesh, rows, position, evaluation.average_symmetries)


def summarise(outcomes: Outcomes, moves: str = "all") -> Accuracy:
    """Return the results over all positions of `outcomes`."""

    def mean(values: HostArray, game: HostArray) -> Mean:
        """Of values that are not negative, nor is their interval."""
        found = clustered_mean(values, game)
        return replace(found, low=max(0.0, found.low)) if np.isfinite(found.low) else found

    is_move = outcomes.rank != NO_MOVE
    played = Outcomes(*(column[is_move] for column in outcomes))
    return Accuracy(
        moves=moves,
        positions=len(outcomes.rank),
        games=len(np.unique(outcomes.game)),
        top1=clustered_share(played.rank < 1, played.game),
        top5=clustered_share(played.rank < 5, played.game),
        value_error=mean(outcomes.value_error, outcomes.game),
        policy_loss=mean(-played.log_probability, played.game),
    )


def summarise_by_move(outcomes: Outcomes) -> list[Accuracy]:
    """Return the results over all moves and then by move number, in BANDS; those without positions
    are left out."""
    results = [summarise(outcomes)]
    for first, following in zip(BANDS, [*BANDS[1:], None], strict=True):
        inside = (outcomes.move >= first) & (following is None or outcomes.move < following)
        if inside.any():
            name = f"{first}-" if following is None else f"{first}-{following - 1}"
            results.append(summarise(Outcomes(*(column[inside] for column in outcomes)), name))
    return results


def clustered_mean(values: HostArray, game: HostArray) -> Mean:
    """Return the mean of values [T] with its 95% interval, where those of one game may depend on
    each other.

    The ratio of sums over games and its variance by linearisation (Cochran, Sampling Techniques,
    section 9A.2); a single game gives no interval: (-inf, inf). Without values it is NaN.
    """
    if not len(values):
        return Mean(np.nan, -np.inf, np.inf)
    _, place = np.unique(game, return_inverse=True)
    sums, counts = np.bincount(place, values.astype(np.float64)), np.bincount(place)
    mean = float(sums.sum() / counts.sum())
    number = len(counts)
    if number < 2:
        return Mean(mean, -np.inf, np.inf)
    residual = sums - mean * counts
    deviation = float(np.sqrt(number / (number - 1) * np.square(residual).sum()))
    half = NORMAL_95 * deviation / int(counts.sum())
    return Mean(mean, mean - half, mean + half)


def clustered_share(is_so: HostArray, game: HostArray) -> Mean:
    """Return the share of bool[T] that is true with its 95% interval in [0, 1], where those of one
    game may depend on each other.

    The Wilson interval for as many independent positions as would give the variance of
    `clustered_mean` (the effective sample size; Franco et al. 2019, J. Surv. Stat. Methodol. 7),
    at most the positions there are: few games may agree by chance. Without any variance, for the
    number of games. A single game gives no interval: (-inf, inf).
    """
    mean = clustered_mean(is_so, game)
    if not np.isfinite(mean.low):
        return mean
    variance = ((mean.high - mean.low) / 2 / NORMAL_95) ** 2
    effective = mean.value * (1 - mean.value) / variance if variance else len(np.unique(game))
    return Mean(mean.value, *wilson_interval(mean.value, min(effective, len(is_so))))


def predict_positions(
    checkpoint: Path,
    rows: HostArray,
    position: HostArray,
    console: Console,
    symmetries: bool | None = None,
    iteration: int | None = None,
) -> Outcomes:
    """Return a network's predictions of the positions int64[P] of packed rows [T]; `iteration` None
    is the newest checkpoint.

    Raises:
      ValueError: symmetries are requested for a network that has none.
      CheckpointError: the network cannot be read.
    """
    variables, config = load_variables(checkpoint, iteration)
    mesh = mesh_lib.make_mesh()
    game = config.game.build()
    network = config.network.build(game)
    params = jax.jit(network.fold, out_shardings=mesh_lib.replicated(mesh))(variables)
    if symmetries and config.network.name in NUM_GROUPS:
        raise ValueError(
            f"{checkpoint}: the inputs of a {config.network.name} network cannot be rotated with "
            "the board; omit --symmetries"
        )
    averaged = config.evaluation.average_symmetries if symmetries is None else symmetries
    held_out = HeldOut(game, network, mesh, rows, position, averaged)
    with (
        Progress(len(position), console=console, unit="position") as progress,
        progress.working(f"{checkpoint}: predicting"),
    ):
        return held_out.predict(params, lambda done: progress.update({"iteration": done}))


def _rows_for(game: Game, rows: HostArray) -> HostArray:
    """Return rows [T] without the komi, their frames' last word, if the network does not see it."""
    if rows["frame"].shape[1] == game.frame_words:
        return rows
    seen = np.zeros(len(rows), row_dtype(game.frame_words))
    for name in seen.dtype.names or ():
        seen[name] = rows[name][:, : game.frame_words] if name == "frame" else rows[name]
    return seen
