"""The server's memory: networks that visitors may choose, those that are loaded, and the visitors'
games."""

import contextlib
import dataclasses
import functools
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax

from azero.checkpoint import CheckpointError, find_checkpoint, list_checkpoints
from azero.data.run_files import METRICS
from azero.engines.go_game import SMALLEST
from azero.engines.source import DEFAULTS
from azero.engines.web.games import WebGame
from azero.engines.web.go_adapter import GoAdapter
from azero.engines.web.guard import Refusal
from azero.engines.web.limits import WebLimits
from azero.engines.web.networks import ServedNetwork, title
from azero.engines.web.records import Record, open_record
from azero.engines.web.squares_adapter import GAMES, SquaresAdapter
from azero.games.game import Game
from azero.games.go.encoding import NUM_KOMI_PLANES
from azero.games.go.rule_names import Rules
from azero.games.go.rules import Go
from azero.games.go.settings import LARGEST_SIDE, GoConfig
from azero.games.go.sgf import GameRecord
from azero.games.position import rules_of_record
from azero.games.settings import GameConfig, PiecesConfig
from azero.memory import give_back_freed
from azero.models.registry import list_names
from azero.players.specs import CheckpointSpec, ThinkerSpec, parse_thinker, resolve
from azero.players.thinking import describe_board
from azero.settings import Config

LOOK_SECONDS = 10.0
"""Seconds between two scans of the checkpoints of a run."""


@dataclass(frozen=True)
class Offer:
    """A player that visitors may choose."""

    key: str
    spec: ThinkerSpec
    config: Config
    rules: Game
    """Its game on the board that it was trained on."""
    title: str
    named: int | None
    """The iteration in its name; None is the newest."""

    @property
    def workdir(self) -> Path | None:
        """The directory of its run; None without metrics."""
        if isinstance(self.spec, CheckpointSpec) and (self.spec.workdir / METRICS).exists():
            return self.spec.workdir
        return None

    def needed_workdir(self) -> Path:
        """Return the directory of its run.

        Raises:
          Refusal: it is not a run.
        """
        if self.workdir is None:
            raise Refusal(404, f"{self.title} is not a run: it has no metrics")
        return self.workdir

    def iterations(self) -> list[int]:
        """Return the iterations of its run that can be played against; the newest has been checked
        and is whole."""
        if not isinstance(self.spec, CheckpointSpec) or self.workdir is None:
            return []
        rows = [row for row in list_checkpoints(self.spec.workdir) if not row.problem]
        if not rows:
            return []
        newest = _newest_whole(self.spec.workdir, rows[-1].digest)
        return [row.iteration for row in rows if row.iteration <= newest]

    def usual(self, iterations: Sequence[int]) -> int | None:
        """Return which iteration is played where none of these is chosen."""
        newest = max(iterations, default=None)
        return newest if self.named is None or newest is None else self.named


@functools.lru_cache(maxsize=16)
def _newest_whole(workdir: Path, digest: str) -> int:
    """Return the newest checkpoint of a run that is whole; its arrays are read once for each newest
    `digest`."""
    del digest
    return find_checkpoint(workdir)[0]


class NewGame(NamedTuple):
    """The settings of a new game."""

    network: str
    iteration: int | None = None
    """None is the newest, or that of the player's name."""
    shape: tuple[int, int] | None = None
    """Rows and columns; None is the board that the network was trained on."""
    komi: float | None = None
    handicap: int = 0
    start: str = ""
    """FEN or SFEN."""


_Key = tuple[str, int | None, tuple[int, int]]
"""A player, its iteration, a board."""


def shipped_players() -> list[str]:
    """Return the names of all networks that ship, that of the default player first."""
    default = DEFAULTS["go"]
    return [default, *(name for name in list_names() if name != default)]


