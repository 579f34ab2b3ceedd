"""The commands of `azero` that play and analyse: engines for other programs, and a board in this terminal. Nothing heavy is imported before one is called."""

from __future__ import annotations

import sys
from pathlib import Path


def gtp(
    checkpoint: Path | None = None,
    random_net: str | None = None,
    player: str | None = None,
    iteration: int | None = None,
    visits: int | None = 400,
    seconds: float | None = None,
    ponder: bool = False,
) -> None:
    """Speak the Go Text Protocol on standard input and output: for Sabaki, Lizzie, GoGui, KGS, CGOS and other programs.

    The search starts with `lz-analyze` and `kata-analyze` too. Clocks that the program sets are kept besides the limits here.

    Args:
      checkpoint: a run's directory; its network plays on the board it was trained on.
      random_net: instead of a checkpoint: the untrained network of an experiment, such as go9, to try a program out.
      player: instead of a checkpoint: a player of ours by its name in `azero match`, such as "apv:POLICY_DIR?value=DIR&rollout=DIR&tree=DIR".
      iteration: the checkpoint; default the newest.
      visits: visits per move at most; None leaves it to the clock.
      seconds: seconds per move at most.
      ponder: think in the opponent's time.
    """
    _say_starting()
    from azero.experiments.serve import Source, serve_gtp

    serve_gtp(Source(checkpoint, iteration, random_net, player), visits, seconds, ponder)


def uci(checkpoint: Path | None = None, random_net: str | None = None, iteration: int | None = None, visits: int | None = None) -> None:
    """Speak the Universal Chess Interface on standard input and output: for Cute Chess, Arena, BanksiaGUI, lichess-bot and other programs.

    Args:
      checkpoint: a run's directory; its network plays chess.
      random_net: instead of a checkpoint: an untrained network to try a program out, chess or "chess?blocks=2&filters=32" for a small one.
      iteration: the checkpoint; default the newest.
      visits: visits per move at most, infinite analysis left out; default what the program's clock allows.
    """
    _say_starting()
    from azero.experiments.serve import Source, serve_moves

    serve_moves("uci", Source(checkpoint, iteration, random_net), visits)


def usi(checkpoint: Path | None = None, random_net: str | None = None, iteration: int | None = None, visits: int | None = None) -> None:
    """Speak the Universal Shogi Interface on standard input and output: for ShogiGUI, Shogidokoro and other programs.

    Args:
      checkpoint: a run's directory; its network plays shogi.
      random_net: instead of a checkpoint: an untrained network to try a program out, shogi or "shogi?blocks=2&filters=32" for a small one.
      iteration: the checkpoint; default the newest.
      visits: visits per move at most, infinite analysis left out; default what the program's clock allows.
    """
    _say_starting()
    from azero.experiments.serve import Source, serve_moves

    serve_moves("usi", Source(checkpoint, iteration, random_net), visits)


def analysis(
    checkpoint: Path | None = None,
    random_net: str | None = None,
    player: str | None = None,
    iteration: int | None = None,
    visits: int = 400,
    quit_without_waiting: bool = False,
) -> None:
    """Speak KataGo's JSON analysis protocol on standard input and output: one query a line in, one result a line out.

    Winrates are Black's unless a query's overrideSettings name another reportAnalysisWinratesAs (WHITE, SIDETOMOVE). There is no score or ownership.

    Args:
      checkpoint: a run's directory; its network analyses the board it was trained on.
      random_net: instead of a checkpoint: the untrained network of an experiment, such as go9.
      player: instead of a checkpoint: a player of ours by its name in `azero match`, such as "apv:POLICY_DIR?value=DIR&rollout=DIR&tree=DIR".
      iteration: the checkpoint; default the newest.
      visits: visits of queries that do not say.
      quit_without_waiting: at the end of the input drop what is still open.
    """
    _say_starting()
    from azero.experiments.serve import Source, serve_analysis

    serve_analysis(Source(checkpoint, iteration, random_net, player), visits, quit_without_waiting)


def play(
    checkpoint: Path | None = None,
    random_net: str | None = None,
    player: str | None = None,
    iteration: int | None = None,
    visits: int = 400,
    colour: str = "first",
    komi: float | None = None,
) -> None:
    """Play against a network in this terminal.

    Args:
      checkpoint: a run's directory.
      random_net: instead of a checkpoint: the untrained network of an experiment, such as go9 or tictactoe.
      player: instead of a checkpoint: a player of ours by its name in `azero match`, such as "apv:POLICY_DIR?value=DIR&rollout=DIR&tree=DIR".
      iteration: the checkpoint; default the newest.
      visits: visits per move; more is stronger and slower.
      colour: yours: black or white as the game has them (in chess White moves first), or first or second.
      komi: points for White in Go; default the checkpoint's.
    """
    from azero.experiments.serve import Source, play_in_terminal

    play_in_terminal(Source(checkpoint, iteration, random_net, player), visits, colour, komi)


def _say_starting() -> None:
    """Say at once that something happens: importing and compiling take seconds, and standard output is the protocol's."""
    print("azero: starting ...", file=sys.stderr, flush=True)
