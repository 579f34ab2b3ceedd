"""Networks: planes of a position to policy logits and a value."""

from azero.networks.make import Choice, choose, make_network, resolve
from azero.networks.network import Network

__all__ = ["Choice", "Network", "choose", "make_network", "resolve"]
