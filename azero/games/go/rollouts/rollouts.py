"""Games played to the end by a fast policy: the rollouts of AlphaGo (2016), on the host's cores, as
the paper's were, while accelerators evaluate networks.

A game ends with two passes, or after `MOVES_PER_POINT` further moves a point, and is scored by
area. A move is not suicide, does not fill an own eye and does not recapture a ko at once; longer
repetitions are not checked (the paper does not mention them). A side without such a move passes.
Moves are drawn from the softmax of a policy that is linear in the features of
`azero.games.go.alphago2016.patterns.rollout_features`.
"""

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from azero.cores import num_cores
from azero.games.bits import unpack_host
from azero.games.go.alphago2016.patterns import DIAMOND
from azero.games.go.rollouts.board import BOARD, EMPTY
from azero.games.go.rollouts.compiled import Odds, play_out
from azero.games.go.rollouts.replies import learn_replies, no_replies
from azero.games.go.state import GoState

MOVES_PER_POINT = 2
"""A rollout is scored after this number of moves per point, like games of AlphaGo Zero (722 moves);
AG16 gives no limit."""
_LARGEST = 500.0
"""Logits below it, sums of a weight of every group, have an exponential in float64."""
_CHUNKS = 2
"""Parts of a batch for every thread: games differ in length."""


class Starts(NamedTuple):
    """Positions of which rollouts start."""

    boards: np.ndarray
    """int64[B, 2, N], now and one move ago: 0 Black, 1 White, 2 empty"""
    to_play: np.ndarray
    """int64[B]"""
    num_passes: np.ndarray
    """int64[B]: in a row"""

    @classmethod
    def of(cls, states: GoState, num_points: int) -> "Starts":
        """Return the positions of states[B] on the host, with their last move, its captures, and
        the forbidden ko."""
        frames = np.asarray(states.frames)[:, :2]
        stones = unpack_host(frames.reshape(len(frames), 2, 2, -1), num_points)
        boards = EMPTY - 2 * stones[:, :, 0].astype(np.int64) - stones[:, :, 1]
        to_play, num_passes = (
            np.asarray(array, np.int64) for array in (states.to_play, states.num_passes)
        )
        return cls(boards, to_play, num_passes)


class PlayedOut(NamedTuple):
    """Finished rollouts."""

    leads: np.ndarray
    """int32[B]: Black's area minus White's, without komi"""
    moves: np.ndarray
    """int32[B, 1 + T]: the move before the first, and the moves; N for a pass, for none, and after
    the end"""


class Rollouts:
    """Plays rollouts by one policy, a few at a time on every core."""

    def __init__(
        self,
        shape: tuple[int, int],
        params: Mapping[str, Any],
        *,
        reply_komi: float | None = None,
        seed: int = 0,
        num_threads: int | None = None,
    ) -> None:
        """Make rollouts on boards of `shape`.

        Args:
          shape: of the board.
          params: of the policy (`azero.networks.rollout.init_weights`).
          reply_komi: with which games are won whose replies are remembered and repeated
            (`azero.games.go.rollouts.replies`); None remembers none.
          seed: of all moves. The number of threads changes nothing.
          num_threads: None is one for each core.

        Raises:
          ValueError: the policy's weights are too large, or not numbers.
        """
        self._shape, self._seed, self._calls = shape, seed, 0
        self._odds = odds_of(params)
        self._reply_komi = reply_komi
        self.table = no_replies(shape[0] * shape[1])
        """The replies after the latest games."""
        self._num_threads = num_threads or num_cores()
        self._pool = ThreadPoolExecutor(self._num_threads, "rollouts")

    def begin(self, starts: Starts) -> Callable[[], PlayedOut]:
        """Begin to play a game from each position; the function that is returned waits for them.

        Replies are learned then: games that begin before do not repeat them.
        """
        count, most = len(starts.to_play), MOVES_PER_POINT * self._shape[0] * self._shape[1]
        self._calls += 1
        draws = np.random.default_rng((self._seed, self._calls)).random((count, most))
        played = PlayedOut(np.empty(count, np.int32), np.empty((count, 1 + most), np.int32))
        arrays = (draws, *starts, *played)
        parts = min(count, _CHUNKS * self._num_threads)
        cuts = np.linspace(0, count, parts + 1).astype(int)
        tasks = [
            self._pool.submit(
                play_out,
                self._shape,
                self._odds,
                self.table,
                np.zeros(1, BOARD),
                *(array[first:end] for array in arrays),
            )
            for first, end in itertools.pairwise(cuts)
        ]

        def finish() -> PlayedOut:
            for task in tasks:
                task.result()
            if self._reply_komi is not None:
                results = np.sign(played.leads - self._reply_komi).astype(np.int32)
                self.table = learn_replies(self.table, played.moves, starts.to_play, results)
            return played

        return finish


def odds_of(params: Mapping[str, Any]) -> Odds:
    """Return the exponentials of a policy's weights.

    Raises:
      ValueError: the weights are too large, or not numbers.
    """
    weights = {name: np.asarray(group, np.float64) for name, group in params.items()}
    largest = sum(np.abs(group).max() for group in weights.values())
    if not largest < _LARGEST:
        raise ValueError(
            f"the weights of the rollout policy add up to logits of {largest:g}; rollouts take "
            f"less than {_LARGEST:g}"
        )
    near = np.repeat(weights["response"], len(DIAMOND))
    near[: len(weights["neighbour"])] += weights["neighbour"]
    response_pattern, pattern = weights["response_pattern"], weights["pattern"]
    return Odds(
        float(np.exp(weights["save_atari"][0])),
        np.exp(near),
        np.exp(weights["nakade"]),
        np.exp(response_pattern),
        33 - len(response_pattern).bit_length(),
        np.exp(pattern),
        33 - len(pattern).bit_length(),
    )
