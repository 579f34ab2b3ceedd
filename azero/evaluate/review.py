"""Reviewing a finished game of Go, chess or shogi: the loss of each move, and the better one."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from azero.evaluate.recorded import RecordedGame
from azero.games.chess import text as chess_text
from azero.games.go.rules import Go
from azero.games.position import Position, objection
from azero.games.table import side_names
from azero.players.notation import NOTATIONS, as_unfinished
from azero.players.points import PointsEstimate
from azero.players.thinking import Analysis, Limits, Thinker, win_rate

LINE_MOVES = 8
"""Moves of a better line in chess and shogi, where naming a move plays it in the slow host
rules."""


@dataclass(frozen=True)
class ReviewedMove:
    """One move of the game. Values are in [-1, 1] for the player who made it."""

    position: Position
    """Before the move."""
    number: int
    """From 1."""
    colour: int
    """0 the first mover of the game, 1 the second."""
    action: int
    name: str
    """The move as people write it: D4, Nf3, 7g7f."""
    value: float
    """The search's value before the move."""
    value_after: float
    """The search's value after the move."""
    best: int
    """The move it would have chosen; the move itself if there was nothing to search."""
    line: tuple[int, ...]
    """The play it expected, beginning with `best`; at most LINE_MOVES of chess and shogi."""
    line_names: tuple[str, ...]
    visits: int
    """Visits of the position's search."""
    prior: float
    """The network's probability of the move that was played."""
    black_lead: float | None
    """Go: points by which Black is expected to lead at the end, komi included, as it is after the
    move; None where the network has no score head, and in other games."""

    @property
    def written_number(self) -> str:
        """The number as people write it: 14; in chess 7. for White's move and 7... for Black's."""
        if self.position.game.name != "chess":
            return str(self.number)
        moves, is_black = divmod(chess_text.board_of_state(self.position.state).plies, 2)
        return f"{moves + 1}{'...' if is_black else '.'}"

    @property
    def heading(self) -> str:
        """The move with its number and side: Move 14: Black D4; in chess 7... Qe7."""
        if self.position.game.name == "chess":
            return f"{self.written_number} {self.name}"
        return f"Move {self.number}: {side_names(self.position.game.name)[self.colour]} {self.name}"

    @property
    def loss(self) -> float:
        """Value that the move gave away; 0 if it was the search's own choice."""
        return 0.0 if self.action == self.best else max(0.0, self.value - self.value_after)

    @property
    def first_value(self) -> float:
        """Value for the first mover before the move."""
        return self.value if self.colour == 0 else -self.value


@dataclass(frozen=True)
class Review:
    """A reviewed game."""

    game: RecordedGame
    moves: tuple[ReviewedMove, ...]
    final_position: Position
    """After the last move."""
    final_value: float
    """Value for the first mover after the last move; the result if the game was played to its end,
    as `review_game` counts it."""
    final_ownership: np.ndarray | None
    """Go: float32[H, W] after the last move: the expected owner, from 1 Black to -1 White; None
    where the network has no ownership head, and in other games."""
    stopped: str
    """Why the review ends before the record does; empty if it does not."""

    @property
    def sides(self) -> tuple[str, str]:
        """Names of the first and the second mover: Black and White, in chess White and Black."""
        return side_names(self.game.start.game.name)

    def mistakes(self, number: int, smallest: float = 0.0) -> list[ReviewedMove]:
        """Return the `number` worst moves with a loss above `smallest`, the worst first."""
        return sorted(
            (move for move in self.moves if move.loss > smallest), key=lambda move: -move.loss
        )[:number]


def review_game(
    thinker: Thinker,
    game: RecordedGame,
    limits: Limits,
    count_points: Callable[[np.ndarray], float] | None = None,
) -> Review:
    """Think about every position of a game. In Go leads and ownership are the network's own,
    without search; after two passes the lead is what `count_points` says, less komi.

    A review ends at the first move that is out of turn or that the rules forbid, and says so. Games
    of chess and shogi go on after a draw or win under azero's rules that nobody claimed.

    Args:
      thinker: analyses the positions; its tree is kept from move to move.
      game: the game, by the rules that the thinker plays.
      limits: of every position.
      count_points: Go: (board int8[H, W]) -> Black's points minus White's, without komi, after two
        passes, when dead stones may be left on the board. None counts every stone as alive, as the
        rules do.

    Raises:
      ValueError: there is no move to review.
    """
    position = game.start
    moves: list[ReviewedMove] = []
    stopped = ""

    def think(position: Position) -> tuple[Analysis, PointsEstimate | None]:
        return _think(thinker, position, limits, count_points)

    analysis, estimate = think(position)
    for number, (colour, action) in enumerate(game.moves, start=game.first_number):
        opened = position if isinstance(position.game, Go) else as_unfinished(position)
        if opened is not None and opened is not position:
            position = opened
            analysis, estimate = think(position)
        stopped = objection(position, colour, action, number)
        if stopped:
            break
        following = position.play(action)
        next_analysis, estimate = think(following)
        lead = None if estimate is None else estimate.lead
        moves.append(_reviewed(position, number, colour, action, analysis, next_analysis, lead))
        position, analysis = following, next_analysis
    if not moves:
        raise ValueError(f"{game.record.name}: {stopped or 'there is no move to review'}")
    shape = position.game.board_shape
    return Review(
        game,
        tuple(moves),
        final_position=position,
        final_value=analysis.value if position.to_play == 0 else -analysis.value,
        final_ownership=None if estimate is None else estimate.ownership.reshape(shape),
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
    analysis, game = thinker.think(position, limits), position.game
    if not isinstance(game, Go):
        return analysis, None
    estimate = _black_points(thinker, position)
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
    position: Position,
    number: int,
    colour: int,
    action: int,
    analysis: Analysis,
    following: Analysis,
    black_lead: float | None,
) -> ReviewedMove:
    best = analysis.moves[0] if analysis.moves else None
    line = (action,) if best is None else (best.line or (best.action,))
    line = line if isinstance(position.game, Go) else line[:LINE_MOVES]
    return ReviewedMove(
        position=position,
        number=number,
        colour=colour,
        action=action,
        name=name_line(position, [action])[0],
        value=analysis.value,
        value_after=-following.value,
        best=line[0],
        line=line,
        line_names=tuple(name_line(position, line)),
        visits=analysis.visits,
        prior=float(analysis.raw_policy[action]),
        black_lead=black_lead,
    )


def name_line(position: Position, actions: Sequence[int]) -> list[str]:
    """Return moves that follow one another as people write them, in chess in SAN."""
    notation = NOTATIONS.get(position.game.name)
    if notation is None:
        return [position.action_name(action) for action in actions]
    if position.game.name == "chess":
        notation = dataclasses.replace(notation, format_move=chess_text.format_san)
    return notation.format_line(position, actions)


def review_rows(review: Review) -> list[dict[str, object]]:
    """Return one plain row for every move: win rates in percent for the player who moved, and the
    lead in points, where it is known, for Black."""
    return [
        {
            "move": move.number,
            "colour": review.sides[move.colour][0],
            "played": move.name,
            "win_rate": round(100 * win_rate(move.value), 2),
            "win_rate_after": round(100 * win_rate(move.value_after), 2),
            "loss": round(50 * move.loss, 2),
            "best": move.line_names[0],
            "line": list(move.line_names),
            "prior": round(move.prior, 4),
            "visits": move.visits,
            **({} if move.black_lead is None else {"black_lead": round(move.black_lead, 2)}),
        }
        for move in review.moves
    ]
