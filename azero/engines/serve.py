"""Networks served over protocols: what `azero gtp`, `azero analysis`, `azero uci`, `azero usi` and
`azero play` load; an engine's first answers do not wait for loading."""

import dataclasses
import math
import sys
from collections.abc import Callable
from typing import NamedTuple

from azero.console.standard_output import say
from azero.console.terminal import make_console
from azero.engines.background import StartError
from azero.engines.go_game import MOVES_PER_POINT, GoGame, set_up
from azero.engines.limits import Settings
from azero.engines.pieces_game import PiecesGame
from azero.engines.session import Session
from azero.engines.source import DEFAULTS, Source
from azero.engines.terminal.terminal import Terminal
from azero.games.game import Game
from azero.games.go import setup
from azero.games.go.rule_names import Rules
from azero.games.go.rules import Go
from azero.games.go.settings import GoConfig
from azero.games.settings import GameConfig, PiecesConfig
from azero.games.table import make, side_names
from azero.interop.pgx_game import PgxGame
from azero.models.naming import PROTOCOL_GAMES
from azero.models.registry import read_network
from azero.players.random_moves import RandomMovesSpec
from azero.players.searches import ENGINE
from azero.players.specs import NetworkSpec, ThinkerSpec, load_thinker, settings_of
from azero.players.thinking import Limits, check_same_board, describe_board

MAX_MOVES = 4096
"""Longest game of chess, shogi and their variants that an engine plays: the most that the rules of
shogi can store."""
_ENGINES = {"go": "gtp"} | {game: protocol for protocol, game in PROTOCOL_GAMES.items()}


def chosen_player(source: Source, game: str) -> ThinkerSpec:
    """Return the player that `source` names, or the default for `game`, which is then printed on
    standard error.

    Raises:
      ValueError: there is no such player.
    """
    spec = source.spec(game)
    if source.is_default:
        say(f"azero: no player is named: {read_network(DEFAULTS[game]).summary} plays")
    return spec


def load_go(
    source: Source, settings: Settings, is_interrupted: Callable[[], bool]
) -> tuple[ThinkerSpec, GoGame]:
    """Return a player and a game of Go on its board, komi and rules, and begin to load and compile
    it. The visits of its name go into `settings`.

    Raises:
      CheckpointError, ValueError, OSError: there is no such player, or it plays another game.
    """
    spec = chosen_player(source, "go")
    settings.visits = _visits(spec, settings.visits)
    config = settings_of(spec)
    board = config.game.build()
    if not isinstance(board, Go):
        raise _wrong_game(spec, board, "this protocol is for Go")
    _say_loading(spec)
    rules = Rules(board.superko, board.suicide)
    game = GoGame(
        lambda game: load_thinker(spec, rules_of(game)),
        board.board_shape,
        komi=board.komi,
        rules=rules,
        any_shape=config.network.FITS_ANY_BOARD,
        is_interrupted=is_interrupted,
    )
    game.begin_to_prepare()
    return spec, game


def load_pieces_game(protocol: str, source: Source, visits: int | None) -> PiecesGame:
    """Return a game of chess or shogi, as `protocol` says, with a player whose network is being
    loaded and compiled.

    Raises:
      CheckpointError, ValueError, OSError: there is no such player, or it plays another game.
    """
    wanted = PROTOCOL_GAMES[protocol]
    spec = chosen_player(source, wanted)
    _visits(spec, visits)
    config = settings_of(spec).game
    if config.name != wanted:
        raise _wrong_game(spec, config.build(), f"{protocol} is for {wanted}")
    _say_loading(spec)
    # The papers' 512 moves end games of self-play, not a game with people.
    game = PiecesGame(
        make(config.name, max_moves=MAX_MOVES), lambda game: load_thinker(spec, rules_of(game))
    )
    game.begin_to_prepare()
    return game


def play_in_terminal(
    source: Source,
    visits: int,
    colour: str,
    komi: float | None,
    size: int | None,
    handicap: int | None,
) -> None:
    """Play a game against a network in the terminal; the arguments are those of
    `load_human_game`."""
    console = make_console()
    with console.status("loading ..."):
        game = load_human_game(source, visits, colour, komi, size, handicap)
    Terminal(game.session, game.limits, console, human=game.human).run(
        console.input if sys.stdin.isatty() else lambda prompt: input()
    )


