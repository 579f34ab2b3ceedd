"""The Game contract: rules as pure functions of one position, and the table of games.

A game is a frozen (hashable) object whose methods can be jitted and vmapped; `vmap` is applied by
the callers, where the batch is born. A game may hide a natively batched form behind
`jax.custom_batching.custom_vmap`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from azero.types import Array, PyTree


class Game(Protocol):
    """Rules of a two-player, zero-sum, perfect-information board game.

    The sides move in turn; where one moves twice, the other passes in between.

    `State` is a pytree of fixed shapes. There are two forms of it with the same methods: the state
    of a real game (from `init`), for which the legal mask is exact, and the slim state of a search
    tree (from `search_state`), without the data that only repetition rules over a whole game need.
    """

    name: str
    num_actions: int
    max_legal_actions: int
    """The most legal moves that a position can have (218 of 4,672 in chess): a node of a search
    tree has room for as many edges."""
    board_shape: tuple[int, int]
    num_planes: int
    max_moves: int
    """The game ends, and is scored or drawn, after this many moves."""
    num_frames: int
    """How many recent positions the planes show (8 in Go, 1 in tic-tac-toe)."""
    frame_words: int
    """uint32 words of one packed position."""
    num_symmetries: int
    """Size of the symmetry group (8 for a square Go board, 4 for a rectangular one, 1 for chess);
    symmetry 0 is the identity."""

    def __hash__(self) -> int: ...

    def init(self) -> PyTree:
        """Return the state before the first move."""

    def step(self, state: PyTree, action: Array) -> PyTree:
        """Play `action` (int32[]), which must be legal. A finished game stays as it is."""

    def legal_action_mask(self, state: PyTree) -> Array:
        """Return bool[A], True where the move is legal. All True once the game is over, so that a
        softmax over it stays finite."""

    def to_play(self, state: PyTree) -> Array:
        """Return int32[]: 0 if the first mover of the game is to move, else 1."""

    def is_terminal(self, state: PyTree) -> Array:
        """Return bool[]: the game is over."""

    def rewards(self, state: PyTree) -> Array:
        """Return float32[2], the results of the first and the second mover: +1, -1 or 0; zero until
        the end."""

    def observe(self, state: PyTree) -> Array:
        """Return the planes bool/float32[H, W, C] from the side to move, as in the paper."""

    def search_state(self, state: PyTree) -> PyTree:
        """Return the slim form of `state` that a search tree stores. All methods accept it; only
        the whole-game repetition rule may be weaker."""

    def pack_frame(self, state: PyTree) -> Array:
        """Return uint32[F]: the current position without its history, for `observe_frames`. An
        all-zero frame is before the start of the game."""

    def observe_frames(self, frames: Array, to_play: Array) -> Array:
        """Return the planes of `observe` from packed frames uint32[num_frames, F], newest first,
        and the side to move int32[]."""

    def transform_planes(self, planes: Array, symmetry: Array) -> Array:
        """Apply symmetry int32[] to planes [H, W, C]."""

    def transform_policy(self, policy: Array, symmetry: Array) -> Array:
        """Apply symmetry int32[] to an array over the actions [A], so that it fits the planes that
        `transform_planes` gives."""

    def inverse_transform_policy(self, policy: Array, symmetry: Array) -> Array:
        """Undo `transform_policy`."""

    def format_action(self, state: PyTree, action: int) -> str:
        """Host side: return the move in the usual notation (D4, pass): without blanks, and
        different from all other legal moves, ignoring case."""

    def format_board(self, state: PyTree) -> str:
        """Host side: return the position as a text diagram."""


class Facts(NamedTuple):
    """The facts about a position that the host needs."""

    to_play: int
    is_over: bool
    rewards: tuple[float, float]
    legal: np.ndarray
    """bool[A]"""


@runtime_checkable
class SeenOnHost(Protocol):
    """The method of a game whose positions can be looked at without a compiled program."""

    def host_facts(self, state: PyTree) -> Facts:
        """Return who is to move, whether the game is over, the rewards and the legal moves."""


@runtime_checkable
class NamesEndings(Protocol):
    """The method of a game that ends in several ways."""

    def ending(self, state: PyTree) -> str:
        """Host side: return how a game that is over ended: checkmate, stalemate, move limit."""


@runtime_checkable
class PlayedOnHost(SeenOnHost, Protocol):
    """The methods of a game that can also be played on the host, without a compiled program. States
    are those of `Game`, as NumPy arrays."""

    def host_init(self) -> PyTree:
        """Return the state before the first move."""

    def host_step(self, state: PyTree, action: int) -> PyTree:
        """Return the state after a legal action."""


@runtime_checkable
class ReadsMoves(Protocol):
    """The method of a game whose moves have other notations than that of `format_action`, too."""

    def parse_action(self, state: PyTree, text: str) -> int:
        """Host side: return the legal action that `text` names in one of the others.

        Raises:
          ValueError: no legal move or more than one fits; the text is quoted.
        """


@runtime_checkable
class VariablePlanes(Protocol):
    """The method of a game whose planes are a setting."""

    def seen_as(self, trained: Any) -> Game:
        """Return the same rules with the planes, and the rewards, of `trained`, the game that a
        network has learned."""


@runtime_checkable
class SeenByMover(Protocol):
    """The method of a game whose planes and moves are those of the board as the side to move sees
    it, so that a square has another number after every move."""

    def seen_by_other(self, policy: Array) -> Array:
        """Return a policy [A] over one side's moves with every move on the square where the other
        side sees it; the moves of a square keep their order."""


@runtime_checkable
class Scored(VariablePlanes, Protocol):
    """The methods of a game that is decided by points, with a handicap that the players agree on
    (komi in Go).

    Programs compiled for `general` work for every komi and for all rules in `arguments`.
    """

    margin_weight: float
    """The share of the rewards that is the margin in points; 0 where only the result counts."""

    def general(self) -> Game:
        """Return the game that represents all those that differ only in komi and in `arguments`."""

    def arguments(self) -> np.ndarray:
        """Return the rules that a program may take as an argument: int32[R]."""

    def with_arguments(self, arguments: Array) -> Game:
        """Return the same game with the rules in traced `arguments`. Valid only for `step`,
        `legal_action_mask` and `is_terminal` of the slim states of a search tree."""

    def final_points(self, state: PyTree) -> Array:
        """Return float32[]: the first mover's lead in points in a finished game, without komi; zero
        until the end."""

    def owners(self, frame: Array) -> Array:
        """Return int8[H, W]: the owner of each point if the position of frame uint32[F] were
        scored; 1 is the first mover, -1 the second, 0 neither."""

    def is_scored_after(self, action: Array) -> Array:
        """Return bool[]: whether a game with the last move `action` int32[] ended by scoring the
        board before that move, and not by resignation (-1) or the move limit."""

    def result_of(self, points: float) -> float:
        """Host side: return the first mover's reward of a finished game from its `final_points`."""
