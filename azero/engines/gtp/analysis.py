"""GTP commands for analysis: lz-analyze, kata-analyze and similar, the raw network output, GoGui's
list.

Formats: KataGo's docs/GTP_Extensions.md; Leela Zero's `lz-analyze`. Values are those of the side
that is asked about. KataGo's score fields (scoreLead, scoreMean, scoreStdev, ownership) need a
network with score and ownership heads; without one they are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from azero.engines.gtp.command import (
    Call,
    Command,
    CommandError,
    parse_colour,
    parse_integer,
    parse_number,
)
from azero.engines.gtp.play import finish_move
from azero.engines.moves import choose_move, unvisited_moves
from azero.players.thinking import Analysis, Limits, MoveInfo, Restriction, ThinkOptions, win_rate

if TYPE_CHECKING:
    from azero.games.position import Position
    from azero.players.points import PointsEstimate

_FLAGS = {
    name.lower(): name
    for name in [
        "rootInfo",
        "pvVisits",
        "pvEdgeVisits",
        "ownership",
        "ownershipStdev",
        "movesOwnership",
        "movesOwnershipStdev",
    ]
}
"""Boolean options, in lower case. A network without an ownership head answers everything but
ownership."""


@dataclass
class AnalyzeOptions:
    """The options of an analysis command."""

    colour: int
    seconds: float = 1.0
    """Between two reports."""
    fewest: int = 0
    """Fewest moves to report; unvisited moves fill up the list."""
    most: int | None = None
    shown: set[str] = field(default_factory=set)
    """Other output, of `_FLAGS`."""
    restriction: Restriction | None = None
    """From allow and avoid."""


def parse_options(call: Call) -> AnalyzeOptions:
    """Parse the words of an analysis command: [colour] [interval] and pairs of a key and its value.

    Raises:
      CommandError: a key or value is not understood.
    """
    words = list(call.words)
    colour = call.game.position.to_play
    if words and words[0].lower() in ("b", "w", "black", "white"):
        colour = parse_colour(words.pop(0))
    options = AnalyzeOptions(colour)
    if words and re.match(r"[-+.]?\d", words[0]):
        options.seconds = _centiseconds(words.pop(0))
    restrictions = []
    while words:
        key = words.pop(0).lower()
        if key in ("allow", "avoid"):
            restrictions.append(_take_restriction(call, key, words))
            continue
        if not words:
            raise CommandError(f"syntax error: {key[:20]!r} needs a value")
        _option(options, key, words.pop(0))
    options.restriction = _restriction(restrictions, call.game.position.legal.size)
    return options


def _option(options: AnalyzeOptions, key: str, value: str) -> None:
    if key == "interval":
        options.seconds = _centiseconds(value)
    elif key == "minmoves":
        options.fewest = parse_integer(value, 0, 10**6)
    elif key == "maxmoves":
        options.most = parse_integer(value, 1, 10**6)
    elif key in _FLAGS:
        if value.lower() not in ("true", "false"):
            raise CommandError(f"syntax error: {key} takes true or false")
        if value.lower() == "true":
            options.shown.add(_FLAGS[key])
    else:
        raise CommandError(f"syntax error: unknown option {key[:20]!r}")


def _centiseconds(word: str) -> float:
    """Return centiseconds, which need not be whole in KataGo, as seconds."""
    value = parse_number(word)
    if not 0 <= value <= 10**9:
        raise CommandError(f"syntax error: {word[:20]!r} is not a number from 0 to {10**9}")
    return max(0.01, value / 100)


def _take_restriction(call: Call, key: str, words: list[str]) -> tuple[str, int, set[int], int]:
    """Remove player, moves and depth of an `allow` or `avoid` from `words`; return them after the
    key."""
    if len(words) < 3:
        raise CommandError(
            f"syntax error: {key} takes a colour, moves with commas between them, and a depth"
        )
    colour, moves = parse_colour(words.pop(0)), words.pop(0)
    depth = parse_integer(words.pop(0), 1, 10**9)
    return key, colour, {call.parse_vertex(move) for move in moves.split(",") if move}, depth


def _restriction(
    entries: Sequence[tuple[str, int, set[int], int]], num_actions: int
) -> Restriction | None:
    """Return the restriction that entries of `_take_restriction` make; None without any."""
    if len({key for key, *_ in entries}) > 1:
        raise CommandError("syntax error: allow and avoid exclude each other")
    restriction = Restriction.none(num_actions)
    for index, (key, colour, actions, depth) in enumerate(entries):
        if key == "avoid":
            restriction = restriction.avoiding(colour, actions, depth)
        elif colour in (other for _, other, *_ in entries[:index]):
            raise CommandError("syntax error: allow is given twice")
        else:
            restriction = restriction.allowing(colour, actions, depth)
    return restriction if entries else None


Format = Callable[[Call, "Position", Analysis, AnalyzeOptions], str]


def format_lz(call: Call, position: Position, analysis: Analysis, options: AnalyzeOptions) -> str:
    """Return Leela Zero's line: integers, 10000 for one."""
    parts = []
    for order, info in enumerate(_reported(position, analysis, options)):
        shares = (win_rate(info.value), info.prior, win_rate(info.lcb))
        rate, prior, lcb = (round(10_000 * share) for share in shares)
        parts.append(
            f"info move {call.format_vertex(info.action)} visits {info.visits} winrate "
            f"{rate} prior {prior} lcb {lcb} order {order} pv {_pv(call, info)}"
        )
    return " ".join(parts)


