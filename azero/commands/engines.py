"""The commands of `azero` that play and analyse: engines for other programs, and a board in this
terminal. Heavy imports happen only when a command runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from azero.engines.go_game import GoGame
    from azero.engines.move_game import MoveGame

from azero.search.settings import Search


def gtp(
    checkpoint: Path | None = None,
    random_net: str | None = None,
    player: str | None = None,
    iteration: int | None = None,
    search: Search | None = None,
    visits: int | None = 400,
    seconds: float | None = None,
    ponder: bool = False,
) -> None:
    """Speak the Go Text Protocol on standard input and output: for Sabaki, Lizzie, GoGui, KGS, CGOS
    and other programs.

    The search starts with `lz-analyze` and `kata-analyze` too. Clocks that the program sets are
    kept beside the limits here.

    Args:
      checkpoint: a run's directory; its network plays on the board it was trained on.
      random_net: instead of a checkpoint: the untrained network of an experiment, such as go9, to
        try a program out.
      player: instead of a checkpoint: a player of ours by its name in `azero match`, such as
        "apv:POLICY_DIR?value=DIR&rollout=DIR&tree=DIR".
      iteration: the checkpoint; default the newest.
      search: engine (tuned for one game, the default), trained (the search that the run's own
        matches have), or alphago_zero, alphazero or gumbel by name.
      visits: visits per move at most; None leaves it to the clock.
      seconds: seconds per move at most.
      ponder: think in the opponent's time.
    """
    from azero.engines.background import Background, importing
    from azero.engines.gtp.engine import GtpEngine, serve
    from azero.engines.limits import Settings

    settings = Settings(visits=visits, seconds=seconds, ponders=ponder)

    def make_engine(write: Callable[[str], None], is_interrupted: Callable[[], bool]) -> GtpEngine:
        def load(give: Callable[[GoGame], None]) -> None:
            with importing:
                from azero.engines.serve import Source, load_go

            give(
                load_go(
                    Source(checkpoint, iteration, random_net, player, search),
                    settings,
                    is_interrupted,
                )[1]
            )

        return GtpEngine(Background(load), settings, write)

    with _protocol() as (stdin, stdout):
        serve(make_engine, stdin, stdout)


@dataclass(frozen=True)
class MovesRequest:
    """Which network plays chess or shogi."""

    checkpoint: Path | None = None
    """Directory of the run whose network plays."""
    random_net: str | None = None
    """Instead of a checkpoint: an untrained network to test a program with, chess or shogi;
    "chess?blocks=2&filters=32" is a small one."""
    iteration: int | None = None
    """Iteration of the checkpoint; default the newest."""
    search: Search | None = None
    """engine (tuned for one game, the default), trained (the search that the run's own matches
    have), or alphago_zero, alphazero or gumbel by name."""
    visits: int | None = None
    """Maximum visits per move, except in infinite analysis; default what the clock allows."""


def uci(request: Annotated[MovesRequest, tyro.conf.arg(name="")]) -> None:
    """Speak the Universal Chess Interface on standard input and output: for Cute Chess, Arena,
    BanksiaGUI, lichess-bot and other programs."""
    _serve_moves("uci", request)


def usi(request: Annotated[MovesRequest, tyro.conf.arg(name="")]) -> None:
    """Speak the Universal Shogi Interface on standard input and output: for ShogiGUI, Shogidokoro
    and other programs."""
    _serve_moves("usi", request)


def _serve_moves(protocol: str, request: MovesRequest) -> None:
    from azero.engines.background import Background, importing
    from azero.engines.lines import LineReader, LineWriter
    from azero.engines.uci.draws import has_draws
    from azero.engines.uci.engine import LONGEST_LINE, UciEngine
    from azero.engines.uci.uci import UCI
    from azero.engines.uci.usi import USI

    def load(give: Callable[[MoveGame], None]) -> None:
        with importing:
            from azero.engines.serve import Source, load_moves

        source = Source(
            request.checkpoint, request.iteration, request.random_net, search=request.search
        )
        give(load_moves(protocol, source, request.visits))

    with _protocol() as (stdin, stdout):
        lines, write = LineReader(stdin, LONGEST_LINE), LineWriter(stdout)
        # Before the thread that imports JAX: two that import at once may meet half a module.
        draws = has_draws(request.checkpoint, request.random_net)
        UciEngine(
            UCI if protocol == "uci" else USI,
            Background(load),
            lines,
            write,
            visits=request.visits,
            has_draws=draws,
        ).run()


def analysis(
    checkpoint: Path | None = None,
    random_net: str | None = None,
    player: str | None = None,
    iteration: int | None = None,
    search: Search | None = None,
    visits: int = 400,
    quit_without_waiting: bool = False,
) -> None:
    """Speak KataGo's JSON analysis protocol on standard input and output: one query a line in, one
    result a line out.

    Winrates are Black's unless a query's overrideSettings name another reportAnalysisWinratesAs
    (WHITE, SIDETOMOVE). Leads and ownership are estimates.

    Args:
      checkpoint: a run's directory; its network analyses the board it was trained on.
      random_net: instead of a checkpoint: the untrained network of an experiment, such as go9.
      player: instead of a checkpoint: a player of ours by its name in `azero match`, such as
        "apv:POLICY_DIR?value=DIR&rollout=DIR&tree=DIR".
      iteration: the checkpoint; default the newest.
      search: engine (tuned for one game, the default), trained (the search that the run's own
        matches have), or alphago_zero, alphazero or gumbel by name.
      visits: visits of queries that do not say.
      quit_without_waiting: at the end of the input drop what is still open.
    """
    from azero.engines.background import Background, importing
    from azero.engines.kata.engine import AnalysisEngine, serve
    from azero.engines.limits import Settings

    def make_engine(write: Callable[[str], None]) -> AnalysisEngine:
        def load(give: Callable[[GoGame], None]) -> None:
            with importing:
                from azero.engines.serve import Source, load_go

            settings = Settings(visits=visits)
            spec, game = load_go(
                Source(checkpoint, iteration, random_net, player, search), settings, lambda: False
            )
            engine.describe(spec.name, settings.visits or visits)
            give(game)

        engine = AnalysisEngine(Background(load), write, visits=visits)
        return engine

    with _protocol() as (stdin, stdout):
        serve(make_engine, stdin, stdout, quits_at_once=quit_without_waiting)


def play(
    checkpoint: Path | None = None,
    random_net: str | None = None,
    player: str | None = None,
    iteration: int | None = None,
    search: Search | None = None,
    visits: int = 400,
    colour: str = "first",
    komi: float | None = None,
) -> None:
    """Play against a network in this terminal.

    Args:
      checkpoint: a run's directory.
      random_net: instead of a checkpoint: the untrained network of an experiment, such as go9 or
        tictactoe.
      player: instead of a checkpoint: a player of ours by its name in `azero match`, such as
        "apv:POLICY_DIR?value=DIR&rollout=DIR&tree=DIR".
      iteration: the checkpoint; default the newest.
      search: engine (tuned for one game, the default), trained (the search that the run's own
        matches have), or alphago_zero, alphazero or gumbel by name.
      visits: visits per move; more is stronger and slower.
      colour: yours: black or white as the game has them (in chess White moves first), or first or
        second.
      komi: points for White in Go; default the checkpoint's.
    """
    from azero.engines.serve import Source, play_in_terminal

    play_in_terminal(
        Source(checkpoint, iteration, random_net, player, search), visits, colour, komi
    )


@contextlib.contextmanager
def _protocol() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Give a protocol the standard streams, say at once that something happens, and end at Ctrl-C
    or with what is still compiled at the end."""
    from azero.engines import lines
    from azero.engines.background import exit_if_busy

    lines.say("azero: starting ...")
    with contextlib.suppress(KeyboardInterrupt):
        yield lines.standard_streams()
    exit_if_busy()
