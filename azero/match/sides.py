"""The two players of a match, and the rules that both can play."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from azero.checkpoint import CheckpointError, export_network, find_checkpoint
from azero.checkpoint.exported import exported_path
from azero.games.go.settings import GoConfig
from azero.games.position import Position
from azero.games.settings import GameConfig
from azero.games.shogi.settings import ShogiConfig
from azero.match.request import MatchRequest
from azero.players.alphago2016 import ApvSpec
from azero.players.play_style import PlayStyle
from azero.players.player import MakePlayer
from azero.players.program import find_program
from azero.players.program_specs import (
    GnuShogiSpec,
    ProgramSpec,
    UciSpec,
    long_name,
    program_maker,
)
from azero.players.random_moves import RandomMovesSpec
from azero.players.searches import (
    ENGINE,
    TRAINED,
    check_time_constants,
    match_settings,
    with_symmetries,
)
from azero.players.specs import (
    CheckpointSpec,
    NetworkSpec,
    ThinkerSettings,
    ThinkerSpec,
    load_thinker,
    parse_player,
    resolve,
    with_search,
)
from azero.players.thinking import Limits, check_same_board, describe_board
from azero.players.uci_go import OWN_MOVES
from azero.search.settings import PuctConfig
from azero.search.single.selection import ENGINE as ENGINE_RULE
from azero.settings import Config


@dataclass(frozen=True)
class Side:
    """A player of the match."""

    text: str
    spec: ThinkerSpec | ProgramSpec
    config: Config | None
    """Settings of one of our players; None for a program."""
    name: str

    @property
    def facts(self) -> dict[str, Any]:
        """Its entry in match.json."""
        facts: dict[str, Any] = {
            "name": self.name,
            "player": self.text,
            "iteration": self.spec.iteration if isinstance(self.spec, CheckpointSpec) else None,
        }
        if isinstance(self.spec, ApvSpec):
            facts["iterations"] = dict(self.spec.iterations)
        if not isinstance(self.spec, NetworkSpec):
            return facts
        facts |= {
            "visits": self.spec.visits,
            "search": self.spec.search if self.spec.visits else None,
        }
        if facts["search"] == ENGINE:
            facts["pb_c_init"] = dict(self.spec.constants).get("pb_c_init", ENGINE_RULE.c_init)
        return facts


def plays_at_once(sides: Sequence[Side], plays_singly: bool) -> bool:
    """Whether the games are batched: two networks with the searches of their runs, or random moves,
    from the start of the game, without clock, handicap or resignation."""
    return not plays_singly and all(
        isinstance(side.spec, RandomMovesSpec)
        or (isinstance(side.spec, NetworkSpec) and side.spec.search != ENGINE)
        for side in sides
    )


def read_sides(
    request: MatchRequest, known: Mapping[str, dict[str, Any]] = MappingProxyType({})
) -> tuple[Side, ...]:
    """Return both players, with distinct names. The settings of one whose checkpoint is gone are
    those of the copy that a match keeps; `known` has the players of matches (`read_players`).

    Raises:
      ValueError: a player cannot be parsed, or none can resign as the request says.
      CheckpointError: a checkpoint cannot be read.
    """
    texts, wanted = (request.first, request.second), (request.first_name, request.second_name)
    specs: list[ThinkerSpec | ProgramSpec] = []
    configs: list[Config | None] = []
    for text in texts:
        spec = parse_player(text)
        if isinstance(spec, ThinkerSpec):
            resolved, config = _resolve(spec, known.get(text))
            resolved = with_search(resolved, config, TRAINED)
            if isinstance(resolved, NetworkSpec):
                check_time_constants(text, resolved.constants, request.clock)
            is_open = isinstance(resolved, NetworkSpec) and resolved.visits is None
            if is_open and not request.clock.is_set:
                visits = match_settings(config).num_simulations
                resolved = dataclasses.replace(resolved, visits=visits)
            specs, configs = [*specs, resolved], [*configs, config]
        else:
            find_program(spec.command[0])
            if isinstance(spec, UciSpec) and request.clock.is_set:
                spec = spec.by_clock()
            specs, configs = [*specs, spec], [*configs, None]
    if request.resign is not None and all(config is None for config in configs):
        raise ValueError("resign is for networks, and both players are programs")
    if request.resign_score is not None and not any(isinstance(s, UciSpec) for s in specs):
        raise ValueError("resign-score is for programs that speak UCI or USI, and no player does")
    names = [name or spec.name for name, spec in zip(wanted, specs, strict=True)]
    if names[0] == names[1]:
        names = [
            name or (spec.name if isinstance(spec, ThinkerSpec) else long_name(spec))
            for name, spec in zip(wanted, specs, strict=True)
        ]
    if names[0] == names[1]:
        names[1] += " (2)"
    if request.handicap is not None and request.second_name is None:
        names[1] += f", {request.handicap} free moves"
    return tuple(Side(*side) for side in zip(texts, specs, configs, names, strict=True))


def _resolve(spec: ThinkerSpec, facts: dict[str, Any] | None) -> tuple[ThinkerSpec, Config]:
    """Return what `resolve` does, by the copy of a match where the run has no such checkpoint."""
    try:
        return resolve(spec)
    except ValueError:
        copy = _copy(facts)
        if not isinstance(spec, CheckpointSpec) or copy is None:
            raise
        found, config = find_checkpoint(copy, spec.iteration)
        return dataclasses.replace(spec, iteration=found), with_symmetries(config, spec.symmetries)


def _copy(facts: dict[str, Any] | None) -> Path | None:
    """Return the directory with the copy of a player's network; None without."""
    copy: Path | None = (facts or {}).get("copy")
    return copy if copy is not None and exported_path(copy).exists() else None


