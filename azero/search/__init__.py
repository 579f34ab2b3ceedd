"""Tree search on many games at once: it knows a Game and a Leaf, never a network."""
