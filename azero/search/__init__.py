"""Tree search on many games at once: it knows a Game and a Leaf, never a network."""

from azero.search.batched.table import make_search
from azero.search.batched.tree import bytes_per_node, tree_bytes
from azero.search.leaf import network_leaf, rollout_leaf, uniform_leaf
from azero.search.search import LeafFn, SearchFn, SearchOutput

__all__ = ["LeafFn", "SearchFn", "SearchOutput", "bytes_per_node", "make_search", "network_leaf", "rollout_leaf", "tree_bytes", "uniform_leaf"]
