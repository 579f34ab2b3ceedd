"""Moves in standard algebraic notation as numbers, so that one compiled program finds the actions
of many games at once.

The code of a move is int32[CODE_WORDS]: the kind of the piece that moves, the square that it goes
to (its goal), the file and the rank that it comes from, the kind that a pawn becomes, and whether
the king castles; ANY where the text leaves it open. Squares are 8 * rank + file from a1; castling
has the king's file as goal.
"""

import functools
import re

import jax.numpy as jnp
import numpy as np

from azero.games.chess import moves
from azero.games.chess.fen import LETTERS, parse_square
from azero.games.chess.position import FRAME_WORDS, KING, PAWN, QUEEN, facts
from azero.types import Array

ANY = -1
CODE_WORDS = 6
NO_MOVE = (0, 0, 0, 0, 0, 0)
"""The code that fits no action: there is no piece of kind 0."""
SAN = re.compile(r"([PKQRBN])?([a-h])?([1-8])?[x-]?([a-h][1-8])(?:=?([QRBNqrbn]))?")
_UCI = re.compile(r"([a-h])([1-8])([a-h][1-8])([qrbn])?")
_CASTLING_FILES = {"O-O": 6, "O-O-O": 2}
_CASTLING = re.compile("[Oo0]-[Oo0](-[Oo0])?")
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212"
"""What word processors make of a hyphen."""
GLYPHS = "\u2654-\u265f"
"""The range of the characters of pieces."""
_PLAIN = str.maketrans(
    {
        **dict(zip("♔♕♖♗♘♚♛♜♝♞", "KQRBN" * 2, strict=True)),
        **dict.fromkeys("♙♟\ufe0e\ufe0f"),  # a pawn has no letter; a glyph may be marked as text
        **dict.fromkeys(DASHES, "-"),
        **dict.fromkeys(":×", "x"),
    }
)


def plain_san(san: str) -> str:
    """Return a move with letters for figurines, "x" for other signs of a capture and "O" in
    castling, without check signs, annotations, the offer of a draw and "e.p."."""
    san = san.translate(_PLAIN).rstrip("+#!?=").removesuffix("e.p.").removesuffix("ep")
    return re.sub("[o0]", "O", san) if _CASTLING.fullmatch(san) else san


@functools.lru_cache(maxsize=1 << 16)
def encode_san(san: str) -> tuple[int, ...]:
    """Return the code of a move in any notation that `azero.games.chess.text.parse_san` reads;
    NO_MOVE if the text is not a move."""
    san = plain_san(san)
    if san in _CASTLING_FILES:
        return KING, _CASTLING_FILES[san], ANY, ANY, 0, 1
    if match := _UCI.fullmatch(san):
        piece, castles = ANY, ANY
        file, rank, goal, becomes = match.groups()
    elif match := SAN.fullmatch(san):
        letter, file, rank, goal, becomes = match.groups()
        piece, castles = LETTERS.index(letter or "P"), 0
    else:
        return NO_MOVE
    return (
        piece,
        parse_square(goal),
        "abcdefgh".index(file) if file else ANY,
        int(rank) - 1 if rank else ANY,
        LETTERS.index(becomes.upper()) if becomes else 0,
        castles,
    )


def fitting_actions(frame: Array, code: Array) -> Array:
    """Return bool[4672]: the actions that a move's code int32[CODE_WORDS] may mean in the position
    of frame uint32[FRAME_WORDS], legal or not."""
    kind, goal, file, rank, becomes, castles = code.astype(jnp.int8)
    is_black = (facts(frame[FRAME_WORDS - 1]).plies & 1).astype(bool)
    mirrored = jnp.where(is_black & (castles != 1), jnp.int8(56), jnp.int8(0))
    kinds = jnp.where(is_black, _kinds(frame).reshape(8, 8)[::-1].reshape(64), _kinds(frame))
    kinds = kinds[:, None]
    start, goals, promotions, sideways = _tables()
    becoming = jnp.where(
        (kinds == PAWN) & (promotions == 0) & (goals >= 56), jnp.int8(QUEEN), promotions
    )
    is_castling = (kinds == KING) & sideways
    fits = (
        ((kind == ANY) | (kinds == kind))
        & (goals == goal ^ mirrored)
        & ((file == ANY) | (start % 8 == file))
        & ((rank == ANY) | (start // 8 == rank ^ mirrored // 8))
        & (becoming == becomes)
        & ((castles == ANY) | (is_castling == (castles == 1)))
    )
    return fits.reshape(moves.NUM_ACTIONS)


def _kinds(frame: Array) -> Array:
    """Return int8[64], the codes of the kinds of the pieces from a1."""
    squares = jnp.arange(64, dtype=jnp.int32)
    shifts = (squares % 32).astype(jnp.uint32)
    planes = [
        (jnp.where(squares < 32, frame[low], frame[low + 1]) >> shifts & 1).astype(jnp.int8)
        for low in (2, 4, 6)
    ]
    return planes[0] + 2 * planes[1] + 4 * planes[2]


def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the start int8[64, 1] of the actions, their goals [64, 73], the kinds of their
    underpromotions [1, 73], and whether they go two squares sideways, bool[1, 73]."""
    planes = np.array(moves.plane_moves(), np.int8)
    start = np.arange(64, dtype=np.int8)[:, None]
    goals = start + 8 * planes[:, 1] + planes[:, 0]
    return start, goals, planes[None, :, 2], (abs(planes[:, 0]) == 2) & (planes[:, 1] == 0)
