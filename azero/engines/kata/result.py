"""Results of KataGo's analysis protocol."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from azero.engines.kata.query import Query, Turn
from azero.games.go import setup
from azero.games.go.scoring import status as go_status
from azero.games.go.text import format_vertex
from azero.players.thinking import Analysis, MoveInfo, win_rate

if TYPE_CHECKING:
    from azero.engines.go_game import GoGame
    from azero.games.go.rules import Go
    from azero.games.position import Position
    from azero.players.points import PointsEstimate


def format_result(
    turn: Turn, game: GoGame, position: Position, analysis: Analysis, *, is_during_search: bool
) -> dict[str, Any]:
    """Return the answer about one position."""
    query = turn.query
    # A lower bound for the side to move is an upper bound for the other side; KataGo negates it in
    # the same way.
    mover = 1 if position.to_play == 0 else -1
    sign = {"SIDETOMOVE": 1, "BLACK": mover, "WHITE": -mover}[query.report_as]
    # The root, and the position after each move; None without score and ownership heads.
    points = game.session.estimate_points(position, [info.action for info in analysis.moves])
    each_lead = leads(sign, analysis, points, game.board.size)
    this_hash, sym_hash = hashes(game.board, position.to_play, ko_point(position))
    answer: dict[str, Any] = {
        "id": query.name,
        "isDuringSearch": is_during_search,
        "turnNumber": turn.number,
        "moveInfos": [
            _move_info(query, info, order, sign, lead)
            for order, (info, lead) in enumerate(zip(analysis.moves, each_lead[1:], strict=True))
        ],
        "rootInfo": {
            "currentPlayer": "BW"[position.to_play],
            "rawLead": each_lead[0]
            if points
            else score_lead(sign * analysis.raw_value, game.board.size),
            "rawWinrate": win_rate(sign * analysis.raw_value),
            "scoreLead": each_lead[0],
            "scoreSelfplay": each_lead[0],
            "symHash": sym_hash,
            "thisHash": this_hash,
            "utility": sign * analysis.value,
            "visits": analysis.visits,
            "winrate": win_rate(sign * analysis.value),
        },
    }
    if query.includes_policy:
        answer["policy"] = [
            round(float(share), 9) if legal else -1
            for share, legal in zip(analysis.raw_policy, position.legal, strict=True)
        ]
    if points is not None:
        for info, estimate in zip([answer["rootInfo"], *answer["moveInfos"]], points, strict=True):
            info["scoreStdev"] = estimate.stdev
    if query.includes_ownership or query.includes_moves_ownership:
        root, *after = _ownership(query, game, analysis, points, sign, sign * mover)
        if query.includes_ownership:
            answer["ownership"] = root
        for shown, owners_after in zip(answer["moveInfos"], after, strict=False):
            shown["ownership"] = owners_after
    return answer


def _ownership(
    query: Query,
    game: GoGame,
    analysis: Analysis,
    points: list[PointsEstimate] | None,
    sign: int,
    black_sign: int,
) -> Iterator[list[float]]:
    """Yield the owner of each point at the root and, if the query wants them, after each move, as
    the network expects it or, without these heads, as random games end; 1 and -1 as the query
    reports values."""
    if points is not None:
        for estimate in points if query.includes_moves_ownership else points[:1]:
            yield [round(sign * float(owner), 6) for owner in estimate.ownership]
        return
    found = owners(game.board.tobytes(), game.board.shape)
    expected = [round(black_sign * owner, 6) for owner in found]
    yield expected
    # Random games after every move would cost more than the search: a move changes its own point
    # alone.
    for info in analysis.moves if query.includes_moves_ownership else ():
        yield [sign if point == info.action else owner for point, owner in enumerate(expected)]


@functools.lru_cache(maxsize=4)
def owners(board: bytes, shape: tuple[int, int]) -> list[float]:
    """Return the mean owner of each point after random games, 1 Black to -1 White; a search reports
    on one board many times."""
    return go_status.owners_of(np.frombuffer(board, np.int8).reshape(shape)).reshape(-1).tolist()


_LEAD_SCALE = 0.25
"""Points of lead, per side of a square board, over which the odds of winning grow by e: 4.75 at
19x19, 2.25 at 9x9; a choice, not a measurement."""


def score_lead(value: float, num_points: int) -> float:
    """Return points that correspond to a value in [-1, 1]: an estimate, since the networks of the
    papers predict who wins, not by how much.

    It is the logistic curve's: no lead where the chances are even, a whole board at most.
    """
    rate = min(1 - 1e-9, max(1e-9, win_rate(value)))
    lead = _LEAD_SCALE * math.sqrt(num_points) * math.log(rate / (1 - rate))
    return float(np.clip(lead, -num_points, num_points))


def leads(
    sign: int, analysis: Analysis, points: list[PointsEstimate] | None, num_points: int
) -> list[float]:
    """Return the lead at the root and after each move: as the network expects it, or for a network
    without a score head what the values correspond to."""
    if points is not None:
        return [sign * estimate.lead for estimate in points]
    values = [analysis.value, *(info.value for info in analysis.moves)]
    return [score_lead(sign * value, num_points) for value in values]


def _move_info(query: Query, info: MoveInfo, order: int, sign: int, lead: float) -> dict[str, Any]:
    answer = {
        "move": format_vertex(info.action, query.shape),
        "visits": info.visits,
        "winrate": win_rate(sign * info.value),
        "lcb": win_rate(sign * info.lcb),
        "scoreLead": lead,
        "scoreMean": lead,
        "scoreSelfplay": lead,
        "utility": sign * info.value,
        "utilityLcb": sign * info.lcb,
        "prior": info.prior,
        "order": order,
        "pv": [format_vertex(action, query.shape) for action in info.line[: query.pv_length]],
    }
    if query.includes_line_visits:
        # In a tree each position has one way to it, so that its visits and those of the move to it
        # are the same.
        answer["pvVisits"] = answer["pvEdgeVisits"] = list(info.line_visits[: query.pv_length])
    return answer


def ko_point(position: Position) -> int | None:
    """Return the empty point that the side to move may not take because of a simple ko, None
    without one."""
    game: Go = position.game  # type: ignore[assignment]
    board, actions = game.board(position.state).reshape(-1), position.actions
    if not actions or actions[-1] >= board.size:
        return None
    row, column = divmod(actions[-1], game.board_shape[1])
    for chain, liberties in setup.chains(board.reshape(game.board_shape)):
        if chain == {(row, column)} and len(liberties) == 1:
            ((row, column),) = liberties
            point = row * game.board_shape[1] + column
            return None if position.legal[point] else point
    return None


def hashes(board: np.ndarray, to_play: int, ko: int | None) -> tuple[str, str]:
    """Return stand-ins for KataGo's thisHash and symHash: 32 hexadecimal digits of the position,
    and the smallest of those of its symmetries."""
    marked = board.copy()
    if ko is not None:
        marked[divmod(ko, board.shape[1])] = 2
    images = [np.rot90(image, turns) for image in (marked, marked.T) for turns in range(4)]
    digests = [_digest(image, to_play) for image in images]
    return digests[0], min(digests)


def _digest(board: np.ndarray, to_play: int) -> str:
    content = repr((board.shape, to_play)).encode() + np.ascontiguousarray(board, np.int8).tobytes()
    return hashlib.blake2b(content, digest_size=16).hexdigest().upper()
