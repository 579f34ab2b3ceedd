"""The trained networks that ship with azero, by name."""
