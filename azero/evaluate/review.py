"""Reviewing a finished game of Go: the loss of each move, and the better one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from azero.games.go.rules import Go
from azero.games.go.sgf import GameRecord
from azero.games.go.sgf_write import Note, format_game
from azero.games.go.text import format_vertex
from azero.games.position import Position, objection, start_of_record
from azero.players.points import PointsEstimate
from azero.players.thinking import Analysis, Limits, Thinker, win_rate


@dataclass(frozen=True)
class ReviewedMove:
    """One move of the game. Values are in [-1, 1] for the player who made it."""

    number: int
    """From 1."""
    colour: int
    """0 Black, 1 White."""
    action: int
    value: float
    """The search's value before the move."""
    value_after: float
    """The search's value after the move."""
    best: int
    """The move it would have chosen; the move itself if there was nothing to search."""
    line: tuple[int, ...]
    """The play it expected, beginning with `best`."""
    visits: int
    """Visits of the position's search."""
    prior: float
    """The network's probability of the move that was played."""
    board: np.ndarray
    """int8[H, W] before the move: 1 Black, -1 White."""
    black_lead: float | None
    """Points by which Black is expected to lead at the end, komi included, as it is after the move;
    None where the network has no score head."""

    @property
    def loss(self) -> float:
        """Value that the move gave away; 0 if it was the search's own choice."""
        return 0.0 if self.action == self.best else max(0.0, self.value - self.value_after)

    @property
    def black_value(self) -> float:
        """Value for Black before the move."""
        return self.value if self.colour == 0 else -self.value


@dataclass(frozen=True)
class Review:
    """A reviewed game."""

    record: GameRecord
    moves: tuple[ReviewedMove, ...]
    final_black_value: float
    """Value for Black after the last move; the result if the game was played to its end, as
    `review_game` counts it."""
    final_board: np.ndarray
    """int8[H, W] after the last move: 1 Black, -1 White."""
    final_ownership: np.ndarray | None
    """float32[H, W] after the last move: the expected owner, from 1 Black to -1 White; None where
    the network has no ownership head."""
    stopped: str
    """Why the review ends before the record does; empty if it does not."""

    def mistakes(self, number: int, smallest: float = 0.0) -> list[ReviewedMove]:
        """Return the `number` worst moves with a loss above `smallest`, the worst first."""
        return sorted(
            (move for move in self.moves if move.loss > smallest), key=lambda move: -move.loss
        )[:number]


def review_game(
    thinker: Thinker,
    record: GameRecord,
    game: Go,
    limits: Limits,
    count_points: Callable[[np.ndarray], float] | None = None,
) -> Review:
    """Think about every position of a game. Leads and ownership are the network's own, without
    search; after two passes the lead is what `count_points` says, less komi.

    A review ends at the first move that is out of turn or that the rules forbid, and says so; moves
    of Black before White's first are handicap stones.

    Args:
      thinker: analyses the positions; its tree is kept from move to move.
      record: the game.
      game: the rules, on the record's board.
      limits: of every position.
      count_points: (board int8[H, W]) -> Black's points minus White's, without komi, where the
        players have passed: who leave dead stones on the board. None counts every stone as living,
        as the rules do.

    Raises:
      ValueError: the set-up is impossible, or there is no move to review.
    """
    position, colours_and_actions, skipped = start_of_record(record, game)
    moves: list[ReviewedMove] = []
    stopped = ""

    def think(position: Position) -> tuple[Analysis, PointsEstimate | None]:
        return _think(thinker, position, limits, count_points)

    analysis, estimate = think(position)
    for number, (colour, action) in enumerate(colours_and_actions, start=1 + skipped):
        stopped = objection(position, colour, action, number)
        if stopped:
            break
        following = position.play(action)
        next_analysis, estimate = think(following)
        lead = None if estimate is None else estimate.lead
        moves.append(
            _reviewed(game, position, number, colour, action, analysis, next_analysis, lead)
        )
        position, analysis = following, next_analysis
    if not moves:
        raise ValueError(f"{record.name}: {stopped or 'there is no move to review'}")
    return Review(
        record,
        tuple(moves),
        final_black_value=analysis.value if position.to_play == 0 else -analysis.value,
        final_board=game.board(position.state),
        final_ownership=None if estimate is None else estimate.ownership.reshape(game.board_shape),
        stopped=stopped,
    )


