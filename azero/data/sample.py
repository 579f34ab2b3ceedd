"""Training targets."""

from __future__ import annotations

from typing import NamedTuple

from azero.types import Array


class Batch(NamedTuple):
    """Positions with their targets."""

    planes: Array
    """bool or uint8 [B, H, W, C]"""
    weights: Array
    """float32[B, A]; all zero where a position has no policy target"""
    value: Array
    """float32[B] in [-1, 1], for the side to move"""
