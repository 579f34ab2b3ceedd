"""`azero demo`: learn 5x5 Go from scratch, then show what was learned."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
from rich.console import Console

from azero.api.model import Model, load
from azero.checkpoint import find_checkpoint
from azero.console.terminal import make_console
from azero.engines.web.serve import serve
from azero.experiments import go5_efficient
from azero.games.position import Position
from azero.match.external import gnu_go_command
from azero.match.matches import play_match
from azero.match.request import MatchRequest
from azero.players.program import find_program
from azero.train.driver import run_experiment
from azero.train.selfplay_run import make_selfplay_stage

VISITS = 64
"""Simulations per move when the demonstration plays."""
GNU_GO_GAMES = 20
"""Games against each GNU Go, half with each colour."""
GNU_GO_LEVEL = 10
"""Its strength; 10 is GNU Go's default."""
WORKERS = 2
"""Games against it at once: it thinks on one core, and longer than the network."""


def run_demo(workdir: Path) -> None:
    """Train `go5_efficient` in `workdir`, print the opening it came to, and play GNU Go where that
    is installed. On a terminal, serve the page to play the network until Ctrl-C.

    Raises:
      ValueError, CheckpointError: see `azero.train.driver.run_experiment`.
    """
    console = make_console()
    experiment = go5_efficient.EXPERIMENT
    status = run_experiment(experiment, experiment.config, workdir, make_selfplay_stage, console)
    if status:
        sys.exit(status)
    player = f"checkpoint:{workdir}?visits={VISITS}&search=engine"
    _show_opening(load(player), console)
    _play_gnu_go(workdir, player, console)
    azero = _command()
    for line in (
        "",
        f"to play it in the browser:          {azero} web {workdir}",
        f"the report, with curves and games:  {workdir / 'report.html'}",
        f"to continue this run:               {azero} train {experiment.name} "
        f"--workdir {workdir} --run.iterations 500",
        f"the next larger board:              {azero} train go7_efficient",
    ):
        console.print(line, soft_wrap=True)
    if console.is_terminal:
        serve([str(workdir)], opens_browser=False)


def _command() -> str:
    """Return how the command azero is called here: by its path where it is not the one on PATH."""
    here = Path(sys.argv[0])
    found = shutil.which("azero")
    if here.name != "azero" or (found is not None and Path(found).samefile(here)):
        return "azero"
    return os.path.relpath(here)


def _show_opening(model: Model, console: Console) -> None:
    """Print the search's visits on the empty board, as percentages."""
    start = Position.start(model.game)
    result = model.search(start)
    rows, columns = model.game.board_shape
    visits = np.zeros(rows * columns + 1)
    for found in result.moves:
        visits[start.parse_action(found.move)] = found.visits
    console.print(
        f"\nthe opening, in percent of {VISITS} visits, and Black's value {result.value:+.2f}:"
    )
    shares = 100 * visits[: rows * columns] / visits.sum()
    for line in np.round(shares).astype(int).reshape(rows, columns):
        console.print("  " + " ".join(f"{share:3d}" for share in line))
    console.print(f"it opens at {result.best}")


def _play_gnu_go(workdir: Path, player: str, console: Console) -> None:
    """Play the matches against GNU Go, if that is installed."""
    try:
        find_program("gnugo")
    except ValueError:
        console.print(
            "GNU Go is not installed (Debian: apt-get install gnugo); with it, the "
            "demonstration ends with matches against it"
        )
        return
    # a network that has learned more plays matches of its own
    iteration, _ = find_checkpoint(workdir)
    for our_rules, word, remark in (
        (False, "as-it-comes", "with its default settings and rules"),
        (True, "capturing", "with our rules, and told to capture all dead stones before it passes"),
    ):
        console.print(
            f"\nagainst GNU Go level {GNU_GO_LEVEL} {remark}; area scoring, every stone on the "
            "board counts as alive:",
            soft_wrap=True,
        )
        program = f"gtp:{' '.join(gnu_go_command(GNU_GO_LEVEL, our_rules))}"
        out = workdir / f"gnugo-{word}-{iteration}-engine"
        play_match(
            MatchRequest(
                player, program, GNU_GO_GAMES, temperature_moves=0, workers=WORKERS, out=out
            ),
            console,
        )
