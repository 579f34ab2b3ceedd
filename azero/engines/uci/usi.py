"""The Universal Shogi Interface (Tord Romstad's description, with the additions of ShogiDokoro's
page), where it differs from UCI.
"""

from azero.engines.uci.engine import Dialect
from azero.engines.uci.info import shogi_centipawns
from azero.engines.uci.options import (
    MULTI_PV,
    RESIGN_VALUE,
    THREADS,
    Option,
    hash_option,
    overhead_option,
)

_HASH = hash_option("USI_Hash")
_OVERHEAD = overhead_option("NetworkDelay")

USI = Dialect(
    name="usi",
    sides=("b", "w"),
    options=(_HASH, Option("USI_Ponder", 0), MULTI_PV, THREADS, _OVERHEAD, RESIGN_VALUE),
    memory=_HASH,
    overhead=_OVERHEAD,
    centipawns=shogi_centipawns,
    no_move="resign",
    win="win",
    refused_go=(("mate", "checkmate notimplemented"),),
    last_words=("gameover",),
)
