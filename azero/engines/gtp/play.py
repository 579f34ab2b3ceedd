"""GTP commands that play, search and score (sections 6.3.3, 6.3.4, 6.3.5): moves, clocks, the final
score; and the extensions of KataGo and KGS about rules and parameters."""

import numpy as np

from azero.engines.gtp.command import Call, Command, CommandError, parse_integer, parse_number
from azero.engines.limits import PARAMETERS
from azero.engines.moves import Choice, choose_move
from azero.games.go.rule_names import format_rules, parse_rules, with_rule
from azero.games.go.scoring.status import judge
from azero.games.go.text import format_score
from azero.players.clock import Clock
from azero.players.thinking import Restriction, ThinkOptions


def play(call: Call) -> None:
    """play COLOUR VERTEX."""
    colour, action = call.colour(), call.vertex(1)
    try:
        call.game.play(colour, action)
    except ValueError as error:
        raise CommandError("illegal move") from error
    call.settings.result = ""


def undo(call: Call) -> None:
    """undo: one move."""
    try:
        call.game.undo()
    except ValueError as error:
        raise CommandError("cannot undo") from error
    call.settings.take_back()


def genmove(call: Call) -> str:
    """genmove COLOUR: search, play a move and return it."""
    colour = call.colour() if call.words else call.game.position.to_play
    return finish_move(call, colour, choose_move(call.game, call.settings, colour))


def finish_move(call: Call, colour: int, choice: Choice) -> str:
    """Play the chosen move and return it as text, or return "resign"."""
    if choice.resigns:
        call.settings.result = "B+R" if colour else "W+R"
        return "resign"
    call.game.play(colour, choice.action)
    call.settings.result, call.settings.may_ponder = "", True
    return call.format_vertex(choice.action)


def reg_genmove(call: Call) -> str:
    """reg_genmove COLOUR: the move, which is not played; never a resignation."""
    choice = choose_move(call.game, call.settings, call.colour(), may_resign=False)
    return call.format_vertex(choice.action)


def genmove_cleanup(call: Call) -> str:
    """kgs-genmove_cleanup COLOUR: no pass while the opponent has dead stones on the board."""
    colour = call.colour()
    status = judge(call.game.board)
    others_dead = status.dead & (call.game.board == (1 if colour else -1))
    position = call.game.with_turn(colour)
    points = np.flatnonzero(position.legal[:-1]).tolist()
    options = ThinkOptions()
    if others_dead.any() and points:
        allowed = Restriction.first_move(points, colour, position.legal.size)
        options = ThinkOptions(restriction=allowed)
    choice = choose_move(call.game, call.settings, colour, options)
    return finish_move(call, colour, choice)


def final_score(call: Call) -> str:
    """final_score: by area, dead stones removed."""
    return format_score(judge(call.game.board).margin - call.game.effective_komi)


def final_status_list(call: Call) -> str:
    """final_status_list STATUS: the chains that are alive, dead or in seki, one per line; or the
    points of black_territory or white_territory."""
    call.need(1, "a status")
    which = call.words[0]
    status = judge(call.game.board)
    width = call.game.shape[1]
    if which in ("black_territory", "white_territory"):
        owner = 1 if which.startswith("black") else -1
        empty = np.where(status.dead, 0, status.board) == 0
        points = np.flatnonzero(((status.area == owner) & empty).reshape(-1)).tolist()
        return " ".join(map(call.format_vertex, points))
    if which not in ("alive", "dead", "seki"):
        raise CommandError(
            "syntax error: the statuses are alive, dead, seki, black_territory, white_territory"
        )
    return "\n".join(
        " ".join(call.format_vertex(row * width + column) for row, column in chain)
        for chain in status.chains(which)
    )


def is_legal(call: Call) -> str:
    """is_legal COLOUR VERTEX (GNU Go): 1 or 0."""
    colour, action = call.colour(), call.vertex(1)
    return str(int(call.game.with_turn(colour).legal[action]))


def all_legal(call: Call) -> str:
    """all_legal COLOUR (GNU Go): the points."""
    position = call.game.with_turn(call.colour())
    return " ".join(map(call.format_vertex, np.flatnonzero(position.legal[:-1]).tolist()))


def time_settings(call: Call) -> None:
    """time_settings MAIN_TIME BYO_YOMI_TIME BYO_YOMI_STONES: seconds; Canadian byo-yomi, absolute
    time, or no limits (section 4.2)."""
    call.need(3, "main time, byo-yomi time and stones")
    main, period = _seconds(call.words[0]), _seconds(call.words[1])
    stones = parse_integer(call.words[2], 0, 10**9)
    moves = stones if period > 0 else 0
    clock = Clock(main_seconds=main, period_seconds=period, period_moves=moves)
    # A period of some time without stones is how the protocol writes "no limits".
    call.settings.set_time(None if period > 0 and stones == 0 else clock)


