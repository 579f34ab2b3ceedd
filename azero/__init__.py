"""AlphaGo, AlphaGo Zero and AlphaZero in JAX."""

from azero.xla_flags import limit_ynnpack

__version__ = "0.1.0"

YNN_FUSIONS = limit_ynnpack()
"""What was done about XLA's wrong fusions on CPUs, in words, for `azero doctor`."""
