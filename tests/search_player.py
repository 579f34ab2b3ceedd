"""A player around a search of many games at once, for games against programs and trees."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.position import Position
from azero.players.clock import Clock
from azero.players.player import RESIGN, Decision, Move
from azero.search.search import SearchFn
from azero.types import Array, PyTree


class SearchPlayer:
    """A player that searches each position from scratch, one at a time, with a fixed number of
    simulations (it looks at no clock)."""

    def __init__(
        self,
        search: SearchFn,
        params: PyTree,
        *,
        name: str = "azero",
        seed: int = 0,
        temperature_moves: int = 0,
        resign_threshold: float | None = None,
    ) -> None:
        """Make a player.

        Args:
          search: a search; it is compiled here for a batch of one.
          params: the parameters of the search's leaf.
          name: what reports call this player.
          seed: of the search's random numbers and the drawn moves; they run on from game to game.
          temperature_moves: moves of the game, of both sides, that are drawn in proportion to the
            search's weights.
          resign_threshold: resign when the root's value and the best child's are below it; None
            never does.
        """
        self.name = name
        self._params = params
        self._key = jax.random.key(seed)
        self._temperature_moves = temperature_moves
        self._resign_threshold = resign_threshold

        def think(params: PyTree, key: Array, state: PyTree) -> tuple[Array, Array, Array, Array]:
            output = search(params, key, jax.tree.map(lambda leaf: leaf[None], state))
            return output.action[0], output.weights[0], output.value[0], output.best_child_value[0]

        self._think = jax.jit(think)

    def reset(self) -> None:
        """Begin a new game: nothing is kept from one position to the next."""

    def observe(self, move: Move) -> None:
        """Take note of a move: the next position says all that is needed."""

    def choose(self, position: Position, clock: Clock) -> Decision:
        """Search `position` and choose a move."""
        self._key, search_key, draw_key = jax.random.split(self._key, 3)
        action, weights, value, best_child_value = jax.device_get(
            self._think(self._params, search_key, position.state)
        )
        if (
            self._resign_threshold is not None
            and max(value, best_child_value) < self._resign_threshold
        ):
            return Decision(RESIGN, float(value))
        if len(position.actions) < self._temperature_moves:
            logits = np.log(
                np.where(weights > 0, weights, 0),
                where=weights > 0,
                out=np.full(weights.shape, -np.inf),
            )
            action = jax.random.categorical(draw_key, jnp.asarray(logits, jnp.float32))
        return Decision(int(action), float(value))
