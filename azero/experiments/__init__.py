"""Experiments: one module for each, with its `EXPERIMENT`."""
