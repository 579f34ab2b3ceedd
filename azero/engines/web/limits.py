"""Limits of the web server: for one visitor's requests, and for the resources that all visitors
share. Our own choices unless a source is given."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WebLimits:
    """Limits of the server."""

    visits: int = 10_000
    """Visits of one search, those kept from earlier moves included."""
    seconds: float = 60.0
    """Seconds of one search."""
    review_visits: int = 2_000
    """Visits of each position of a review."""
    upload_bytes: int = 1 << 20
    """Bytes of a game record: a thousand times a usual one."""
    request_bytes: int = 16 << 10
    """Bytes of any other request."""
    request_seconds: float = 20.0
    """Seconds in which the head of a request has to arrive, and its body."""
    moves: int = 600
    """Moves of a game; each position of 19x19 takes 13 KB (measured)."""
    games: int = 64
    """Games in memory; beyond that the least recently used one is deleted."""
    idle_seconds: float = 6 * 3600.0
    """A game is deleted after this time without a request."""
    searches: int = 64
    """Searches that run or wait for their turn."""
    connections: int = 256
    """Open connections; a browser keeps up to six."""
    networks: int = 4
    """Networks in memory, each with the programs for one board."""
    trees: int = 6
    """Games of one network whose search trees are kept."""
    tree_megabytes: int = 32
    """Memory of a search tree in MiB; 32 are about 14,000 positions of 19x19."""
