"""An environment of Pgx as a game of ours."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from azero.games import bits
from azero.games.symmetry import IdentityOnly
from azero.interop.settings import PgxConfig
from azero.types import Array, PyTree

LONGEST = {
    "connect_four": 42,
    "go_9x9": 162,
    "go_19x19": 722,
    "hex": 122,
    "othello": 128,
    "tic_tac_toe": 9,
}
"""Most moves of a game, by Pgx's names: squares, swap and passes included."""
_LONGEST_OF_OTHERS = 512
"""The longest game of Pgx's chess and shogi."""
_OTHER_KINDS = (
    *("2048", "backgammon", "bridge_bidding", "kuhn_poker", "leduc_holdem"),
    *("mahjong", "minatar", "sparrow_mahjong"),
)
"""Environments with chance, hidden cards, or another number of players."""


@dataclass(frozen=True, init=False)
class PgxGame(IdentityOnly):
    """A game of Pgx: states are Pgx's without their observation, planes are its observations.

    The position as packed for the replay is the observation itself: its bits where it is bool, else
    its words. No symmetries are known. Moves are named by their numbers.
    """

    id: str
    max_moves: int
    env: Any = field(compare=False, repr=False)
    options: str = field(repr=False)
    """What else distinguishes environments with the same `id`, such as Go's komi."""
    first_player: int = field(compare=False, repr=False)
    """Pgx's number of the player who moves first."""
    legal_at_first: tuple[bool, ...] = field(compare=False, repr=False)
    shape: tuple[int, ...] = field(compare=False, repr=False)
    """Of the observation."""
    dtype: np.dtype = field(compare=False, repr=False)

    name: ClassVar[str] = "pgx"
    num_frames: ClassVar[int] = 1

    def __init__(self, env: Any, max_moves: int | None = None) -> None:
        """Wrap `env`; `max_moves` as in `azero.interop.pgx.game`.

        Raises:
          ValueError: it is not a game of two players without chance and with nothing hidden, or
            `max_moves` is not positive.
          TypeError: it is not an environment.
        """
        if not hasattr(env, "num_players"):
            raise TypeError(f"{env!r} is not an environment of Pgx, as pgx.make returns them")
        if max_moves is not None and max_moves < 1:
            raise ValueError(f"max_moves is at least 1, not {max_moves}")
        if env.num_players != 2 or str(env.id).startswith(_OTHER_KINDS):
            raise ValueError(
                f"{env.id} of Pgx is not a game of two players without chance or hidden information"
            )
        begin = env.init(jax.random.key(0))
        known = {
            "id": str(env.id),
            "max_moves": max_moves or LONGEST.get(str(env.id), _LONGEST_OF_OTHERS),
            "env": env,
            "options": _options_of(env),
            "first_player": int(begin.current_player),
            "legal_at_first": tuple(np.asarray(begin.legal_action_mask).tolist()),
            "shape": begin.observation.shape,
            "dtype": begin.observation.dtype,
        }
        for name, value in known.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_id(cls, id: str = "connect_four", max_moves: int | None = None) -> Self:
        """Make the game of the environment `id` of Pgx.

        Raises:
          ValueError: Pgx has none of that name, or it is not a game of two players.
        """
        import pgx

        if id not in pgx.available_envs():
            known = [name for name in pgx.available_envs() if not name.startswith(_OTHER_KINDS)]
            raise ValueError(f"game.id {id!r}: the games of Pgx are {', '.join(known)}")
        return cls(pgx.make(id), max_moves)

    @property
    def config(self) -> PgxConfig:
        """The settings that make this game, if `pgx.make` knows its environment."""
        return PgxConfig(id=self.id, max_moves=self.max_moves)

    @property
    def num_actions(self) -> int:
        """Size of the mask of legal actions."""
        return len(self.legal_at_first)

    @property
    def max_legal_actions(self) -> int:
        """All of them: Pgx says no more."""
        return self.num_actions

    @property
    def board_shape(self) -> tuple[int, int]:
        """Rows and columns of the observation; a list is one row."""
        rows, columns = ((1, *self.shape) if len(self.shape) < 3 else self.shape)[:2]
        return rows, columns

    @property
    def num_planes(self) -> int:
        """The trailing dimensions of the observation, after its rows and columns."""
        return math.prod(self.shape) // math.prod(self.board_shape)

    @property
    def frame_words(self) -> int:
        """uint32 words of one observation."""
        size = math.prod(self.shape)
        return bits.num_words(size) if self.dtype == np.bool_ else size

    def init(self) -> PyTree:
        """Return the state before the first move; the same player of Pgx always begins."""
        begin = self.env.init(jax.random.key(0)).replace(observation=None)
        return jax.tree.map(jnp.asarray, begin)  # some environments begin with Python's numbers

    def step(self, state: PyTree, action: Array) -> PyTree:
        """Play `action` (int32[], legal). A finished game stays as it is."""
        played = self.env.step(state, jnp.asarray(action, jnp.int32)).replace(observation=None)
        is_over = self.is_terminal(state)
        return jax.tree.map(lambda old, new: jnp.where(is_over, old, new), state, played)

    def legal_action_mask(self, state: PyTree) -> Array:
        """Return bool[A]; all True once the game is over."""
        return state.legal_action_mask | self.is_terminal(state)

    def to_play(self, state: PyTree) -> Array:
        """Return int32[]: 0 if the first mover is to move, else 1."""
        return jnp.asarray(state.current_player, jnp.int32) ^ self.first_player

    def is_terminal(self, state: PyTree) -> Array:
        """Return bool[]: Pgx says that it is over, or it is as long as a game may be."""
        return state.terminated | state.truncated | (state._step_count >= self.max_moves)

    def rewards(self, state: PyTree) -> Array:
        """Return float32[2] of the first and the second mover; zero until the end."""
        rewards = state.rewards[::-1] if self.first_player else state.rewards
        return jnp.where(self.is_terminal(state), rewards, 0.0).astype(jnp.float32)

    def observe(self, state: PyTree) -> Array:
        """Return Pgx's observation for the player to move, as planes [H, W, C]."""
        return self._observation(state).reshape(*self.board_shape, self.num_planes)

    def search_state(self, state: PyTree) -> PyTree:
        """Return the state: it has no observation."""
        return state

    def pack_frame(self, state: PyTree) -> Array:
        """Return uint32[F]: the observation for the player to move."""
        flat = self._observation(state).reshape(-1)
        if self.dtype == np.bool_:
            return bits.pack(flat)
        return jax.lax.bitcast_convert_type(flat.astype(jnp.float32), jnp.uint32)

    def observe_frames(self, frames: Array, to_play: Array) -> Array:
        """Return the planes of frames uint32[1, F], which are seen by the side to move already."""
        del to_play
        if self.dtype == np.bool_:
            flat = bits.unpack(frames[0], math.prod(self.shape))
        else:
            flat = jax.lax.bitcast_convert_type(frames[0], jnp.float32)
        return flat.reshape(*self.board_shape, self.num_planes)

    def format_action(self, state: PyTree, action: int) -> str:
        """Return the number of the action."""
        del state
        return str(int(action))

    def format_board(self, state: PyTree) -> str:
        """Return the first two planes as X and O for the first and the second mover, where the
        environment shows the player's own pieces and then the opponent's, as most of Pgx's do."""
        planes = np.asarray(self.observe(state)) > 0
        mine, theirs = planes[..., 0], planes[..., min(1, self.num_planes - 1)]
        first, second = (theirs, mine) if int(self.to_play(state)) else (mine, theirs)
        marks = np.where(first, "X", np.where(second, "O", "."))
        return "\n".join(" ".join(row) for row in marks)

    def _observation(self, state: PyTree) -> Array:
        observed = self.env.observe(state)
        return observed if self.dtype == np.bool_ else observed.astype(jnp.float32)


def _options_of(env: Any) -> str:
    """Return the numbers and strings that an environment, and Pgx's game in it, was made with."""
    made_with = vars(env) | vars(getattr(env, "_game", getattr(env, "game", env)))
    return repr({n: v for n, v in sorted(made_with.items()) if isinstance(v, int | float | str)})
