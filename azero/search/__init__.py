"""Tree search, of many games at once or of one: it knows a Game and a Leaf, never a network."""