def kata_time_settings(call: Call) -> None:
    """kgs-time_settings and kata-time_settings KIND ...: none, absolute, canadian, byoyomi,
    fischer, fischer-capped."""
    call.need(1, "a time system")
    kind, words = call.words[0].lower().replace("byo-yomi", "byoyomi"), call.words[1:]
    if kind not in TIME_KINDS:
        raise CommandError(
            f"syntax error: unknown time system {kind[:20]!r}; known are {' '.join(TIME_KINDS)}"
        )
    if len(words) != TIME_KINDS[kind]:
        raise CommandError(f"syntax error: {kind} takes {TIME_KINDS[kind]} numbers")
    caps = [parse_number(word) for word in words[2:]] if kind == "fischer-capped" else [-1.0]
    call.settings.set_time(_clock(kind, words), caps[-1] if caps[-1] >= 0 else None)


TIME_KINDS = {
    "none": 0,
    "absolute": 1,
    "byoyomi": 3,
    "canadian": 3,
    "fischer": 2,
    "fischer-capped": 4,
}
"""Time systems, and how many numbers each takes."""


def _clock(kind: str, words: list[str]) -> Clock | None:
    """Return the clock of a time system with its numbers, at the start of a game. (The controller
    applies the cap on a Fischer clock's main time.)"""
    if kind == "none":
        return None
    main = _seconds(words[0])
    if kind == "absolute":
        return Clock(main_seconds=main)
    second = _seconds(words[1])
    if kind.startswith("fischer"):
        return Clock(main_seconds=main, increment_seconds=second)
    count = parse_integer(words[2], 1, 10**9)
    if kind == "canadian":
        return Clock(main_seconds=main, period_seconds=second, period_moves=count)
    return Clock(main_seconds=main, period_seconds=second, periods=count)


def time_left(call: Call) -> None:
    """time_left COLOUR SECONDS STONES: in byo-yomi STONES counts stones (Canadian) or periods
    (Japanese, as KGS has it); 0 is main time."""
    colour = call.colour()
    call.need(3, "a colour, seconds and stones")
    seconds, stones = parse_number(call.words[1]), parse_integer(call.words[2], 0, 10**9)
    call.settings.set_time_left(colour, max(0.0, seconds), stones)


def _seconds(word: str) -> float:
    value = parse_number(word)
    if value < 0:
        raise CommandError(f"syntax error: {word[:20]!r} is not a time")
    return value


def stop(call: Call) -> None:
    """stop (KataGo): end pondering, until the next move of the engine."""
    call.settings.may_ponder = False


def set_rules(call: Call) -> None:
    """kata-set-rules RULES: a shorthand or JSON; the position stays."""
    call.need(1, "rules")
    call.game.set_rules(parse_rules(" ".join(call.words), call.game.rules))


def set_rule(call: Call) -> None:
    """kata-set-rule RULE VALUE."""
    call.need(2, "a rule and its value")
    call.game.set_rules(with_rule(call.game.rules, call.words[0], call.words[1]))


def kgs_rules(call: Call) -> None:
    """kgs-rules RULES: chinese is KGS's, with positional superko."""
    call.need(1, "rules")
    name = "chinese-kgs" if call.words[0].lower() == "chinese" else call.words[0]
    call.game.set_rules(parse_rules(name, call.game.rules))


def get_param(call: Call) -> str:
    """kata-get-param NAME."""
    call.need(1, "a parameter")
    return call.settings.get_param(call.words[0])


def set_param(call: Call) -> None:
    """kata-set-param NAME VALUE."""
    call.need(2, "a parameter and its value")
    call.settings.set_param(call.words[0], call.words[1])


def clear_cache(call: Call) -> None:
    """clear_cache (Leela Zero, KataGo): clear the search tree."""
    call.game.session.clear_tree()


COMMANDS: dict[str, Command] = {
    "play": play,
    "undo": undo,
    "genmove": genmove,
    "reg_genmove": reg_genmove,
    "kgs-genmove_cleanup": genmove_cleanup,
    "is_legal": is_legal,
    "all_legal": all_legal,
    "time_settings": time_settings,
    "kgs-time_settings": kata_time_settings,
    "kata-time_settings": kata_time_settings,
    "kata-list_time_settings": lambda call: " ".join(TIME_KINDS),
    "time_left": time_left,
    "final_score": final_score,
    "final_status_list": final_status_list,
    "stop": stop,
    "cputime": lambda call: f"{call.settings.thinking_seconds:.3f}",
    "gomill-cpu_time": lambda call: f"{call.settings.thinking_seconds:.3f}",
    "kata-get-rules": lambda call: format_rules(call.game.rules),
    "kata-set-rules": set_rules,
    "kata-set-rule": set_rule,
    "kgs-rules": kgs_rules,
    "kata-get-param": get_param,
    "kata-set-param": set_param,
    "kata-list-params": lambda call: " ".join(PARAMETERS),
    "clear_cache": clear_cache,
}
