"""Networks: planes of a position to policy logits and a value."""