def _think(
    thinker: Thinker,
    position: Position,
    limits: Limits,
    count_points: Callable[[np.ndarray], float] | None,
) -> tuple[Analysis, PointsEstimate | None]:
    """Return what the search finds in a position, and Black's estimate of the end of the game; both
    with the counted points after two passes."""
    analysis, estimate = thinker.think(position, limits), _black_points(thinker, position)
    game = cast(Go, position.game)
    if count_points is None or not position.is_over or position.actions[-1:] != (game.num_points,):
        return analysis, estimate
    points = count_points(game.board(position.state))
    black = game.result_of(points)
    value = -black if position.to_play else black
    if estimate is not None:
        estimate = estimate._replace(lead=points - game.komi)
    return dataclasses.replace(analysis, value=value), estimate


def _black_points(thinker: Thinker, position: Position) -> PointsEstimate | None:
    """Return what the network expects of the end of the game for Black, if it says so."""
    estimates = thinker.estimate_points(position)
    if estimates is None:
        return None
    return estimates[0] if position.to_play == 0 else estimates[0].for_opponent()


def _reviewed(
    game: Go,
    position: Position,
    number: int,
    colour: int,
    action: int,
    analysis: Analysis,
    following: Analysis,
    black_lead: float | None,
) -> ReviewedMove:
    best = analysis.moves[0] if analysis.moves else None
    return ReviewedMove(
        number=number,
        colour=colour,
        action=action,
        value=analysis.value,
        value_after=-following.value,
        best=action if best is None else best.action,
        line=(action,) if best is None else (best.line or (best.action,)),
        visits=analysis.visits,
        prior=float(analysis.raw_policy[action]),
        board=game.board(position.state),
        black_lead=black_lead,
    )


def review_rows(review: Review) -> list[dict[str, object]]:
    """Return one plain row for every move: win rates in percent for the player who moved, and the
    lead in points, where it is known, for Black."""
    shape = review.record.board_shape
    return [
        {
            "move": move.number,
            "colour": "BW"[move.colour],
            "played": format_vertex(move.action, shape),
            "win_rate": round(100 * win_rate(move.value), 2),
            "win_rate_after": round(100 * win_rate(move.value_after), 2),
            "loss": round(50 * move.loss, 2),
            "best": format_vertex(move.best, shape),
            "line": [format_vertex(action, shape) for action in move.line],
            "prior": round(move.prior, 4),
            "visits": move.visits,
            **({} if move.black_lead is None else {"black_lead": round(move.black_lead, 2)}),
        }
        for move in review.moves
    ]


def review_sgf(review: Review) -> str:
    """Return the game as SGF with the win rates and leads as comments, after the record's own, and
    the better line as a variation where a move gave something away."""
    record = review.record
    notes = [Note(comment) for comment in record.comments or [""] * len(record.moves)]
    for move in review.moves:
        own = notes[move.number - 1].comment
        lines = [own] if own else []
        lines.append(
            f"Black wins {100 * win_rate(move.black_value):.1f}% before this move; "
            f"{move.visits} visits"
        )
        if move.action == move.best:
            lines.append(f"{format_vertex(move.best, record.board_shape)} is the best move")
        else:
            lines.append(
                f"best {format_vertex(move.best, record.board_shape)}; this one loses "
                f"{50 * move.loss:.1f}%"
            )
        if move.black_lead is not None:
            leader = "Black" if move.black_lead >= 0 else "White"
            lines.append(f"{leader} leads by {abs(move.black_lead):.1f} points after this move")
        names = [format_vertex(action, record.board_shape) for action in move.line]
        lines.append("line " + " ".join(names))
        if review.stopped and move is review.moves[-1]:
            lines.append(f"the review ends here: {review.stopped}")
        variations = (move.line,) if move.loss > 0 else ()
        notes[move.number - 1] = Note("\n".join(lines), variations)
    return format_game(record, notes)
