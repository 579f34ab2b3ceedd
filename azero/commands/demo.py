"""`azero demo`: learn 5x5 Go from nothing, then show what was learned."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import numpy as np
from rich.console import Console

from azero.checkpoint import load_settings
from azero.console.terminal import make_console
from azero.engines.web.serve import serve
from azero.experiments import go5_efficient
from azero.match.external import gnu_go_command
from azero.match.matches import play_match
from azero.match.request import MatchRequest
from azero.players.program import find_program
from azero.players.specs import CheckpointSpec, Loaded, load_player
from azero.train.selfplay_run import run

VISITS = 64
"""Simulations per move when the demonstration plays."""
GNU_GO_GAMES = 10
"""Games against each GNU Go, half with each colour."""
GNU_GO_LEVEL = 10
"""Its strength; 10 is GNU Go's default."""


def run_demo(workdir: Path) -> None:
    """Train `go5_efficient` in `workdir`, print the opening it came to, and play GNU Go where that
    is installed. On a terminal, serve the page to play the network until Ctrl-C.

    Raises:
      ValueError, CheckpointError: see `azero.train.driver.run_experiment`.
    """
    console = make_console()
    experiment = go5_efficient.EXPERIMENT
    status = run(experiment, experiment.config, workdir, console)
    if status:
        sys.exit(status)
    _show_opening(load_player(CheckpointSpec(workdir, visits=VISITS)), console)
    _play_gnu_go(workdir, console)
    for line in (
        "",
        f"to play it in the browser:          .venv/bin/azero web {workdir}",
        f"the report, with curves and games:  {workdir / 'report.html'}",
        "to continue this run:               .venv/bin/python -m azero.experiments.go5_efficient "
        f"--workdir {workdir} --run.iterations 1000",
        "the next larger board:              .venv/bin/python -m azero.experiments.go7_efficient",
    ):
        console.print(line, soft_wrap=True)
    if console.is_terminal:
        serve([str(workdir)], opens_browser=False)


def _show_opening(player: Loaded, console: Console) -> None:
    """Print the search's policy on the empty board, as percentages."""
    root = jax.tree.map(lambda leaf: leaf[None], player.game.init())
    output = jax.jit(player.search)(player.params, jax.random.key(0), root)
    weights, value, action = jax.device_get((output.weights[0], output.value[0], output.action[0]))
    rows, columns = player.game.board_shape
    console.print(
        f"\nthe opening, in percent ({VISITS} simulations), and Black's value {value:+.2f}:"
    )
    for line in np.round(100 * weights[: rows * columns]).astype(int).reshape(rows, columns):
        console.print("  " + " ".join(f"{share:3d}" for share in line))
    console.print(f"it opens at {player.game.format_action(player.game.init(), int(action))}")


def _play_gnu_go(workdir: Path, console: Console) -> None:
    """Play the matches against GNU Go, if that is installed."""
    try:
        find_program("gnugo")
    except ValueError:
        console.print(
            "GNU Go is not installed (Debian: apt-get install gnugo); with it, the "
            "demonstration ends with matches against it"
        )
        return
    iteration, _ = load_settings(
        workdir
    )  # a network that has learned more plays matches of its own
    for our_rules, word, remark in (
        (False, "as-it-comes", "with its default settings and rules"),
        (True, "capturing", "with our rules, and told to capture all dead stones before it passes"),
    ):
        console.print(
            f"\nagainst GNU Go level {GNU_GO_LEVEL} {remark}; area scoring, every stone on the "
            "board counts as alive:",
            soft_wrap=True,
        )
        player, program = (
            f"checkpoint:{workdir}?visits={VISITS}&search=engine",
            f"gtp:{' '.join(gnu_go_command(GNU_GO_LEVEL, our_rules))}",
        )
        out = workdir / f"gnugo-{word}-{iteration}-engine"
        play_match(
            MatchRequest(player, program, GNU_GO_GAMES, temperature_moves=0, out=out), console
        )
