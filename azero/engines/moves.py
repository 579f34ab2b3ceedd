"""From an analysis to a move: limits, resignation, and values in the units of the protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from azero.engines.limits import Settings
from azero.players.thinking import Analysis, MoveInfo, Restriction, ThinkOptions

if TYPE_CHECKING:
    from azero.engines.go_game import GoGame
    from azero.games.position import Position


class Choice(NamedTuple):
    """The engine's decision."""

    action: int
    resigns: bool
    analysis: Analysis


def choose_move(
    game: GoGame,
    settings: Settings,
    colour: int,
    options: ThinkOptions = ThinkOptions(),  # noqa: B008
    *,
    may_resign: bool = True,
) -> Choice:
    """Search the current position with `colour` to move within the limits of the settings, and
    choose a move. Nothing is played."""
    position = game.with_turn(colour)
    limits = settings.limits(colour, len(game.moves), game.board.size)
    analysis = game.session.think(position, limits, options)
    settings.thinking_seconds += analysis.seconds
    settings.spend(colour, analysis.seconds)
    resigns = may_resign and settings.wants_to_resign(colour, analysis.value)
    return Choice(best_action(position, analysis, options.restriction), resigns, analysis)


def best_action(
    position: Position, analysis: Analysis, restriction: Restriction | None = None
) -> int:
    """Return the best move; if the search had no time at all, the network's most probable one."""
    if analysis.moves:
        return analysis.moves[0].action
    left = position.legal if restriction is None else restriction.first_moves(position)
    return int(np.where(left, analysis.raw_policy, -1.0).argmax())


def unvisited_moves(position: Position, analysis: Analysis) -> list[MoveInfo]:
    """Return the legal moves without visits, the most probable first, with the root's value."""
    seen = {info.action for info in analysis.moves}
    order = np.argsort(-analysis.raw_policy, kind="stable")
    rest = [int(action) for action in order if position.legal[action] and int(action) not in seen]
    value, policy = analysis.value, analysis.raw_policy
    return [MoveInfo(a, 0, value, float(policy[a]), value, (a,), (0,)) for a in rest]
