"""Host-side players: the Player contract, the position passed to players, and a player that wraps a
search.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.game import Game, PlayedOnHost
from azero.players.clock import Clock
from azero.search.search import SearchFn
from azero.types import Array, PyTree

RESIGN = -1
"""The action of a player who resigns."""


class PlayerError(Exception):
    """A player failed: it crashed, was silent for too long, or answered what is no legal move. The
    message names which."""


@dataclass(frozen=True)
class Position:
    """A position of a real game on the host, with the moves that led to it."""

    game: Game
    state: PyTree
    actions: tuple[int, ...]
    """Moves so far."""
    to_play: int
    """0 if the first mover of the game is to move, else 1."""
    is_over: bool
    rewards: tuple[float, float]
    """Of the first and the second mover; zero until the end."""
    legal: np.ndarray
    """bool[A]"""

    @classmethod
    def start(cls, game: Game) -> Position:
        """Return the position before the first move of `game`."""
        begin, _, _ = _compiled(cast(Hashable, game))
        return cls._of(game, begin(), ())

    @classmethod
    def of_state(cls, game: Game, state: PyTree, actions: tuple[int, ...] = ()) -> Position:
        """Return the position of `state`, a real game's: after a set-up or with handicap stones;
        `actions` are the moves that led to it, if any."""
        _, _, describe = _compiled(cast(Hashable, game))
        return cls._of(game, describe(state), actions)

    def play(self, action: int) -> Position:
        """Return the position after `action`.

        Raises:
          ValueError: the move is not legal here, or the game is over.
        """
        if self.is_over or not 0 <= action < self.game.num_actions or not self.legal[action]:
            raise ValueError(
                f"action {action} is not legal after the moves {list(self.actions)} of "
                f"{self.game.name}"
            )
        _, advance, _ = _compiled(cast(Hashable, self.game))
        return self._of(self.game, advance(self.state, action), (*self.actions, action))

    def action_name(self, action: int) -> str:
        """Return the move as people write it."""
        return self.game.format_action(self.state, action)

    def parse_action(self, text: str) -> int:
        """Return the legal action that is written `text` (capitals do not matter).

        Raises:
          ValueError: no legal move is written like this; the text is quoted.
        """
        wanted = text.strip().lower()
        for action in np.flatnonzero(self.legal):
            if self.action_name(int(action)).lower() == wanted:
                return int(action)
        raise ValueError(
            f"{text!r} is not a legal move here (move {len(self.actions) + 1} of the game)"
        )

    @classmethod
    def _of(
        cls,
        game: Game,
        outcome: tuple[PyTree, Array, Array, Array, Array],
        actions: tuple[int, ...],
    ) -> Position:
        state, *facts = outcome
        to_play, is_over, rewards, legal = jax.device_get(facts)
        return cls(
            game,
            state,
            actions,
            int(to_play),
            bool(is_over),
            (float(rewards[0]), float(rewards[1])),
            legal,
        )


@functools.lru_cache(maxsize=8)
def _compiled(
    hashable_game: Hashable,
) -> tuple[Callable[[], Any], Callable[[PyTree, int], Any], Callable[[PyTree], Any]]:
    """Return `game`'s start, step and look at a state, each giving the state and what a Position
    says of it: compiled, unless the host can play it."""
    game = cast(Game, hashable_game)

    if isinstance(game, PlayedOnHost):
        return _on_host(game)

    def describe(state: PyTree) -> tuple[PyTree, Array, Array, Array, Array]:
        return (
            state,
            game.to_play(state),
            game.is_terminal(state),
            game.rewards(state),
            game.legal_action_mask(state),
        )

    advance = jax.jit(
        lambda state, action: describe(game.step(state, jnp.asarray(action, jnp.int32)))
    )
    return jax.jit(lambda: describe(game.init())), advance, jax.jit(describe)


def _on_host(
    game: PlayedOnHost,
) -> tuple[Callable[[], Any], Callable[[PyTree, int], Any], Callable[[PyTree], Any]]:
    """Return the same of a game that needs no compiled program."""

    def describe(state: PyTree) -> tuple[Any, ...]:
        return state, *game.host_facts(state)

    return (
        lambda: describe(game.host_init()),
        lambda state, action: describe(game.host_step(state, action)),
        lambda state: describe(jax.device_get(state)),
    )


class Move(NamedTuple):
    """A move and the position in which it was played."""

    position: Position
    action: int

    @property
    def name(self) -> str:
        """The move as people write it."""
        return self.position.action_name(self.action)


class Decision(NamedTuple):
    """What a player wants to play."""

    action: int
    """An action, or RESIGN."""
    value: float | None = None
    """The player's value of the position, in [-1, 1] from its own side; None if it gives none."""
    visits: int | None = None
    """Visits of the root, if there is a search."""
    line: tuple[int, ...] = ()
    """Principal variation, starting with the player's own move."""


class Player(Protocol):
    """Someone who plays one game at a time."""

    name: str

    def reset(self) -> None:
        """Begin a new game."""
        ...

    def choose(self, position: Position, clock: Clock) -> Decision:
        """Choose a move in `position`, in which this player is to move; the move counts as
        played."""
        ...

    def observe(self, move: Move) -> None:
        """Take note of a move of the opponent."""
        ...


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
