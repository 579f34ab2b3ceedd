"""The commands of `azero` that play and analyse: engines for other programs, and boards in this
terminal and in the browser. Heavy imports happen only when a command runs."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from azero.engines.source import Source

if TYPE_CHECKING:
    from azero.engines.go_game import GoGame
    from azero.engines.pieces_game import PiecesGame

Player = Annotated[Source, tyro.conf.arg(name="")]


def gtp(
    source: Player = Source(),  # noqa: B008 (an immutable default)
    visits: int | None = 400,
    seconds: float | None = None,
    ponder: bool = False,
) -> None:
    """Speak the Go Text Protocol on standard input and output: for Sabaki, Lizzie, GoGui, KGS, CGOS
    and other programs.

    The search starts with `lz-analyze` and `kata-analyze` too. Clocks that the program sets apply
    in addition to the limits here.

    Args:
      source: who plays.
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
                from azero.engines.serve import load_go

            give(load_go(source, settings, is_interrupted)[1])

        return GtpEngine(Background(load), settings, write)

    with _protocol() as (stdin, stdout):
        serve(make_engine, stdin, stdout)


def uci(
    source: Player = Source(),  # noqa: B008
    visits: int | None = None,
) -> None:
    """Speak the Universal Chess Interface on standard input and output: for Cute Chess, Arena,
    BanksiaGUI, lichess-bot and other programs.

    Args:
      source: who plays.
      visits: visits per move at most, except in infinite analysis; default what the clock allows.
    """
    _serve_pieces_game("uci", source, visits)


def usi(
    source: Player = Source(),  # noqa: B008
    visits: int | None = None,
) -> None:
    """Speak the Universal Shogi Interface on standard input and output: for ShogiGUI, Shogidokoro
    and other programs.

    Args:
      source: who plays.
      visits: visits per move at most, except in infinite analysis; default what the clock allows.
    """
    _serve_pieces_game("usi", source, visits)


def _serve_pieces_game(protocol: str, source: Source, visits: int | None) -> None:
    from azero.engines.background import Background, importing
    from azero.engines.lines import LineReader, LineWriter
    from azero.engines.uci.dialects import UCI, USI
    from azero.engines.uci.engine import LONGEST_LINE, UciEngine
    from azero.models.naming import PROTOCOL_GAMES, has_draws, read_visits

    player = source.text(PROTOCOL_GAMES[protocol])
    named_visits = read_visits(player)
    visits = visits if named_visits is None else named_visits

    def load(give: Callable[[PiecesGame], None]) -> None:
        with importing:
            from azero.engines.serve import load_pieces_game

        give(load_pieces_game(protocol, source, visits))

    with _protocol() as (stdin, stdout):
        lines, write = LineReader(stdin, LONGEST_LINE), LineWriter(stdout)
        # Before the thread that imports JAX: two threads that import at once may see a
        # half-initialised module.
        draws = has_draws(player)
        UciEngine(
            UCI if protocol == "uci" else USI,
            Background(load),
            lines,
            write,
            visits=visits,
            has_draws=draws,
        ).run()


def analysis(
    source: Player = Source(),  # noqa: B008 (an immutable default)
    visits: int = 400,
    quit_without_waiting: bool = False,
) -> None:
    """Speak KataGo's JSON analysis protocol on standard input and output: one query a line in, one
    result a line out.

    Winrates are Black's unless a query's overrideSettings name another reportAnalysisWinratesAs
    (WHITE, SIDETOMOVE). Leads and ownership are the network's, or estimates where it has none.

    Args:
      source: who plays.
      visits: visits of queries that do not say.
      quit_without_waiting: at the end of the input drop unfinished queries.
    """
    from azero.engines.background import Background, importing
    from azero.engines.kata.engine import AnalysisEngine, serve
    from azero.engines.limits import Settings

    def make_engine(write: Callable[[str], None]) -> AnalysisEngine:
        def load(give: Callable[[GoGame], None]) -> None:
            with importing:
                from azero.engines.serve import load_go

            settings = Settings(visits=visits)
            spec, game = load_go(source, settings, lambda: False)
            engine.describe(spec.name, settings.visits or visits)
            give(game)

        engine = AnalysisEngine(Background(load), write, visits=visits)
        return engine

    with _protocol() as (stdin, stdout):
        serve(make_engine, stdin, stdout, quits_at_once=quit_without_waiting)


def play(
    source: Player = Source(),  # noqa: B008 (an immutable default)
    visits: int = 400,
    colour: str = "first",
    komi: float | None = None,
    size: int | None = None,
    handicap: int | None = None,
) -> None:
    """Play against a network in this terminal.

    Args:
      source: who plays.
      visits: visits per move; more is stronger and slower.
      colour: yours: black or white as the game has them (in chess White moves first), or first or
        second.
      komi: points for White in Go; default the checkpoint's.
      size: points per side in Go; default the checkpoint's.
      handicap: Black's stones on fixed points in Go; White moves first.
    """
    from azero.engines.serve import play_in_terminal

    play_in_terminal(source, visits, colour, komi, size, handicap)


def web(
    players: Positional[tuple[str, ...]] = (),
    port: int | None = None,
    browser: bool = True,
    host: str = "127.0.0.1",
    token: str | None = None,
    visits_limit: int = 10_000,
    seconds_limit: float = 60.0,
) -> None:
    """Play, analyse and review games on a page in the browser, and watch runs learn.

    Args:
      players: what to play with: a network that ships (go9; azero models lists them), the directory
        of a run or of an exported network, or a player as azero match has them. The page lets you
        choose between several; default all that ship.
      port: of the page; default 8361, or a free one if that is taken.
      browser: open the page in your browser.
      host: the address to listen on. Any but this machine's own (127.0.0.1) needs a token.
      token: what visitors have to know; default a random one, which is printed, where it is needed.
      visits_limit: most visits of one search.
      seconds_limit: longest search in seconds.
    """
    from azero.engines.web.limits import WebLimits
    from azero.engines.web.serve import serve

    if visits_limit < 1 or not 0 < seconds_limit < math.inf:
        raise ValueError("--visits-limit is at least 1, and --seconds-limit a number above 0")
    if port is not None and not 0 <= port < 2**16:
        raise ValueError(f"--port is from 0 to 65535, not {port}")
    serve(
        players,
        host=host,
        port=port,
        token=token,
        opens_browser=browser,
        limits=WebLimits(visits=visits_limit, seconds=seconds_limit),
    )


@contextlib.contextmanager
def _protocol() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Yield the standard streams for a protocol, print a line at once, and end the process at
    Ctrl-C or after the last line: a program that sent `quit` may wait for that."""
    from azero.console.interrupts import exit_at_once
    from azero.console.standard_output import say
    from azero.engines.lines import standard_streams

    say("azero: starting ...")
    with contextlib.suppress(KeyboardInterrupt):
        yield standard_streams()
    exit_at_once(0)