class Service:
    """The networks and games of one server."""

    def __init__(self, names: Sequence[str], limits: WebLimits = WebLimits()) -> None:  # noqa: B008
        """Offer the players of these names, or all networks that ship, and begin to load the first.

        Raises:
          ValueError, CheckpointError, OSError: there is no such player, or the page cannot show
            its game.
        """
        self.limits = limits
        self.offers: dict[str, Offer] = {}
        for number, name in enumerate(names or shipped_players()):
            given = parse_thinker(name)
            spec, config = resolve(given)
            rules = config.game.build()
            if rules.name not in ("go", *GAMES):
                raise ValueError(
                    f"{spec.name} plays {describe_board(rules)}, which the page cannot show; "
                    f"azero play {name} plays it in the terminal"
                )
            named = given.iteration if isinstance(given, CheckpointSpec) else None
            offer = Offer(str(number), spec, config, rules, title(spec), named)
            if named is None and offer.workdir is not None:
                offer = dataclasses.replace(offer, title=title(given))
            self.offers[offer.key] = offer
        self._networks: dict[_Key, ServedNetwork] = {}
        self._loaded: OrderedDict[ServedNetwork, None] = OrderedDict()
        self._num_unloaded = 0
        self._games: OrderedDict[str, WebGame] = OrderedDict()
        self._known_iterations: dict[str, tuple[float, list[int]]] = {}
        self._lock = threading.Lock()
        self.network(NewGame("0")).begin()

    def describe(self) -> dict[str, Any]:
        """Return what visitors may choose; pages poll it."""
        return {
            "networks": [self._describe(offer) for offer in self.offers.values()],
            "limits": {
                name: getattr(self.limits, name)
                for name in ("visits", "seconds", "review_visits", "upload_bytes")
            },
        }

    def _describe(self, offer: Offer) -> dict[str, Any]:
        config, rules, iterations = offer.config, offer.rules, self._iterations(offer)
        with self._lock:
            mine = [network for key, network in self._networks.items() if key[0] == offer.key]
            loaded = next((network for network in mine if network in self._loaded), None)
        return {
            "key": offer.key,
            "title": offer.title,
            "game": rules.name,
            "board": rules.board_shape,
            "sides": list(range(SMALLEST, LARGEST_SIDE + 1)) if _plays_any_board(config) else [],
            "komi": getattr(config.game, "komi", None),
            "iterations": iterations,
            "iteration": offer.usual(iterations),
            "is_run": offer.workdir is not None,
            "state": "unloaded" if loaded is None else loaded.state,
            "problem": None if loaded is None else loaded.problem,
        }

    def _iterations(self, offer: Offer) -> list[int]:
        """Return the iterations of its run; the list is refreshed every LOOK_SECONDS."""
        looked, known = self._known_iterations.get(offer.key, (-math.inf, []))
        if time.monotonic() - looked > LOOK_SECONDS:
            with contextlib.suppress(CheckpointError):  # a run that is being moved or restarted
                known = offer.iterations()
            self._known_iterations[offer.key] = (time.monotonic(), known)
        return known

    def offer(self, key: str) -> Offer:
        """Return a player by its key.

        Raises:
          Refusal: there is none.
        """
        if key not in self.offers:
            raise Refusal(404, f"there is no network {key[:20]!r} here")
        return self.offers[key]

    def network(self, wanted: NewGame) -> ServedNetwork:
        """Return the network for a game.

        Raises:
          ValueError: there is no such network, iteration or board.
        """
        offer = self.offer(wanted.network)
        spec, iterations = offer.spec, offer.iterations()
        iteration = offer.usual(iterations) if wanted.iteration is None else wanted.iteration
        if iteration is not None:
            if iteration not in iterations:
                raise Refusal(404, f"{offer.title} has no checkpoint {iteration}")
            assert isinstance(spec, CheckpointSpec)
            spec = dataclasses.replace(spec, iteration=iteration)
        game = _rules(offer, wanted.shape, self.limits)
        key = (wanted.network, iteration, game.board_shape)
        with self._lock:
            if key not in self._networks:
                self._networks[key] = ServedNetwork(spec, offer.config, game, self.limits)
            network = self._networks[key]
        self.use(network)
        return network

    def use(self, network: ServedNetwork) -> None:
        """Mark `network` as most recently used; unload the least recently used ones beyond the
        limit. Those that are being loaded stay until the next time: they would go on compiling
        beside their next start.

        JAX keeps the programs of unloaded networks until its caches are cleared. That is done after
        as many as the limit: networks in use get theirs back from the disk within seconds.
        """
        with self._lock:
            self._loaded[network] = None
            self._loaded.move_to_end(network)
            left = max(0, len(self._loaded) - self.limits.networks)
            others = [other for other in self._loaded if other is not network]
            unloaded = [other for other in others if not other.is_loading][:left]
            for other in unloaded:
                del self._loaded[other]
            self._num_unloaded += len(unloaded)
            is_full = bool(unloaded) and self._num_unloaded % self.limits.networks == 0
        for other in unloaded:
            other.unload()
        if is_full:
            # JAX stops clearing where another thread compiles meanwhile; the rest goes next time.
            with contextlib.suppress(RuntimeError):
                jax.clear_caches()
        if unloaded:
            give_back_freed()

    def new_game(self, wanted: NewGame) -> WebGame:
        """Begin a game.

        Raises:
          ValueError: it is not possible; what is allowed is named.
        """
        network = self.network(wanted)
        network.begin()
        if network.game.name == "go":
            game = WebGame(
                wanted.network, network, GoAdapter(network, wanted.komi, wanted.handicap)
            )
        else:
            game = WebGame(wanted.network, network, SquaresAdapter(network, wanted.start))
        game.note = _komi_note(network, wanted.komi)
        return self._keep(game)

    def open(self, wanted: NewGame, record: Record) -> WebGame:
        """Open the game of a record, with the chosen network if it was trained on the record's
        board, else with another one that was, else with any that can play on it.

        Raises:
          ValueError: no network here plays it, or a move is not legal.
        """
        choices = [wanted, *(NewGame(key) for key in self.offers if key != wanted.network)]
        offers = [(choice, self.offer(choice.network)) for choice in choices]
        for choice, offer in sorted(
            offers, key=lambda pair: pair[1].rules.board_shape != record.shape
        ):
            if (network := self._fitting(offer, choice, record)) is not None:
                network.begin()
                with network.rules_lock:
                    board = open_record(network, record)
                    game = WebGame(choice.network, network, board, record.comments)
                game.players, game.stated_result = record.players, record.result
                game.place = record.place
                said = f"The record's result: {record.said}." if record.said else ""
                rules = "" if record.go is None else _note(network, record.go)
                game.note = " ".join(filter(None, (said, rules)))
                return self._keep(game)
        rows, columns = record.shape
        raise ValueError(f"no network here plays {record.game} on {columns}x{rows}")

    def _fitting(self, offer: Offer, choice: NewGame, record: Record) -> ServedNetwork | None:
        """Return the offered network on the board of a record; None if it does not play there."""
        config = offer.config
        if config.game.name != record.game:
            return None
        if offer.rules.board_shape == record.shape:
            return self.network(choice._replace(shape=None))
        if _plays_any_board(config) and min(record.shape) >= SMALLEST:
            return self.network(choice._replace(shape=record.shape))
        return None

    def game(self, key: str) -> WebGame:
        """Return a visitor's game.

        Raises:
          Refusal: there is none, or it has been deleted.
        """
        with self._lock:
            game = self._games.get(key)
            if game is None:
                raise Refusal(404, "this game is no longer in memory; begin a new one")
            self._games.move_to_end(key)
            return game

    def _keep(self, game: WebGame) -> WebGame:
        """Store a new game; delete games that are idle for too long or beyond the limit."""
        oldest = time.monotonic() - self.limits.idle_seconds
        with self._lock:
            self._games[game.key] = game
            while len(self._games) > self.limits.games or (
                next(iter(self._games.values())).used < oldest
            ):
                self._games.popitem(last=False)
        return game