def format_kata(call: Call, position: Position, analysis: Analysis, options: AnalyzeOptions) -> str:
    """Return KataGo's line: fractions, and where asked for the visits along the lines and the
    root's own figures."""
    parts, reported = [], _reported(position, analysis, options)
    points = call.game.session.estimate_points(position, [info.action for info in reported])
    for order, info in enumerate(reported):
        parts.append(
            f"info move {call.format_vertex(info.action)} visits {info.visits} utility "
            f"{_text(info.value)} winrate {_text(win_rate(info.value))} "
            f"{_score(points, order + 1)}"
            f"prior {_text(info.prior)} lcb {_text(win_rate(info.lcb))} utilityLcb "
            f"{_text(info.lcb)} order {order} pv {_pv(call, info)}"
        )
        if points is not None and "movesOwnership" in options.shown:
            parts.append(f"movesOwnership {_owners(points[order + 1])}")
        # In a tree each position has one way to it, so that its visits and those of the move to it
        # are the same.
        visits = " ".join(map(str, info.line_visits[: call.settings.pv_length]))
        names = sorted(options.shown & {"pvVisits", "pvEdgeVisits"}, reverse=True)
        parts += [f"{name} {visits}" for name in names]
    if "rootInfo" in options.shown:
        raw = _text(win_rate(analysis.raw_value))
        parts.append(
            f"rootInfo visits {analysis.visits} utility {_text(analysis.value)} winrate "
            f"{_text(win_rate(analysis.value))} {_score(points, 0)}rawWinrate {raw}"
        )
    if points is not None and "ownership" in options.shown:
        parts.append(f"ownership {_owners(points[0])}")
    return " ".join(parts)


def _score(points: list[PointsEstimate] | None, index: int) -> str:
    """Return KataGo's score fields; nothing without a score head."""
    if points is None:
        return ""
    lead, stdev = _text(points[index].lead), _text(points[index].stdev)
    return f"scoreMean {lead} scoreStdev {stdev} scoreLead {lead} scoreSelfplay {lead} "


def _owners(estimate: PointsEstimate) -> str:
    return " ".join(f"{owner:.6f}" for owner in estimate.ownership)


def _reported(position: Position, analysis: Analysis, options: AnalyzeOptions) -> list[MoveInfo]:
    moves = list(analysis.moves)
    if len(moves) < options.fewest:
        restriction = options.restriction
        left = position.legal if restriction is None else restriction.first_moves(position)
        rest = [info for info in unvisited_moves(position, analysis) if left[info.action]]
        moves += rest[: options.fewest - len(moves)]
    return moves[: options.most]


def _pv(call: Call, info: MoveInfo) -> str:
    return " ".join(call.format_vertex(action) for action in info.line[: call.settings.pv_length])


def _text(value: float) -> str:
    return f"{value:.6g}" if "." in f"{value:.6g}" or "e" in f"{value:.6g}" else f"{value:.1f}"


