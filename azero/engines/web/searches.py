"""Searches for the page: live analysis, the network's moves, reviews of whole games."""

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from azero.engines.kata.result import leads, owners
from azero.engines.moves import best_action
from azero.engines.web.games import WebGame
from azero.games.go.rules import Go
from azero.games.position import Position
from azero.players.points import PointsEstimate
from azero.players.thinking import Analysis, Limits, ThinkOptions, win_rate

Push = Callable[[str, dict[str, Any]], None]
"""Sends an event with its data to the page."""
SHOWN_MOVES = 12
"""Moves of an analysis that the page gets."""
SHOWN_LINE = 10
"""Moves of a line that the page gets, in Go; in other games naming a move plays it in the slow host
rules, and it gets half as many."""
POLICY_MOVES = 24
"""Most probable moves that the page gets of games with pieces; of Go it gets all points."""
PROGRESS_SECONDS = 0.25


def think(
    game: WebGame,
    push: Push,
    stop: threading.Event,
    limits: Limits,
    *,
    plays: bool,
    wants_owners: bool,
) -> None:
    """Search the current position; with `plays` the network then plays the best move, or resigns.
    The page gets the events "status", "analysis" and, if the network plays, "game". Ends early,
    without a move, once `stop` is set.

    Raises:
      ValueError: the game is over.
      StartError: the network cannot be loaded.
    """
    with game.turn(stop):
        position = game.position
        if game.outcome is not None:
            raise ValueError("the game is over; take a move back to continue")
        if not _wait(game, push, stop):
            return
        root = root_estimates(game, position, wants_owners)

        def report(analysis: Analysis) -> None:
            # without another call of the network, whose lock the search holds
            found = format_analysis(game, position, analysis) | root
            if isinstance(position.game, Go) and "scoreLead" not in root:
                _add_leads(found, position.game, analysis, None)
            push("analysis", found)

        analysis = game.session.think(
            position, limits, ThinkOptions(stop.is_set, report, PROGRESS_SECONDS)
        )
        if stop.is_set():
            return
        found = format_analysis(game, position, analysis) | root
        add_leads(found, game, position, analysis)
        push("analysis", found)
        if plays:
            _play(game, position, analysis)
            push("game", game.describe())


def _wait(game: WebGame, push: Push, stop: threading.Event) -> bool:
    """Wait for the network, with a status event; return whether it is ready."""
    network = game.network
    if network.state != "ready":
        push("status", {"state": "compiling"})
    elif network.search_lock.is_locked:
        push("status", {"state": "waiting"})
    return network.wait(stop.is_set) is not None


def _play(game: WebGame, position: Position, analysis: Analysis) -> None:
    """Play the best move, or resign by the rule of `Settings.wants_to_resign`."""
    colour = position.to_play
    if analysis.visits > 1 and game.settings.wants_to_resign(colour, analysis.value):
        game.resign(colour)
        return
    game.play(best_action(position, analysis))


def format_analysis(game: WebGame, position: Position, analysis: Analysis) -> dict[str, Any]:
    """Return an analysis under KataGo's names of fields; win rates are those of the side to
    move."""
    adapter = game.adapter
    is_go = isinstance(position.game, Go)
    depth = SHOWN_LINE if is_go else SHOWN_LINE // 2
    return {
        "ply": game.ply,
        "toPlay": position.to_play,
        "visits": analysis.visits,
        "seconds": round(analysis.seconds, 2),
        "winrate": _rounded(win_rate(analysis.value)),
        "rawWinrate": _rounded(win_rate(analysis.raw_value)),
        "moves": [
            {
                "visits": info.visits,
                "winrate": _rounded(win_rate(info.value)),
                "prior": _rounded(info.prior),
                "pv": adapter.format_line(position, info.line[:depth]),
            }
            for info in analysis.moves[:SHOWN_MOVES]
        ],
        "policy": _policy(game, position, analysis.raw_policy),
    }


def _policy(game: WebGame, position: Position, policy: np.ndarray) -> list[Any]:
    """Return the network's policy: of every point in Go and on marked squares (pass last in Go),
    else as pairs of the most probable moves and their probabilities."""
    if isinstance(position.game, Go) or game.adapter.name == "tictactoe":
        return [_rounded(float(share)) for share in policy]
    order = np.argsort(-policy, kind="stable")[:POLICY_MOVES]
    return [
        (game.adapter.format_line(position, [int(action)])[0], _rounded(float(policy[action])))
        for action in order
        if position.legal[action]
    ]


