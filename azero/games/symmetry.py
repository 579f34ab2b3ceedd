"""The symmetries of a board, on boards, planes and policies.

The bits of symmetry s are applied in this order: 4 transposes, 1 reverses the rows, 2 reverses the
columns. A square board has all eight; a rectangular one has the four without the transpose. Only
reversals and selects are used, so a random symmetry for every position of a batch stays cheap under
`vmap`: no gather.
"""

from typing import ClassVar

import jax.numpy as jnp

from azero.types import Array


def count(board_shape: tuple[int, int]) -> int:
    """Return the number of symmetries of a board: 8 if it is square, else 4."""
    return 8 if board_shape[0] == board_shape[1] else 4


def transform(board: Array, symmetry: Array) -> Array:
    """Apply symmetry int32[] to an array [H, W, ...]."""
    return _flip(_transpose(board, symmetry), symmetry)


def transform_policy(policy: Array, symmetry: Array, board_shape: tuple[int, int]) -> Array:
    """Apply symmetry int32[] to an array [A] whose first H*W entries are the points row by row; the
    rest (pass) stays."""
    points, rest = _split(policy, board_shape)
    return jnp.concatenate([transform(points, symmetry).reshape(-1), rest])


def inverse_transform_policy(policy: Array, symmetry: Array, board_shape: tuple[int, int]) -> Array:
    """Undo `transform_policy`."""
    points, rest = _split(policy, board_shape)
    back = _transpose(_flip(points, symmetry), symmetry)
    return jnp.concatenate([back.reshape(-1), rest])


def _split(policy: Array, board_shape: tuple[int, int]) -> tuple[Array, Array]:
    num_points = board_shape[0] * board_shape[1]
    return policy[:num_points].reshape(board_shape), policy[num_points:]


def _flip(board: Array, symmetry: Array) -> Array:
    board = jnp.where((symmetry & 1) != 0, board[::-1], board)
    return jnp.where((symmetry & 2) != 0, board[:, ::-1], board)


def _transpose(board: Array, symmetry: Array) -> Array:
    if board.shape[0] != board.shape[1]:
        return board
    return jnp.where((symmetry & 4) != 0, jnp.swapaxes(board, 0, 1), board)


class WithSymmetries:
    """The part of the Game contract about symmetries, for games whose first actions are the points
    of `board_shape`, row by row."""

    board_shape: tuple[int, int]

    def transform_planes(self, planes: Array, symmetry: Array) -> Array:
        """Apply symmetry int32[] to planes [H, W, C]."""
        return transform(planes, symmetry)

    def transform_policy(self, policy: Array, symmetry: Array) -> Array:
        """Apply symmetry int32[] to an array [A]; actions that are not points (pass) stay."""
        return transform_policy(policy, symmetry, self.board_shape)

    def inverse_transform_policy(self, policy: Array, symmetry: Array) -> Array:
        """Undo `transform_policy`."""
        return inverse_transform_policy(policy, symmetry, self.board_shape)


class IdentityOnly:
    """The part of the Game contract about symmetries, for games whose rules or opening position
    have none but the identity."""

    num_symmetries: ClassVar[int] = 1

    def transform_planes(self, planes: Array, symmetry: Array) -> Array:
        """Return the planes."""
        return planes

    def transform_policy(self, policy: Array, symmetry: Array) -> Array:
        """Return the policy."""
        return policy

    def inverse_transform_policy(self, policy: Array, symmetry: Array) -> Array:
        """Return the policy."""
        return policy
