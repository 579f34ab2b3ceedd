"""The Universal Chess Interface (Meyer-Kahlen's description of April 2006), where it differs from
USI.
"""

from azero.engines.uci.engine import Dialect
from azero.engines.uci.info import chess_centipawns
from azero.engines.uci.options import (
    MULTI_PV,
    SHOW_WDL,
    THREADS,
    Option,
    hash_option,
    overhead_option,
)

_HASH = hash_option("Hash")
_OVERHEAD = overhead_option("Move Overhead")

UCI = Dialect(
    name="uci",
    sides=("w", "b"),
    options=(MULTI_PV, _HASH, THREADS, _OVERHEAD, Option("Ponder", 0), SHOW_WDL),
    memory=_HASH,
    overhead=_OVERHEAD,
    centipawns=chess_centipawns,
    no_move="(none)",
)