def root_estimates(game: WebGame, position: Position, wants_owners: bool) -> dict[str, Any]:
    """Return for Go what the network expects of the end of the game: the lead of the side to move,
    where it has a score head, and if wanted the owner of each point, from 1 for the first mover to
    -1, which otherwise come from random games. Nothing for other games."""
    rules = position.game
    if not isinstance(rules, Go):
        return {}
    points = game.session.estimate_points(position)
    estimates: dict[str, Any] = {}
    if points is not None:
        estimates["scoreLead"] = round(points[0].lead, 2)
    if wants_owners:
        board = rules.board(position.state)
        if points is None:
            known = np.asarray(owners(board.tobytes(), board.shape))
        else:
            known = points[0].ownership * (1 if position.to_play == 0 else -1)
        estimates["ownership"] = [round(float(owner), 2) for owner in known]
    return estimates


def add_leads(found: dict[str, Any], game: WebGame, position: Position, analysis: Analysis) -> None:
    """Add to an analysis of Go the lead of the side to move and that after each of the best moves;
    where the network has no score head, leads are estimated from values, as in the analysis
    protocol."""
    rules = position.game
    if isinstance(rules, Go):
        actions = [info.action for info in analysis.moves[:SHOWN_MOVES]]
        _add_leads(found, rules, analysis, game.session.estimate_points(position, actions))


def _add_leads(
    found: dict[str, Any], rules: Go, analysis: Analysis, points: list[PointsEstimate] | None
) -> None:
    shown = dataclasses.replace(analysis, moves=analysis.moves[:SHOWN_MOVES])
    root, *each = leads(1, shown, points, rules.num_points)
    found["scoreLead"] = round(root, 2)
    for move, lead in zip(found["moves"], each, strict=True):
        move["lead"] = round(lead, 2)


def _rounded(share: float) -> float:
    return round(share, 4)


def review(game: WebGame, visits: int, push: Push, stop: threading.Event) -> None:
    """Search every position of the line; the page gets an event "analysis" for each, and an event
    "move" with the loss of each move. The current position stays.

    Raises:
      StartError: the network cannot be loaded.
      ValueError: there is no move to review.
    """
    with game.turn(stop):
        if not game.line:
            raise ValueError("there is no move to review yet")
        if not _wait(game, push, stop):
            return
        ply = game.ply
        try:
            _review(game, Limits(visits=visits), push, stop)
        finally:
            game.go_to(ply)


def _review(game: WebGame, limits: Limits, push: Push, stop: threading.Event) -> None:
    before: tuple[int, Analysis] | None = None
    for ply in range(len(game.line) + 1):
        game.go_to(ply)
        position = game.position
        analysis = game.session.think(position, limits, ThinkOptions(stop.is_set))
        if stop.is_set():
            return
        outcome = game.adapter.outcome()
        if outcome is not None:  # by the rules: a resignation does not judge the last move
            value = {None: 0.0, position.to_play: 1.0}.get(outcome.winner, -1.0)
            analysis = dataclasses.replace(analysis, value=value)
        if not position.is_over:
            found = format_analysis(game, position, analysis)
            add_leads(found, game, position, analysis)
            push("analysis", found)
        if before is not None:
            push("move", _judge_move(game, ply, before, (position.to_play, analysis)))
        before = position.to_play, analysis


def _judge_move(
    game: WebGame, ply: int, before: tuple[int, Analysis], after: tuple[int, Analysis]
) -> dict[str, Any]:
    """Return the loss in win rate of the move that led to `ply`, and the first mover's win rate
    after it. `before` and `after` are the analyses of both positions with their sides to move; in a
    record the side to move need not be that of the move."""
    turn, (to_play, found) = game.line[ply - 1], before
    value, value_after = (
        analysis.value if side == turn.colour else -analysis.value
        for side, analysis in (before, after)
    )
    is_best = to_play == turn.colour and turn.action in [info.action for info in found.moves[:1]]
    loss = 0.0 if is_best or not found.moves else max(0.0, value - value_after) / 2
    first = value_after if turn.colour == 0 else -value_after
    return {
        "ply": ply,
        "colour": turn.colour,
        "played": turn.label,
        "loss": _rounded(loss),
        "firstWinrate": _rounded(win_rate(first)),
    }
