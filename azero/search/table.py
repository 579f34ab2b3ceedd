"""The table of searches, by the name in `SearchConfig.name`."""

from azero.search.gumbel import make_gumbel
from azero.search.mctx_backend import make_mctx_gumbel, make_mctx_puct
from azero.search.puct import make_puct

SEARCHES = {
    "puct": make_puct,
    "gumbel": make_gumbel,
    "mctx_puct": make_mctx_puct,
    "mctx_gumbel": make_mctx_gumbel,
}
