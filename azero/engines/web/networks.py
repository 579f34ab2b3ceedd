"""Networks that play many games at once: the programs of one are shared, every game has its own
tree, and one search runs at a time."""

import contextlib
import dataclasses
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from azero.engines.background import Background, StartError
from azero.engines.serve import rules_of
from azero.engines.web.limits import WebLimits
from azero.games.game import Game
from azero.games.go.rules import Go
from azero.games.go.scoring import status as go_status
from azero.games.position import Position
from azero.memory import give_back_freed
from azero.players.points import PointsEstimate
from azero.players.specs import CheckpointSpec, ThinkerSpec, load_thinker
from azero.players.thinking import Analysis, Limits, ThinkOptions, empty_analysis
from azero.players.tree_player import TreePlayer
from azero.settings import Config

T = TypeVar("T")
SLICE_SECONDS = 0.5
"""A search lets a waiting one go first after this time; our choice."""
_POLL_SECONDS = 0.05


def title(spec: ThinkerSpec) -> str:
    """Return the page's name for a player; an exported network has the name of its run."""
    if isinstance(spec, CheckpointSpec) and spec.workdir.name.startswith("checkpoint"):
        options = spec.name.partition(", ")[1:]
        return "".join((spec.workdir.resolve().parent.name, *options))
    return spec.name


class FairLock:
    """A fair lock: waiting threads get it in the order in which they asked for it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()

    @property
    def is_wanted(self) -> bool:
        """Whether another thread waits for the lock."""
        return len(self._queue) > 1

    @property
    def is_locked(self) -> bool:
        """Whether the lock is held."""
        return bool(self._queue)

    def acquire(self, should_stop: Callable[[], bool]) -> bool:
        """Wait for the lock; return False, without it, once `should_stop()` is true."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            while self._queue[0] is not ticket:
                if should_stop():
                    self._queue.remove(ticket)
                    return False
                self._changed.wait(_POLL_SECONDS)
        return True

    def release(self) -> None:
        """Hand the lock to the next thread."""
        with self._changed:
            self._queue.popleft()
            self._changed.notify_all()


class ServedNetwork:
    """A player of ours on one board, loaded and compiled in the background."""

    def __init__(self, spec: ThinkerSpec, config: Config, game: Game, limits: WebLimits) -> None:
        """Serve a player on the board of `game`; nothing is loaded before `begin`."""
        self.spec, self.config, self.game, self.limits = spec, config, game, limits
        self.search_lock = FairLock()
        self.rules_lock = threading.Lock()
        """Held while moves are played: the first one compiles the rules."""
        self._warm: TreePlayer | None = None
        """The player whose programs are all compiled."""
        self._loading: Background[TreePlayer] | None = None
        self._lock = threading.Lock()
        self._players: OrderedDict[GamePlayer, None] = OrderedDict()

    def begin(self) -> Background[TreePlayer]:
        """Begin to load and compile, if that has not begun."""
        with self._lock:
            if self._loading is None:
                self._loading = Background(self._load)
            return self._loading

    def _load(self, give: Callable[[TreePlayer], None]) -> None:
        with self._lock:
            loading = self._loading
        with self.rules_lock:
            position = Position.start(self.game)
            position.play(int(np.argmax(position.legal)))
        player = load_thinker(self.spec, rules_of(self.game))
        player.limit_memory(self.limits.tree_megabytes)
        steps = player.warm_up_in_steps(position)
        next(steps)
        give(player)
        for _ in steps:
            pass
        give_back_freed()
        with self._lock:
            if self._loading is loading:  # else it has been unloaded meanwhile
                self._warm = player
        if isinstance(self.game, Go):
            go_status.prepare(self.game.board_shape)

    def is_warm(self, player: TreePlayer) -> bool:
        """Return whether all programs of `player`, which `wait` returned, are compiled."""
        return player is self._warm

    def unload(self) -> None:
        """Drop the programs and all trees; the next search makes them again."""
        with self._lock:
            self._loading = self._warm = None
            players, self._players = list(self._players), OrderedDict()
        for player in players:
            player.reset()

    @property
    def is_loading(self) -> bool:
        """Whether it is being loaded and compiled."""
        loading = self._loading
        return loading is not None and not loading.is_over

    @property
    def state(self) -> str:
        """compiling, ready or failed."""
        loading = self._loading
        if loading is None or not loading.is_ready():
            return "compiling"
        return "ready" if self.problem is None else "failed"

    @property
    def problem(self) -> str | None:
        """Why it cannot be loaded; None if it can, or while it is being loaded."""
        loading = self._loading
        if loading is None or not loading.is_ready():
            return None
        try:
            loading.result()
        except StartError as error:
            return str(error)
        return None

    def wait(self, should_stop: Callable[[], bool]) -> TreePlayer | None:
        """Return the player once it can think; None if `should_stop()` is true before.

        Raises:
          StartError: it cannot be loaded.
        """
        loading = self.begin()
        while not loading.is_ready(_POLL_SECONDS):
            if should_stop():
                return None
        return loading.result()

    def keep(self, player: "GamePlayer") -> None:
        """Mark the tree of `player` as most recently used; drop the least recently used ones beyond
        the limit."""
        with self._lock:
            self._players[player] = None
            self._players.move_to_end(player)
            left = len(self._players) - self.limits.trees
            forgotten = [self._players.popitem(last=False)[0] for _ in range(left)]
        for other in forgotten:
            other.reset()


