"""Pgx both ways: `make` gives our games as environments of Pgx, `game` gives an environment of Pgx
as a game of ours.

Pgx is an optional extra (`pip install 'azero[peers]'`); this module is imported only where it is
used.
"""

from html import escape
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azero.games import table
from azero.games.game import Game
from azero.interop.pgx_game import PgxGame
from azero.types import Array, PyTree

try:
    import pgx.core as core
except ImportError as missing:
    raise ValueError("games of Pgx need the package pgx: pip install 'azero[peers]'") from missing

__all__ = ["GAMES", "AzeroEnv", "AzeroState", "PgxGame", "game", "make"]

GAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "animal_shogi": ("animal_shogi", {}),
    "chess": ("chess", {}),
    "gardner_chess": ("minichess", {}),
    "go_9x9": ("go", {"size": 9}),
    "go_19x19": ("go", {"size": 19}),
    "shogi": ("shogi", {}),
    "tic_tac_toe": ("tictactoe", {}),
}
"""Pgx's names of the games that both have, with ours and its options."""
_PENALTY = -1.0
"""Reward of an illegal action (Pgx, core.py)."""


@struct.dataclass
class AzeroState(core.State):
    """A position as Pgx's users read it."""

    current_player: Array
    """int32[]: 0 or 1; which of the two moves first is drawn by `init`."""
    observation: Array
    """bool or float32[H, W, C]: our planes, for the side to move."""
    rewards: Array
    """float32[2], by player; zero until the end, and again after it."""
    terminated: Array
    truncated: Array
    """Always False: our games are scored or drawn at their longest."""
    legal_action_mask: Array
    """bool[A]; all True once the game is over."""
    _step_count: Array
    _first_player: Array
    """int32[]: who moves first."""
    _game_state: PyTree
    """The state of our game."""
    _env: "AzeroEnv" = cast("AzeroEnv", struct.field(pytree_node=False, default=None))

    @property
    def env_id(self) -> Any:
        """Pgx's name of the environment."""
        return self._env.id

    def to_svg(self, *, color_theme: str | None = None, scale: float | None = None) -> str:
        """Return the position as a text diagram in SVG; of a batch the first one."""
        is_dark, size = color_theme == "dark", 14.0 * (scale or 1.0)
        one = jax.tree.map(lambda leaf: np.asarray(leaf), self._game_state)
        if np.ndim(self.current_player):
            one = jax.tree.map(lambda leaf: leaf[0], one)
        lines = self._env.game.format_board(one).splitlines()
        width = max(map(len, lines)) * 0.62 * size
        height = (len(lines) + 0.5) * 1.3 * size
        ink, paper = ("white", "black") if is_dark else ("black", "white")
        rows = "".join(
            f'<text xml:space="preserve" x="{0.5 * size:g}" y="{(row + 1) * 1.3 * size:g}">'
            f"{escape(line)}</text>"
            for row, line in enumerate(lines)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + size:g}" '
            f'height="{height:g}" font-family="monospace" font-size="{size:g}" fill="{ink}">'
            f'<rect width="100%" height="100%" fill="{paper}"/>{rows}</svg>'
        )

    def save_svg(
        self, filename: Any, *, color_theme: str | None = None, scale: float | None = None
    ) -> None:
        """Write `to_svg` to a file."""
        with open(filename, "w", encoding="utf-8") as file:
            file.write(self.to_svg(color_theme=color_theme, scale=scale))


