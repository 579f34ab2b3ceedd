"""AlphaGo Zero's evaluator: the new player replaces the best one only if it wins clearly."""

from azero.match.score import MatchResult


def passes_gate(result: MatchResult, win_rate: float = 0.55) -> bool:
    """Return whether the new player (player A of the match) replaces the best one.

    AlphaGo Zero (methods, 'Evaluator') asks for more than 55% of 400 games. Draws, which its komi
    excludes, count as half; exactly `win_rate` is not enough, and neither is a match without
    games.

    Raises:
      ValueError: `win_rate` does not lie in [0, 1).
    """
    if not 0.0 <= win_rate < 1.0:
        raise ValueError(f"the gate's win rate must be in [0, 1), not {win_rate}")
    total = result.total
    # In whole numbers, so that 220 of 400 games is exactly 55%, whatever the rounding: 2 wins +
    # draws > 2 games x rate.
    return (
        total.games > 0
        and (2 * total.wins + total.draws) - 2 * total.games * win_rate > 1e-9 * total.games
    )
