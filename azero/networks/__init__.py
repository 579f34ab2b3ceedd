"""Networks: planes of a position to policy logits and a value."""

from azero.networks.make import make_network, resolve
from azero.networks.network import Network

__all__ = ["Network", "make_network", "resolve"]
