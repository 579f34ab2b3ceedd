"""The Python interface: what `azero` itself exports (docs/python.md). Everything else is internal
and may change."""