class AzeroEnv(core.Env):
    """A game of ours as an environment of Pgx.

    Actions and planes have our game's numbers, which for Go and tic-tac-toe are Pgx's; states have
    no auto-reset, as in Pgx. Environments of the same game are equal, because each state holds its
    own: programs compiled for the states of one fit those of all.
    """

    def __init__(self, game: Game, id: str, name: str) -> None:
        """Wrap `game` under Pgx's name `id`; `name` is ours."""
        super().__init__()
        self.game = game
        self._id, self._name = id, name

        def begin() -> tuple[PyTree, Array, Array]:
            state = game.init()
            return state, game.observe(state), game.legal_action_mask(state)

        self._begin = jax.device_get(jax.jit(begin)())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AzeroEnv) and (self._id, self.game) == (other._id, other.game)

    def __hash__(self) -> int:
        return hash((self._id, self.game))

    @property
    def id(self) -> Any:
        """Pgx's name of the environment."""
        return self._id

    @property
    def version(self) -> str:
        """The rules are those of azero."""
        return f"azero-{self._name}"

    @property
    def num_players(self) -> int:
        """Two."""
        return 2

    @property
    def num_actions(self) -> int:
        """Size of the mask of legal actions."""
        return self.game.num_actions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """[H, W, C] of the planes."""
        return (*self.game.board_shape, self.game.num_planes)

    def step(self, state: Any, action: Array, key: Array | None = None) -> AzeroState:
        """Return the state after an action.

        A finished game stays as it is, with zero rewards; an illegal action ends the game, and the
        player who tried it gets -1. Pgx's own `step` does the same with `lax.cond`, of which `vmap`
        computes both branches.
        """
        del key
        was_over = state.terminated | state.truncated
        is_illegal = ~state.legal_action_mask[action]
        before, after = state._game_state, self.game.step(state._game_state, action)
        # Our rules stop by themselves where they ended the game, not after an illegal action.
        after = jax.tree.map(lambda old, new: jnp.where(was_over, old, new), before, after)
        played = self._played(state, after)
        loser = jnp.arange(2) == state.current_player
        rewards = jnp.where(
            is_illegal, jnp.where(loser, _PENALTY, -_PENALTY), played.rewards
        ).astype(jnp.float32)
        over = was_over | is_illegal | played.terminated
        return played.replace(
            rewards=jnp.where(was_over, 0.0, rewards),
            terminated=over,
            legal_action_mask=played.legal_action_mask | over,
            _step_count=state._step_count + jnp.where(was_over, 0, 1),
        )

    def _init(self, key: Array) -> AzeroState:
        begin, observation, legal = jax.tree.map(jnp.asarray, self._begin)
        first = jnp.int32(jax.random.bernoulli(key))
        return AzeroState(
            current_player=first,
            observation=observation,
            rewards=jnp.zeros(2, jnp.float32),
            terminated=jnp.bool_(False),
            truncated=jnp.bool_(False),
            legal_action_mask=legal,
            _step_count=jnp.int32(0),
            _first_player=first,
            _game_state=begin,
            _env=self,
        )

    def _step(self, state: Any, action: Array, key: Array | None) -> AzeroState:
        del key
        return self._played(state, self.game.step(state._game_state, action))

    def _observe(self, state: Any, player_id: Array) -> Array:
        del player_id
        return self.game.observe(state._game_state)

    def _played(self, state: Any, after: PyTree) -> AzeroState:
        """Return `state` with what the rules say of our state `after`."""
        by_order = self.game.rewards(after)
        rewards = jnp.where(state._first_player == 0, by_order, by_order[::-1])
        return state.replace(
            current_player=state._first_player ^ self.game.to_play(after),
            observation=self.game.observe(after),
            rewards=rewards.astype(jnp.float32),
            terminated=self.game.is_terminal(after),
            legal_action_mask=self.game.legal_action_mask(after),
            _game_state=after,
        )


def make(id: str, **options: Any) -> AzeroEnv:
    """Make the environment `id` of Pgx with our rules, as `pgx.make` does with its own.

    Args:
      id: one of GAMES.
      **options: of our game, such as `komi`.

    Raises:
      ValueError: we have no such game, or an option is out of range.
    """
    if id not in GAMES:
        raise ValueError(f"azero has no game {id!r} of Pgx; it has {', '.join(GAMES)}")
    name, known = GAMES[id]
    return AzeroEnv(table.make(name, **known | options), id, name)


def game(env: Any, max_moves: int | None = None) -> PgxGame:
    """Return an environment of Pgx as a game of ours.

    Args:
      env: an environment, such as `pgx.make("connect_four")`.
      max_moves: moves after which a game is drawn; None is the length of the longest possible game
        of this environment, where that is known, else 512.

    Raises:
      ValueError: it is not a game of two players without chance and with nothing hidden.
      TypeError: it is not an environment.
    """
    return PgxGame(env, max_moves)
