"""AlphaGo, AlphaGo Zero and AlphaZero in JAX."""

__version__ = "0.1.0"