def with_checkpoint(side: Side, facts: dict[str, Any] | None) -> Side:
    """Return the player with the checkpoint that match.json of another match says, if any."""
    if facts is None or not isinstance(side.spec, CheckpointSpec | ApvSpec):
        return side
    spec = _of_checkpoint(side.spec, facts)
    name = side.name if side.name != side.spec.name else spec.name
    copy = _copy(facts)
    if isinstance(spec, CheckpointSpec) and copy is not None:
        spec = dataclasses.replace(spec, workdir=copy)
    return dataclasses.replace(side, spec=spec, name=name)


def restore_side(side: Side, facts: dict[str, Any], was_at_once: bool) -> Side:
    """Return the player as when the match began, with the checkpoint that was the newest then.

    Matches of earlier versions do not record their search. It was the run's in batched games
    (`was_at_once`), otherwise the engine's, which had AlphaZero's exploration.
    """
    if isinstance(side.spec, CheckpointSpec | ApvSpec):
        side = dataclasses.replace(side, spec=_of_checkpoint(side.spec, facts))
    if not isinstance(side.spec, NetworkSpec):
        return side
    spec = side.spec
    if not was_at_once and "search" not in facts:
        spec = dataclasses.replace(spec, search=ENGINE)
    if spec.search == ENGINE and "pb_c_init" not in facts:
        former = (("pb_c_init", PuctConfig.pb_c_init), *spec.constants)
        spec = dataclasses.replace(spec, constants=tuple(dict(former).items()))
    return dataclasses.replace(side, spec=spec, name=facts["name"])


def keep_network(side: Side, directory: Path) -> Side:
    """Return the player with a copy of its network in `directory`, if its run may delete the
    checkpoint before the match ends.

    Raises:
      CheckpointError: the checkpoint has been deleted, and there is no copy.
    """
    spec, config = side.spec, side.config
    if not isinstance(spec, CheckpointSpec) or spec.iteration is None or config is None:
        return side
    every = config.checkpoint.keep_every
    is_kept = spec.iteration >= config.run.iterations or (every and spec.iteration % every == 0)
    if is_kept or exported_path(spec.workdir).exists():
        return side
    try:
        export_network(spec.workdir, directory, spec.iteration)
    except CheckpointError:
        if not exported_path(directory).exists():
            raise
    return dataclasses.replace(side, spec=dataclasses.replace(spec, workdir=directory))


def _of_checkpoint(
    spec: CheckpointSpec | ApvSpec, facts: dict[str, Any]
) -> CheckpointSpec | ApvSpec:
    """Return the player with the checkpoints that its entry in match.json says; matches of earlier
    versions do not record those of AlphaGo of 2016."""
    if isinstance(spec, CheckpointSpec):
        return dataclasses.replace(spec, iteration=facts["iteration"])
    return dataclasses.replace(spec, iterations=tuple(facts.get("iterations", {}).items()))


