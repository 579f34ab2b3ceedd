"""The games of a match as standard records, with the players' values and variations: SGF for Go,
PGN for chess, CSA for shogi."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar, cast

from azero.games.chess.pgn import RESULTS, format_pgn
from azero.games.chess.text import START as CHESS_START
from azero.games.chess.text import ChessBoard, board_of_fen, format_san
from azero.games.diagrams import parse_stones
from azero.games.game import Game
from azero.games.go.rules import Go
from azero.games.go.sgf import GameRecord
from azero.games.go.sgf_write import format_game, format_result, rules_name
from azero.games.go.text import format_vertex
from azero.games.notes import Note
from azero.games.shogi import entering
from azero.games.shogi.csa import format_csa, foul, resignation
from azero.games.shogi.csa import format_move as format_csa_move
from azero.games.shogi.rules import Shogi
from azero.games.shogi.sfen import START as SHOGI_START
from azero.games.shogi.text import ShogiBoard, board_of_sfen
from azero.match.games import MatchGame
from azero.match.referee import ON_TIME, PLAYED_OUT
from azero.players.clock import NO_CLOCK, TimeControl
from azero.players.player import ILLEGAL, Decision

LINE_MOVES = 8
"""Moves of a principal variation that are written in chess and shogi: naming a move plays it in the
slow host rules."""
_AnyBoard = TypeVar("_AnyBoard", ChessBoard, ShogiBoard)


class Occasion(NamedTuple):
    """Where, when and how a game was played."""

    control: TimeControl = NO_CLOCK
    event: str = "azero match"
    date: str = ""
    """YYYY-MM-DD, empty for none."""


def match_sgf(game: MatchGame, rules: Game, names: tuple[str, str], occasion: Occasion) -> str:
    """Return a game of Go as SGF text; `names` are those of the match's first and second player."""
    go = cast(Go, rules)
    lines = [
        [format_vertex(action, go.board_shape) for action in decision.line]
        for decision in game.decisions
    ]
    notes = [Note(comment) for comment in _comments(game, lines, "\n")]
    black, white, to_play = parse_stones(game.start)
    record = GameRecord(
        name=f"game {game.number}",
        board_shape=go.board_shape,
        komi=go.komi,
        moves=tuple((ply % 2, action) for ply, action in enumerate(game.actions, to_play)),
        black_points=black,
        white_points=white,
        to_play=to_play,
        result=format_result(game.rewards, _reason(game)),
        rules=rules_name(go.superko, go.suicide),
        players=names if game.first_is_black else (names[1], names[0]),
        date=occasion.date,
        others=(("EV", occasion.event), *_sgf_clock(occasion.control).items()),
    )
    return format_game(record, notes)


def _sgf_clock(control: TimeControl) -> dict[str, str]:
    """Return the properties TM and OT (SGF FF[4], game info properties) of timed games."""
    if not control.is_set:
        return {}
    clock = control.clock()
    if clock.seconds_per_move is not None:
        overtime = f"1x{clock.seconds_per_move:g} byo-yomi"
    elif clock.periods:
        overtime = f"{clock.periods}x{clock.period_seconds:g} byo-yomi"
    else:
        overtime = f"{clock.increment_seconds:g} fischer" if clock.increment_seconds else ""
    return {"TM": f"{clock.main_seconds or 0:g}", "OT": overtime}


def format_decision(decision: Decision, line: Sequence[str], separator: str) -> str:
    """Return a player's decision as text: the value for itself in [-1, 1], the visits, the line it
    expects; empty if it gives none of these."""
    parts = [] if decision.value is None else [f"value {decision.value:+.3f}"]
    parts += [] if decision.visits is None else [f"visits {decision.visits}"]
    parts += ["line " + " ".join(line)] if line else []
    return separator.join(parts)


def _comments(game: MatchGame, lines: Sequence[Sequence[str]], separator: str) -> list[str]:
    """Return the comment of each move: none in the opening, then its player's thinking; at the last
    one also how the game ended.

    `lines` are the expected lines of the decisions, as names of moves.
    """
    comments = [""] * game.num_opening_moves
    comments += [
        format_decision(decision, line, separator)
        for decision, line in zip(game.decisions, lines, strict=True)
    ]
    if comments:
        words = (comments[-1], "" if game.ending == PLAYED_OUT else game.ending, *game.score_notes)
        comments[-1] = separator.join(word for word in words if word)
    return comments


def _lines(
    game: MatchGame, board: _AnyBoard, format_move: Callable[[_AnyBoard, int], str]
) -> list[list[str]]:
    """Return the beginnings of the lines that the players expected, as names of moves; `board` is
    where the game began."""
    for action in game.actions[: game.num_opening_moves]:
        board = board.after(action)
    lines = []
    for decision in game.decisions:
        ahead, names = board, []
        for action in decision.line[:LINE_MOVES]:
            names.append(format_move(ahead, action))
            ahead = ahead.after(action)
        lines.append(names)
        board = board.after(decision.action)
    return lines


