"""The words of policy targets, read by tests."""

import numpy as np

IS_HALF = 1 << 31
"""Bit of a word whose weight is a float16, not a count."""


def split_words(words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Host side: return the actions int16[...] and weights float32[...] of words uint32[...]; -1
    and 0 where there is no move."""
    low = (words & 0xFFFF).astype(np.uint16)
    weight = np.where(
        words >= IS_HALF, low.view(np.float16).astype(np.float32), low.astype(np.float32)
    )
    action = ((words >> 16) & 0x7FFF).astype(np.int16)
    return np.where(words > 0, action, np.int16(-1)), weight
