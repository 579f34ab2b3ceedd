"""Checks of a game against the contract: shapes and types of what its methods return, its first
position, and games that were played."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.game import Game
from azero.types import PyTree, format_arrays

_OF_32_BITS = {"float64": jnp.float32, "int64": jnp.int32}


def check_contract(game: Game) -> None:
    """Trace all methods of a game that are compiled, and look at its first position.

    Raises:
      ValueError: the game lacks an attribute or a method, or is not hashable; a method returns
        something other than `Game` says (both are named); at the start the game is over, or the
        second mover is to move; or the first moves are more than `Game.max_legal_actions`, or two
        of them have the same name.
    """
    _check_members(game)
    state = _shapes(jax.eval_shape(game.init))
    word, policy = _array((), jnp.int32), _array((game.num_actions,), jnp.float32)
    frame = _array((game.frame_words,), jnp.uint32)
    frames = _array((game.num_frames, *frame.shape), jnp.uint32)
    kind = getattr(jax.eval_shape(game.observe_frames, frames, word), "dtype", None)
    planes = _array(
        (*game.board_shape, game.num_planes), jnp.bool_ if kind == jnp.bool_ else jnp.float32
    )
    expected: dict[str, tuple[tuple[PyTree, ...], PyTree]] = {
        "step": ((state, word), state),
        "legal_action_mask": ((state,), _array(policy.shape, jnp.bool_)),
        "to_play": ((state,), word),
        "is_terminal": ((state,), _array((), jnp.bool_)),
        "rewards": ((state,), _array((2,), jnp.float32)),
        "pack_frame": ((state,), frame),
        "observe_frames": ((frames, word), planes),
        "observe": ((state,), planes),
        "transform_planes": ((planes, word), planes),
        "transform_policy": ((policy, word), policy),
        "inverse_transform_policy": ((policy, word), policy),
    }
    for method, (arguments, wanted) in expected.items():
        found = _shapes(jax.eval_shape(getattr(game, method), *arguments))
        if found != wanted:
            raise ValueError(
                f"{method} of the game {game.name} returns {format_arrays(found)}, not "
                f"{format_arrays(wanted)}"
            )
    start, is_over, mover, legal = jax.jit(lambda: _first_position(game))()
    if is_over:
        raise ValueError(f"the game {game.name} is over at its first position (is_terminal)")
    if mover != 0:
        raise ValueError(f"to_play of the game {game.name} is {mover} at its first position, not 0")
    _check_moves(game, start, np.flatnonzero(legal).tolist())


def _check_members(game: Game) -> None:
    """Check that a game has all that `Game` has, and that compiled programs can be made for it."""
    rules = type(game).__name__
    members = {*Game.__annotations__, *vars(Game)}
    lacking = sorted(name for name in members if name[0] != "_" and not hasattr(game, name))
    if lacking:
        raise ValueError(f"the rules {rules} lack {', '.join(lacking)} (azero/games/game.py)")
    try:
        hash(game)
    except TypeError as error:
        raise ValueError(
            f"the rules {rules} are not hashable: {error}; a frozen dataclass of hashable options "
            "is (azero/games/game.py)"
        ) from error


def _first_position(game: Game) -> tuple[PyTree, jax.Array, jax.Array, jax.Array]:
    """Return the start, whether the game is over there, whose turn it is, and the legal moves."""
    start = game.init()
    return start, game.is_terminal(start), game.to_play(start), game.legal_action_mask(start)


def _check_moves(game: Game, start: PyTree, moves: list[int]) -> None:
    """Check the number and the names of the legal moves of the first position."""
    if len(moves) > game.max_legal_actions:
        raise ValueError(
            f"the first position of the game {game.name} has {len(moves)} legal moves; "
            f"max_legal_actions is {game.max_legal_actions}"
        )
    action_of: dict[str, int] = {}
    for action in moves:
        name = game.format_action(start, action)
        if not isinstance(name, str) or name.split() != [name]:
            raise ValueError(
                f"format_action of the game {game.name} returns {name!r:.80} for the action "
                f"{action}; the name of a move must be text without blanks"
            )
        other = action_of.setdefault(name.lower(), action)
        if other != action:
            raise ValueError(
                f"format_action of the game {game.name} returns {name!r:.80} for the actions "
                f"{other} and {action}; names of legal moves must differ, ignoring case"
            )


def check_games(game: Game, to_play: np.ndarray, length: np.ndarray, result: np.ndarray) -> None:
    """Check G finished games of T positions in all.

    Args:
      game: their rules.
      to_play: int[T], the side to move in each position, game after game.
      length: int[G], moves of each game.
      result: float32[G, 2], the rewards at the end.

    Raises:
      ValueError: a side moves twice in a row, the rewards are not opposite and in [-1, 1], or a
        game is longer than `Game.max_moves`.
    """
    is_first = np.zeros(len(to_play), bool)
    is_first[np.cumsum(length) - length] = True
    if ((to_play[1:] == to_play[:-1]) & ~is_first[1:]).any():
        raise ValueError(
            f"a side of the game {game.name} moved twice in a row; the other must pass in between"
        )
    is_wrong = (result[:, 0] != -result[:, 1]) | ~(np.abs(result[:, 0]) <= 1)
    if is_wrong.any():
        raise ValueError(
            f"rewards of the game {game.name} are {result[is_wrong][0].tolist()} at the end of a "
            "game; those of the two sides must be opposite and in [-1, 1]"
        )
    check_length(game, int(length.max(initial=0)))


def check_length(game: Game, num_moves: int) -> None:
    """Check the moves of a game, which may not be over.

    Raises:
      ValueError: they are more than `Game.max_moves`.
    """
    if num_moves > game.max_moves:
        raise ValueError(
            f"a game of {game.name} has {num_moves} moves; max_moves is {game.max_moves}. Its "
            "rules do not end it, an earlier position has no legal move, or the search played an "
            "illegal one"
        )


def _array(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _shapes(tree: PyTree) -> PyTree:
    """Return the shapes and types of a tree's leaves and nothing else that JAX knows of them. Types
    of 64 bits count as those of 32: with `jax_enable_x64` Python's numbers have them."""
    return jax.tree.map(
        lambda leaf: _array(leaf.shape, _OF_32_BITS.get(leaf.dtype.name, leaf.dtype)), tree
    )