def _reason(game: MatchGame) -> str:
    if game.failed:
        return "T" if game.failure.startswith(ON_TIME) else "F"
    if game.ending != PLAYED_OUT:
        return "R"
    return "" if game.margin is None else f"{abs(game.margin):g}"


def match_pgn(game: MatchGame, rules: Game, names: tuple[str, str], occasion: Occasion) -> str:
    """Return a game of chess as PGN text; `names` are those of the match's first and second
    player."""
    white, black = names if game.first_is_black else names[::-1]
    tags = {
        "Event": occasion.event,
        "Date": occasion.date.replace("-", ".") or "????.??.??",
        "Round": str(game.number),
        "White": white,
        "Black": black,
    }
    tags |= {"PlyCount": str(len(game.actions)), "Termination": _termination(game, rules)}
    tags["TimeControl"] = _pgn_clock(occasion.control)
    first, second = game.rewards
    fen = game.start or CHESS_START
    comments = _comments(game, _lines(game, board_of_fen(fen), format_san), ", ")
    notes = [Note(comment) for comment in comments]
    return format_pgn(game.actions, tags, RESULTS[int(first), int(second)], fen, notes)


def _pgn_clock(control: TimeControl) -> str:
    """Return a time control in the words of the PGN standard, section 9.6.1; the number of periods
    has none."""
    clock = control.clock()
    parts = []
    if clock.main_seconds is not None:
        increment = f"+{clock.increment_seconds:g}" if clock.increment_seconds else ""
        parts.append(f"{clock.main_seconds:g}{increment}")
    if each := clock.seconds_per_move or clock.period_seconds:
        parts.append(f"1/{each:g}")
    return ":".join(parts) or "-"


def _termination(game: MatchGame, rules: Game) -> str:
    """Return the reason in the words of the PGN standard, section 9.8.1; the limit of moves, which
    chess does not have, is an adjudication."""
    if not game.failed:
        is_cut = game.reward == 0 and len(game.actions) >= rules.max_moves
        return "adjudication" if is_cut else "normal"
    if game.failure.startswith(ON_TIME):
        return "time forfeit"
    return "rules infraction" if game.failure.startswith(ILLEGAL) else "abandoned"


def match_csa(game: MatchGame, rules: Game, names: tuple[str, str], occasion: Occasion) -> str:
    """Return a game of shogi as CSA text; `names` are those of the match's first and second
    player."""
    black, white = names if game.first_is_black else names[::-1]
    sfen = game.start or SHOGI_START
    comments = _comments(game, _lines(game, board_of_sfen(sfen), format_csa_move), ", ")
    facts = [("EVENT", occasion.event)]
    facts += [("START_TIME", occasion.date.replace("-", "/"))] if occasion.date else []
    facts += _csa_clock(occasion.control)
    return format_csa(game.actions, sfen, black, white, csa_ending(game, rules), comments, facts)


def _csa_clock(control: TimeControl) -> list[tuple[str, str]]:
    """Return the fact TIME_LIMIT (CSA 2.2), which has hours and minutes and the seconds of a
    period; nothing for a time control that it cannot name."""
    clock = control.clock()
    minutes, rest = divmod(clock.main_seconds or 0.0, 60)
    each = clock.seconds_per_move or clock.period_seconds
    if not control.is_set or rest or each % 1 or clock.increment_seconds:
        return []
    return [("TIME_LIMIT", f"{minutes // 60:02.0f}:{minutes % 60:02.0f}+{each:02.0f}")]


def csa_ending(game: MatchGame, rules: Game) -> str:
    """Return the special move that ends a game."""
    black_wins = game.rewards[0] > 0
    if game.failed:
        return "%TIME_UP" if game.failure.startswith(ON_TIME) else foul(black_wins)
    if game.ending != PLAYED_OUT:
        return resignation(game.start or SHOGI_START, len(game.actions), black_wins)
    if game.reward == 0:
        return "%MAX_MOVES" if len(game.actions) >= rules.max_moves else "%SENNICHITE"
    board: ShogiBoard = board_of_sfen(game.start or SHOGI_START)
    for action in game.actions:
        board = board.after(action)
    if not board.actions:
        return "%TSUMI"
    declared = entering.has_entered(
        board.position, board.frame[-1] * 0 + (0xFFFFFFFF if board.is_white else 0)
    )
    # The side that gave perpetual check loses by a fourfold repetition.
    return (
        "%KACHI"
        if isinstance(rules, Shogi) and rules.entering_king and declared[0] and not board.is_check
        else foul(black_wins)
    )


MatchRecord = Callable[[MatchGame, Game, tuple[str, str], Occasion], str]
"""Returns the text of a game, given the rules, the names of the match's first and second player,
and the occasion."""
RECORDS: dict[str, tuple[str, MatchRecord]] = {
    "go": (".sgf", match_sgf),
    "chess": (".pgn", match_pgn),
    "shogi": (".csa", match_csa),
}
"""By the name of the game: suffix and writer."""