def _analyze(format_line: Format, plays: bool = False) -> Command:
    """Make an analysis command: it reports until input comes, or with `plays` while it chooses a
    move, which it then plays; no input interrupts that."""

    def command(call: Call) -> str | None:
        options = parse_options(call)
        position, restriction = call.game.with_turn(options.colour), options.restriction
        if restriction is not None and not restriction.first_moves(position).any():
            raise CommandError("no legal move to analyse")
        if plays:
            # An error can only be told before the answer begins.
            call.settings.limits(options.colour, len(call.game.moves), call.game.board.size)
        call.reply.begin()

        def report(analysis: Analysis) -> None:
            if line := format_line(call, position, analysis, options):
                call.reply.send(line)

        reports = ThinkOptions(
            on_progress=report, progress_seconds=options.seconds, restriction=restriction
        )
        if plays:
            choice = choose_move(call.game, call.settings, options.colour, reports)
            return f"play {finish_move(call, options.colour, choice)}"
        call.game.session.think(position, Limits(), reports, is_endless=True)
        return None

    return command


def raw_network(call: Call) -> str:
    """kata-raw-nn SYMMETRY: 0 to 7, or all. Scores and ownership are means over all symmetries."""
    call.need(1, "a symmetry (0 to 7, or all)")
    count = call.game.position.game.num_symmetries
    which = range(count) if call.words[0] == "all" else [call.integer(0, 0, count - 1)]
    return "\n".join(_raw_network(call, symmetry) for symmetry in which)


def _raw_network(call: Call, symmetry: int) -> str:
    position = call.game.with_turn(call.game.position.to_play)
    policy, value = call.game.session.evaluate(position, symmetry)
    white = win_rate(value if position.to_play else -value)
    points = call.game.session.estimate_points(position)
    scores, owners = [], []
    if points is not None:
        estimate = points[0] if position.to_play else points[0].for_opponent()
        scores = [
            f"whiteLead {estimate.lead:.6f}",
            f"whiteScoreSelfplay {estimate.lead:.6f}",
            f"whiteScoreSelfplaySq {estimate.lead**2 + estimate.stdev**2:.6f}",
        ]
        rows = _board_rows(call, [f"{owner:.6f}" for owner in estimate.ownership])
        owners = ["whiteOwnership", *rows]
    shown = [
        f"{share:.6f}" if legal else "NAN"
        for share, legal in zip(policy, position.legal, strict=True)
    ]
    lines = [
        f"symmetry {symmetry}",
        f"whiteWin {white:.6f}",
        f"whiteLoss {1 - white:.6f}",
        "noResult 0.000000",
        *scores,
        "policy",
        *_board_rows(call, shown[:-1]),
        f"policyPass {shown[-1]}",
        *owners,
    ]
    return "\n".join(lines)


def heatmap(call: Call) -> str:
    """heatmap [SYMMETRY | average] (Leela Zero): the network's policy in thousandths, and its value
    for the side to move."""
    word = call.words[0] if call.words else "average"
    most = call.game.position.game.num_symmetries - 1
    symmetry = None if word in ("average", "all") else parse_integer(word, 0, most)
    position = call.game.with_turn(call.game.position.to_play)
    policy, value = call.game.session.evaluate(position, symmetry)
    thousandths = [math.floor(1000 * float(share) + 0.5) for share in policy]
    rows = _board_rows(call, [f"{number:4d}" for number in thousandths[:-1]])
    return "\n".join(["", *rows, f"pass: {thousandths[-1]}", f"winrate: {win_rate(value):.6f}"])


def _board_rows(call: Call, shown: Sequence[str]) -> list[str]:
    """Return the rows of the board, from a text for each point, row by row."""
    width = call.game.shape[1]
    return [" ".join(shown[start : start + width]) for start in range(0, len(shown), width)]


def gogui_commands(call: Call) -> str:
    """gogui-analyze_commands: what GoGui can show in its menus."""
    return """\
string/Final Score/final_score
plist/Dead Stones/final_status_list dead
plist/Stones in Seki/final_status_list seki
plist/Black Territory/final_status_list black_territory
plist/White Territory/final_status_list white_territory
hstring/Policy/heatmap
hstring/Raw Network/kata-raw-nn 0
none/Clear Cache/clear_cache"""


COMMANDS: dict[str, Command] = {
    "lz-analyze": _analyze(format_lz),
    "kata-analyze": _analyze(format_kata),
    "analyze": _analyze(format_kata),
    "lz-genmove_analyze": _analyze(format_lz, plays=True),
    "kata-genmove_analyze": _analyze(format_kata, plays=True),
    "genmove_analyze": _analyze(format_kata, plays=True),
    "kata-raw-nn": raw_network,
    "heatmap": heatmap,
    "gogui-analyze_commands": gogui_commands,
}
