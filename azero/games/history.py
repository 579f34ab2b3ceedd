"""How many positions the planes of chess, shogi and their small relatives show."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Self

import jax.numpy as jnp

from azero.types import Array

NUM_FRAMES = 8
"""Positions that a state keeps, and that the planes show by default (AZ, supplement: T = 8)."""


class WithHistory:
    """The part of a game, a frozen dataclass with a field `history`, that depends on how many
    positions its planes show."""

    history: int
    num_frames: ClassVar[int] = NUM_FRAMES
    PLANES: ClassVar[tuple[int, int]]
    """Planes of each position, and of the newest alone."""

    @property
    def num_planes(self) -> int:
        """Planes that a network sees."""
        of_each, of_newest = self.PLANES
        return self.history * of_each + of_newest

    def seen_as(self, trained: WithHistory) -> Self:
        """Return the same rules with the planes of `trained`, the game that a network has
        learned."""
        return dataclasses.replace(self, history=trained.history)  # type: ignore[type-var]


def check_history(history: int) -> None:
    """Check the number of positions in the planes.

    Raises:
      ValueError: it is out of range; the number is quoted with what is allowed.
    """
    if not 1 <= history <= NUM_FRAMES:
        raise ValueError(f"history {history}: allowed are 1 to {NUM_FRAMES}")


def with_facts(frame: Array, bits: Array) -> Array:
    """Return the frame uint32[F] with `bits` uint32[] set in its last word."""
    is_last = jnp.arange(frame.shape[0], dtype=jnp.int32) == frame.shape[0] - 1
    return jnp.where(is_last, frame | bits, frame)