class GamePlayer:
    """The player of one game: its own tree, with the programs and the lock of a `ServedNetwork`."""

    def __init__(self, network: ServedNetwork) -> None:
        self.name = network.spec.name
        self._network = network
        self._own: TreePlayer | None = None
        self._is_early = False
        """The tree was made before all programs were compiled."""

    def reset(self) -> None:
        """Drop the tree; the next search begins another."""
        self._own = None

    def limit_memory(self, megabytes: int) -> None:
        """The network's limit holds."""

    def warm_up_in_steps(self, position: Position) -> Iterator[None]:
        """Wait until it can think."""
        self._network.wait(lambda: False)
        yield

    @contextlib.contextmanager
    def _turn(self, should_stop: Callable[[], bool]) -> Iterator[TreePlayer | None]:
        """Wait for the network and for the turn, and give the player with this game's tree while it
        lasts; None, without the turn, if `should_stop()` is true before."""
        network = self._network
        source = network.wait(should_stop)
        if source is None or not network.search_lock.acquire(should_stop):
            yield None
            return
        try:
            tree = self._own  # which another thread may drop at any time
            if tree is None or (self._is_early and network.is_warm(source)):
                self._own = tree = source.another()
                self._is_early = not network.is_warm(source)
            network.keep(self)
            yield tree
        finally:
            network.search_lock.release()

    def think(
        self,
        position: Position,
        limits: Limits,
        options: ThinkOptions = ThinkOptions(),  # noqa: B008
    ) -> Analysis:
        """Search `position` as `Thinker` says, in turns with the network's other games; `seconds`
        are those of its own turns."""
        analysis = empty_analysis(position)
        seconds, playouts, made_room = 0.0, 0, True
        while made_room and not options.should_stop():
            with self._turn(options.should_stop) as tree:
                if tree is None:
                    break
                began, made_room = time.perf_counter(), False

                def is_turn_over(began: float = began) -> bool:
                    nonlocal made_room
                    made_room = (
                        self._network.search_lock.is_wanted
                        and time.perf_counter() - began > SLICE_SECONDS
                    )
                    return made_room or options.should_stop()

                analysis = tree.think(
                    position,
                    _rest(limits, seconds, playouts),
                    dataclasses.replace(options, should_stop=is_turn_over),
                )
            seconds, playouts = seconds + analysis.seconds, playouts + analysis.playouts
        return dataclasses.replace(analysis, seconds=seconds, playouts=playouts)

    def evaluate(self, position: Position, symmetry: int | None = None) -> tuple[np.ndarray, float]:
        """Return the network's policy and value, as `Thinker` says."""
        return self._with_turn(lambda tree: tree.evaluate(position, symmetry))

    def estimate_points(
        self, position: Position, actions: Sequence[int] = ()
    ) -> list[PointsEstimate] | None:
        """Return what the network expects of the end of the game, as `Thinker` says."""
        return self._with_turn(lambda tree: tree.estimate_points(position, actions))

    def estimate_draws(self, position: Position, actions: Sequence[int]) -> list[float] | None:
        """Return the network's probability of a draw after each move, as `Thinker` says."""
        return self._with_turn(lambda tree: tree.estimate_draws(position, actions))

    def _with_turn(self, work: Callable[[TreePlayer], T]) -> T:
        with self._turn(lambda: False) as tree:
            assert tree is not None
            return work(tree)


def _rest(limits: Limits, seconds: float, playouts: int) -> Limits:
    """Return what remains of `limits` after these seconds and playouts."""
    return Limits(
        limits.visits,
        None if limits.playouts is None else limits.playouts - playouts,
        None if limits.seconds is None else limits.seconds - seconds,
    )