class HumanGame(NamedTuple):
    """A game between a human and a network, ready to be played."""

    session: Session
    limits: Limits
    human: int
    """0 if the human moves first, else 1."""


def load_human_game(
    source: Source,
    visits: int,
    colour: str,
    komi: float | None = None,
    size: int | None = None,
    handicap: int | None = None,
) -> HumanGame:
    """Load a network and compile its programs for a game against a human; in Go on a board of
    `size` x `size` points, with `handicap` stones of Black's, where these are given.

    Raises:
      ValueError: the colour, the visits, the komi, the size, the handicap or the source is not
        valid, or the network cannot be loaded or compiled.
    """
    spec = chosen_player(source, "go")
    limits = Limits(visits=_visits(spec, visits))
    config = settings_of(spec)
    game = human_rules(config.game, komi, size, handicap).build()
    check_same_board(spec.name, config.game.build(), game, config.network.FITS_ANY_BOARD)
    human = side_of(colour, game)
    start = None
    if isinstance(game, Go) and handicap is not None:
        points = setup.handicap_points(handicap, game.board_shape)
        start = set_up(game, setup.board_of(points, (), game.board_shape), 1)
    session = Session(game, lambda game: load_thinker(spec, rules_of(game)), position=start)
    try:
        session.prepare(quietly=True)
    except StartError as error:
        raise ValueError(str(error)) from error
    return HumanGame(session, limits, human)


def human_rules(
    trained: GameConfig,
    komi: float | None = None,
    size: int | None = None,
    handicap: int | None = None,
) -> GameConfig:
    """Return the rules of a game with a person: those that the network was trained on, with `komi`
    and `size` if they are given, and without the move limit of self-play.

    Raises:
      ValueError: the komi or the size is not possible, or the game has none, or no handicap.
    """
    if isinstance(trained, GoConfig):
        shape = trained.build().board_shape if size is None else (size, size)
        komi = trained.komi if komi is None else komi
        return trained.replace(size=shape, max_moves=MOVES_PER_POINT * math.prod(shape), komi=komi)
    for flag, value in (("komi", komi), ("size", size), ("handicap", handicap)):
        if value is not None:
            raise ValueError(f"--{flag} {value:g} is for Go, not {trained.name}")
    return trained.replace(max_moves=MAX_MOVES) if isinstance(trained, PiecesConfig) else trained


def side_of(colour: str, game: Game) -> int:
    """Return the side that `colour` names: 0 moves first, which is White in chess and Black
    elsewhere.

    Raises:
      ValueError: it names none; what is allowed is listed.
    """
    first, second = side_names(game.name)
    for names in (("first", "second"), (first.lower(), second.lower()), ("black", "white")):
        if colour.lower() in names:
            return names.index(colour.lower())
    raise ValueError(f"--colour {colour}: choose first, second, black or white")


def _wrong_game(spec: ThinkerSpec, game: Game, problem: str) -> ValueError:
    plays = f"azero {_ENGINES.get(game.name, 'play')} plays {game.name}"
    return ValueError(f"{spec.name} plays {describe_board(game)}; {problem} ({plays})")


def _say_loading(spec: ThinkerSpec) -> None:
    search = f", {ENGINE}" if isinstance(spec, NetworkSpec) and spec.search is None else ""
    say(f"azero: loading {spec.name}{search} ...")


def _visits(spec: ThinkerSpec, visits: int | None) -> int | None:
    """Return the visits of a move: those of the player's name come first."""
    if isinstance(spec, RandomMovesSpec):
        raise ValueError(f"{spec.name}: an engine needs a player that searches")
    found = visits if spec.visits is None else spec.visits
    if found is not None and found < 1:
        where = f"--visits {found}" if spec.visits is None else spec.name
        raise ValueError(f"{where}; an engine needs at least 1 (1 is the network without search)")
    return found


def rules_of(game: Game) -> GameConfig:
    """Return the settings that make `game`, whose attributes have their names."""
    if isinstance(game, PgxGame):
        return game.config
    if not isinstance(game, Go):
        rules = GameConfig.default(game.name)
        names = [field.name for field in dataclasses.fields(rules)]
        return rules.replace(**{name: getattr(game, name) for name in names if hasattr(game, name)})
    return GoConfig(
        size=game.board_shape,
        komi=game.komi,
        superko=game.superko,
        suicide=game.suicide,
        max_moves=game.max_moves,
    )