def _plays_any_board(config: Config) -> bool:
    """Return whether a player plays other boards than the one that it was trained on."""
    return config.network.FITS_ANY_BOARD and isinstance(config.game, GoConfig)


def _rules(offer: Offer, shape: tuple[int, int] | None, limits: WebLimits) -> Game:
    """Return the game of an offer, on a board of another shape if the network plays it.

    Raises:
      ValueError: it does not.
    """
    config: GameConfig = offer.config.game
    if isinstance(config, PiecesConfig):
        config = dataclasses.replace(config, max_moves=limits.moves, start_positions=None)
    game = config.build()
    if shape is None or game.board_shape == shape:
        return game
    if not _plays_any_board(offer.config) or not isinstance(config, GoConfig):
        rows, columns = game.board_shape
        raise ValueError(f"{offer.title} plays on {columns}x{rows} only")
    return dataclasses.replace(config, size=shape, max_moves=None).build()


def _note(network: ServedNetwork, record: GameRecord) -> str:
    """Return a note if the rules of a record are not ours, or the network cannot know its komi."""
    assert isinstance(network.game, Go)
    _, note = rules_of_record(record, Rules(network.game.superko, network.game.suicide))
    return " ".join(filter(None, (note, _komi_note(network, record.komi))))


def _komi_note(network: ServedNetwork, komi: float | None) -> str:
    """Return a note if the network cannot know the komi of the game."""
    trained = network.config.game
    if not isinstance(trained, GoConfig) or komi in (None, trained.komi):
        return ""
    if trained.planes == NUM_KOMI_PLANES:
        return ""
    return f"The network was trained with komi {trained.komi:g}: its values are for that komi."
