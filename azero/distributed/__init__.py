"""The processes of a run: how one joins the others, and how the end of one ends all."""

from azero.distributed.cluster import join_cluster
from azero.distributed.links import EXIT_INTERRUPTED, ProcessLinks, end_process

__all__ = ["EXIT_INTERRUPTED", "ProcessLinks", "end_process", "join_cluster"]
