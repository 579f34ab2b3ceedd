"""AlphaGo, AlphaGo Zero and AlphaZero in JAX."""

from azero.xla_flags import turn_off_ynn_fusions

__version__ = "0.1.0"

YNN_FUSIONS = turn_off_ynn_fusions()
"""What was done about XLA's wrong fusions on CPUs, in words, for `azero doctor`."""