def match_rules(request: MatchRequest, sides: Sequence[Side]) -> GameConfig:
    """Return the rules of the match.

    Raises:
      ValueError: a player plays something else.
    """
    games = (side.config.game.for_matches() for side in sides if side.config is not None)
    trained = next(games, None)
    programs = [side.spec.game for side in sides if not isinstance(side.spec, ThinkerSpec)]
    name = request.game or (programs[0] if trained is None else trained.name)
    is_trained = trained is not None and trained.name == name
    rules: GameConfig = trained if is_trained and trained else GameConfig.default(name)
    if isinstance(rules, GoConfig):
        rules = _go_rules(request, rules)
    else:
        for setting in ("size", "komi", "suicide", "handicap"):
            if getattr(request, setting) is not None:
                raise ValueError(f"{setting} is a setting of Go, not {name}")
    if request.entering_king is not None:
        if not isinstance(rules, ShogiConfig):
            raise ValueError(f"entering-king is a setting of shogi, not {name}")
        rules = rules.replace(entering_king=request.entering_king)
    if request.max_moves is not None:
        if not hasattr(rules, "max_moves"):
            raise ValueError(f"max-moves is not a setting of {name}")
        rules = rules.replace(max_moves=request.max_moves)
    board = rules.build()
    for side in sides:
        if isinstance(side.spec, ThinkerSpec):
            assert side.config is not None
            known = side.config.game.build()
            check_same_board(side.name, known, board, side.config.network.FITS_ANY_BOARD)
        elif side.spec.game != board.name or (
            board.name == "go" and len(set(board.board_shape)) != 1
        ):
            plays = "Go on a square board" if side.spec.game == "go" else side.spec.game
            raise ValueError(f"{side.name} plays {plays}, not {describe_board(board)}")
    return rules


def describe_rules(rules: GameConfig) -> str:
    """Return the rules of the match as one line."""
    board = rules.build()
    words = [describe_board(board)]
    if isinstance(rules, GoConfig):
        repetition = "simple ko" if rules.superko == "simple" else f"{rules.superko} superko"
        words += [
            f"area scoring, komi {rules.komi:g}",
            repetition,
            "suicide" if rules.suicide else "no suicide",
        ]
    if isinstance(rules, ShogiConfig):
        with_rule = "with an entering-king rule (27 points)"
        words.append(with_rule if rules.entering_king else "without an entering-king rule")
    return ", ".join([*words, f"at most {board.max_moves} moves"])


def _go_rules(request: MatchRequest, trained: GoConfig) -> GoConfig:
    wanted = {"komi": request.komi, "suicide": request.suicide}
    changes: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    if request.size is not None:
        changes["size"] = (request.size,)
        if (request.size,) != trained.size:
            changes["max_moves"] = None
    return dataclasses.replace(trained, **changes)


def check_start_positions(sides: Sequence[Side]) -> None:
    """Check that every player can start from a given position.

    Raises:
      ValueError: one cannot; it is named.
    """
    for side in sides:
        if isinstance(side.spec, GnuShogiSpec):
            raise ValueError(
                f"{side.name} can only start from the game's own start position; start-positions "
                "are for networks and programs that speak UCI or USI"
            )


def _style(request: MatchRequest, rules: GameConfig) -> PlayStyle:
    """Return how networks play in a match."""
    style = PlayStyle(temperature_moves=request.temperature_moves)
    if request.resign is not None:
        threshold = 2.0 * request.resign - 1.0
        style = dataclasses.replace(style, resign_threshold=threshold, resign_moves=1)
    if request.clock.is_set:
        own_moves = None if isinstance(rules, GoConfig) else OWN_MOVES
        style = dataclasses.replace(style, limits=Limits(), own_moves=own_moves)
    return style


def player_maker(
    side: Side, request: MatchRequest, rules: GameConfig, worker: int, num_known: int = 0
) -> MakePlayer:
    """Return the factory of the side's players in one thread; a network is loaded once and does not
    share its tree. Every worker draws random numbers of its own, and a match that continues after
    `num_known` games others than at its start, so that it does not repeat those games."""
    if not isinstance(side.spec, ThinkerSpec):
        return program_maker(
            side.spec,
            side.name,
            rules,
            request.timeout,
            request.seed,
            request.clock.clock() if request.clock.is_set else None,
            request.resign_score,
        )
    seed = request.seed
    if worker or num_known:
        seed = int(np.random.default_rng([seed, worker, num_known]).integers(2**31))
    settings = ThinkerSettings(style=_style(request, rules), seed=seed, clock=request.clock)
    player = load_thinker(side.spec, rules, settings)
    player.name = side.name
    player.warm_up(Position.start(rules.build()))
    return lambda number: player
