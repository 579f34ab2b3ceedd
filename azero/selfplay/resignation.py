"""Calibration of the resignation threshold from the games that are played to the end.

AlphaGo Zero resigns when the root's value and the best child's value are both below a threshold,
which is chosen so that false positives, resigned games that could have been won, are fewer than 5%;
this is measured on the 10% of self-play games in which nobody resigns (methods, 'Self-play'). The
paper does not say 5% of what: here it is of these games. Only one number of such a game matters:
the lowest point of the side that did not lose, the minimum of `max(root value, best child value)`
over its own moves. At threshold v it would have resigned if that point was below v.
"""

import math

import numpy as np

from azero.games.go.settings import GoConfig
from azero.games.settings import GameConfig
from azero.selfplay.settings import CALIBRATION_GAMES, SelfplayConfig
from azero.selfplay.trajectory import Games

NEVER_RESIGN = -2.0
"""A threshold below every value: nobody resigns."""
HIGHEST = -0.5
"""Upper limit of the threshold: at -0.5 one game in four is still won (no source; the papers'
values are -0.8 and lower)."""


def check_resignation(config: SelfplayConfig, game: GameConfig) -> None:
    """Check that games can be resigned, if they may be.

    Raises:
      ValueError: the threshold could not be calibrated, or a resigned game has no reward.
    """
    if not config.resign:
        return
    if config.resign_disabled == 0:
        raise ValueError(
            "selfplay.resign-disabled 0: no game would be played to the end, from which the "
            "threshold is calibrated, and nobody would ever resign; switch resignation off "
            "(--selfplay.no-resign)"
        )
    if isinstance(game, GoConfig) and game.margin_weight > 0:
        raise ValueError(
            f"game.margin-weight {game.margin_weight:g} with selfplay.resign: nobody knows by how "
            "many points a resigned game is lost; switch one of them off (--selfplay.no-resign or "
            "--game.margin-weight 0)"
        )


def lowest_points(
    rewards: np.ndarray,
    root_values: np.ndarray,
    best_child_values: np.ndarray,
    to_play: np.ndarray,
    lengths: np.ndarray,
) -> np.ndarray:
    """Return the lowest point of the side that did not lose, float32[B]; in a drawn game the lower
    one of both sides. `rewards` float32[B, 2] are of the first and the second mover; values
    float32[B, T] are for the side to move, `to_play` int32[B, T]; entries after a game's length
    int32[B] are ignored."""
    points = np.maximum(root_values, best_child_values)
    mover_reward = np.take_along_axis(rewards, to_play, axis=1)
    counts = (np.arange(points.shape[1])[None, :] < lengths[:, None]) & (mover_reward >= 0)
    return np.where(counts, points, 1.0).min(axis=1, initial=1.0).astype(np.float32)


def lowest_points_of_games(games: Games) -> np.ndarray:
    """Return the lowest points of the games that were played to the end, for the calibration of the
    resign threshold."""
    played_out = np.flatnonzero(~games.can_resign)
    lengths, starts = games.length[played_out], games.starts[played_out]
    plies = np.arange(int(lengths.max(initial=0)))
    rows = starts[:, None] + np.minimum(plies[None, :], lengths[:, None] - 1)
    values, best, to_play = (
        column[rows] for column in (games.root_value, games.best_child_value, games.to_play)
    )
    return lowest_points(
        games.result[played_out],
        values.astype(np.float32),
        best.astype(np.float32),
        to_play.astype(np.int64),
        lengths,
    )


class ResignCalibration:
    """The threshold, kept up to date with the most recent games that were played to the end."""

    def __init__(
        self,
        max_false_positives: float = 0.05,
        min_games: int = 200,
        window: int = CALIBRATION_GAMES,
    ) -> None:
        """Start without games.

        Args:
          max_false_positives: the share of games wrongly resigned stays below this (AlphaGo Zero:
            5%).
          min_games: with fewer games nobody resigns.
          window: how many of the most recent games count.

        Raises:
          ValueError: a number is out of range.
        """
        if not 0.0 < max_false_positives < 1.0:
            raise ValueError(
                f"the share of false positives lies in (0, 1), not {max_false_positives}"
            )
        if not 1 <= min_games <= window:
            raise ValueError(
                f"1 <= min_games <= window, not min_games = {min_games} and window = {window}"
            )
        self._max_false_positives = max_false_positives
        self._min_games = min_games
        self._window = window
        self._points = np.zeros(0, np.float32)

    def add(self, points: np.ndarray) -> None:
        """Add games by their `lowest_points`, oldest first; games beyond the window are dropped.

        Raises:
          ValueError: a point is not finite.
        """
        points = np.asarray(points, np.float32).reshape(-1)
        if not np.isfinite(points).all():
            raise ValueError(
                f"values of finished games are not finite: {points[~np.isfinite(points)][:5]}"
            )
        self._points = np.concatenate([self._points, points])[-self._window :]

    @property
    def games(self) -> int:
        """Games in the window."""
        return len(self._points)

    @property
    def threshold(self) -> float:
        """The largest threshold whose false positives are below the bound, at most HIGHEST;
        NEVER_RESIGN while there are too few games."""
        if self.games < self._min_games:
            return NEVER_RESIGN
        # The points below the k-th smallest (counted from 0) are at most k, and k games are fewer
        # than the bound allows.
        allowed = math.ceil(self._max_false_positives * self.games) - 1
        return float(min(np.sort(self._points)[allowed], HIGHEST))

    def false_positives(self) -> float:
        """Return the share of the games in the window that the threshold would have resigned
        wrongly; 0 without games."""
        return float((self._points < np.float32(self.threshold)).mean()) if self.games else 0.0

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint needs: float32[window] points, oldest first, and how many of
        them there are."""
        points = np.zeros(self._window, np.float32)
        points[: self.games] = self._points
        return {"points": points, "count": np.asarray(self.games, np.int64)}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Continue from what `state_dict` returned; of a longer window the most recent games are
        kept."""
        points = np.asarray(state["points"], np.float32)[: int(state["count"])]
        self._points = points[-self._window :].copy()
