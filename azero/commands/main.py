"""The `azero` command."""

import math
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import OmitSubcommandPrefixes, Positional, subcommand

from azero.bench import Part, run_bench
from azero.cloud.requests import (
    CreateRequest,
    DeleteRequest,
    LaunchRequest,
    LogsRequest,
    SetupRequest,
    WatchRequest,
)
from azero.commands.engines import Player, analysis, gtp, play, uci, usi, web
from azero.compilation_cache import use_compilation_cache
from azero.config import check_range, check_words
from azero.console.standard_output import end_with_reader
from azero.cores import explain_devices, split_cpu_at_start
from azero.data.files import describe_error
from azero.data.records.requests import (
    AccuracyRequest,
    ExportRequest,
    ImportRequest,
    JosekiRequest,
    ShowRequest,
)
from azero.engines.source import Source
from azero.experiment import MULTI_STAGE, NAMES, load
from azero.match.request import LadderRequest, MatchRequest, TournamentRequest
from azero.match.tuning.request import TuneRequest
from azero.models.naming import check_directory, find_directory


def train(
    experiment: Annotated[
        Positional[str],
        tyro.conf.arg(help=f"{', '.join((*NAMES, *MULTI_STAGE))}; see docs/training.md."),
    ],
) -> None:
    """Start or continue an experiment; the same as `python -m azero.experiments.NAME`, whose flags
    may follow."""
    from azero.train.start import start_run

    if experiment in MULTI_STAGE:
        from azero.train.alphago2016.run import load_stages, start_stages

        start_stages(load_stages(experiment), sys.argv[3:])
    start_run(load(experiment), sys.argv[3:])


def demo(workdir: Path = Path("runs/demo")) -> None:
    """Learn 5x5 Go from scratch on this machine in minutes, and show the result.

    Args:
      workdir: directory of the run; the same directory again continues it.
    """
    from azero.commands.demo import run_demo

    run_demo(workdir)


def report(workdir: Positional[Path], plot: Path | None = None, out: Path | None = None) -> None:
    """Write one self-contained HTML page about a run, at any time, also while it runs: its numbers
    and curves, sample games, and the matches in its directory.

    Args:
      workdir: the run's directory.
      plot: instead of the page: an image file (.png, .svg, .pdf) of the main curves.
      out: file of the page, or the directory of its report.html; default the run's directory.
    """
    from azero.report.live import save_curves
    from azero.report.page import write_report
    from azero.report.stages import STAGES_FILE, save_stage_charts, write_stages_report

    if plot is not None and out is not None:
        raise ValueError("--plot writes an image instead of the page, so it cannot go with --out")
    has_stages = (_existing(workdir) / STAGES_FILE).exists()
    if plot is not None:
        (save_stage_charts if has_stages else save_curves)(workdir, plot)
        print(plot)
    elif has_stages:
        print(write_stages_report(workdir, out))
    else:
        print(write_report(workdir, out))


def checkpoint(
    network: Positional[str],
    export: Path | None = None,
    export_leela: Path | None = None,
    export_onnx: Path | None = None,
    half: bool = False,
    iteration: int | None = None,
) -> None:
    """List the checkpoints of a run: iteration, steps, games, size, age, a digest of the whole
    state; or write the network of one as a file.

    Args:
      network: the run's directory, one with an exported network, or a network that ships (go9).
      export: instead of the list: write the network alone as one small file into this directory,
        which other commands take like a run.
      export_leela: instead of the list: write the network as a file of Leela Zero, compressed where
        the name ends in .gz (networks like AlphaGo Zero's on a square board).
      export_onnx: instead of the list: write the network as an ONNX file.
      half: with --export: filters and matrices as float16, which halves the file.
      iteration: the checkpoint to export; default the newest.
    """
    from azero.commands.export import export_checkpoint

    export_checkpoint(
        _existing(find_directory(network)),
        {"": export, "leela": export_leela, "onnx": export_onnx},
        iteration,
        half,
    )


def models(name: Positional[str | None] = None, json: bool = False) -> None:
    """List the networks that ship with azero: what made them, and their matches, losses included.

    Args:
      name: one of them, with everything that its card says.
      json: print JSON instead of a table.
    """
    from azero.commands.models import show_models

    show_models(name, json)


def doctor(experiment: Positional[str] = "go5", compile: bool = True) -> None:
    """Show the devices, the memory and compile time that an experiment needs here, and problems
    found.

    Args:
      experiment: the experiment that the figures are for.
      compile: compile its self-play and learning step, and report the compiler's own figures.
    """
    from azero.commands.doctor import diagnose

    sys.exit(diagnose(experiment, compile))


def plan() -> None:
    """Estimate what an experiment needs on a slice of TPUs, how long it takes there and what that
    costs; no TPU is needed. `azero plan --help` has the flags."""
    from azero.commands.plan import main as plan_main

    plan_main(sys.argv[2:])


def bench(what: Positional[Part]) -> None:
    """Measure a part of azero on this machine, with a peer if one is named; `azero bench PART
    --help` lists the part's own flags.

    Args:
      what: the part: all (everything that fits this machine), games, search, network, inference
        (beside ONNX Runtime and OpenVINO), train (the learner's step), loop (self-play, learning,
        both), scaling (self-play on many devices, compiled only), replay, engine (one game's tree),
        rollouts (AlphaGo 2016); tpu compiles for a TPU v5e without one.
    """
    run_bench(what, [])


def match(request: Annotated[MatchRequest, tyro.conf.arg(name="")]) -> None:
    """Play a match between two players and print the score with its 95% interval."""
    from azero.match.matches import play_match

    play_match(request)


def ladder(request: Annotated[LadderRequest, tyro.conf.arg(name="")]) -> None:
    """Play Go, chess, minichess or shogi against fixed public programs, and print a table."""
    from azero.commands.ladder import play_ladder

    play_ladder(request)


def tournament(request: Annotated[TournamentRequest, tyro.conf.arg(name="")]) -> None:
    """Play a match between each pair of several players, and rate them all in one list."""
    from azero.commands.tournament import play_tournament

    play_tournament(request)


def tune(request: Annotated[TuneRequest, tyro.conf.arg(name="")]) -> None:
    """Tune settings of a player's search or clock by Gaussian-process optimisation."""
    from azero.match.tuning.tuner import tune as run_tuning
    from azero.report.posterior import save_posterior

    run_tuning(request, save_posterior)


def elo(
    directories: Positional[tuple[Path, ...]],
    anchor: tuple[str, ...] = (),
    draws: Literal["davidson", "half"] = "davidson",
    plot: Path | None = None,
    json: bool = False,
) -> None:
    """Rate the players of matches: Elo with intervals, the advantage of moving first, the share of
    draws.

    Args:
      directories: of matches (azero match --out), of runs, or directories that hold such
        directories.
      anchor: NAME=ELO, players whose ratings are given; default the first player at 0.
      draws: davidson gives draws a probability of their own, half counts a draw as half a win.
      plot: an image file (.png, .svg, .pdf) of the ratings.
      json: print one JSON object instead of tables.
    """
    from azero.report.ratings import rate

    if not directories:
        raise ValueError("give at least one directory with matches: azero elo DIRECTORY ...")
    anchors = dict(map(_anchor, anchor))
    if len(anchors) < len(anchor):
        raise ValueError(f"a player has several ratings in --anchor {' '.join(anchor)}")
    rate(directories, anchors, draws, plot, json)


def analyze(
    record: Positional[Path],
    source: Player = Source(),  # noqa: B008 (an immutable default)
    visits: int | None = None,
    game: int = 1,
    json: bool = False,
    out: Path | None = None,
    panels: int | None = None,
) -> None:
    """Review a game of Go, chess or shogi: a record with win rates and better lines, and a page
    with the largest mistakes.

    Args:
      record: the game (.sgf, .pgn, .csa, .kif or .ki2, also .gz, .zip or .tar.gz).
      source: who reviews it.
      visits: simulations of every position; default what the player's name says, else 200.
      game: which game of a collection.
      json: print one JSON line for every move, and write files only with --out.
      out: directory of the files; default that of the record.
      panels: Go, instead of a review: the search of the position before this move as boards in one
        SVG: values after each move, values of the search, policy, visits, principal variation (AG16
        Figure 5).
    """
    from azero.commands.review import analyze as review
    from azero.commands.review import show_search

    if panels is not None:
        if json:
            raise ValueError("--panels writes an image and has no --json")
        show_search(record, source, panels, visits, game, out)
        return
    review(record, source, visits, game, json, out)


def data(
    action: OmitSubcommandPrefixes[
        Annotated[ImportRequest, subcommand("import")]
        | Annotated[ShowRequest, subcommand("show")]
        | Annotated[ExportRequest, subcommand("export")]
    ],
) -> None:
    """Turn recorded games into training positions, look at them, and write games to files."""
    from azero.data.records.importing import run_import
    from azero.data.records.importing import show as show_dataset

    if isinstance(action, ExportRequest):
        from azero.console.tables import count_of
        from azero.data.records.formats import all_suffixes
        from azero.data.records.searched import export_searches
        from azero.match.directory import MATCH
        from azero.report.game_records import export_games

        check_range(action, "--", "last", 1)
        directory = _existing(action.directory)
        is_file = action.out.name.lower().endswith(all_suffixes()) or (directory / MATCH).exists()
        export = export_games if is_file else export_searches
        count = export(directory, action.out, action.last)
        print(f"{action.out}: {count_of(count, 'game')}")
    elif isinstance(action, ImportRequest):
        run_import(action)
    else:
        show_dataset(action)


def evaluate(
    action: OmitSubcommandPrefixes[
        Annotated[AccuracyRequest, subcommand("accuracy")]
        | Annotated[JosekiRequest, subcommand("joseki")]
    ],
) -> None:
    """Measure what networks know: prediction of recorded games, and corner sequences that they
    play."""
    if isinstance(action, JosekiRequest):
        from azero.commands.joseki import count_joseki

        count_joseki(action)
    else:
        from azero.commands.accuracy import evaluate_accuracy

        evaluate_accuracy(action)


def tpu(
    action: OmitSubcommandPrefixes[
        Annotated[CreateRequest, subcommand("create")]
        | Annotated[SetupRequest, subcommand("setup")]
        | Annotated[LaunchRequest, subcommand("launch")]
        | Annotated[WatchRequest, subcommand("watch")]
        | Annotated[LogsRequest, subcommand("logs")]
        | Annotated[DeleteRequest, subcommand("delete")]
    ],
) -> None:
    """Rent a Cloud TPU machine through gcloud, run an experiment on it, and give it back
    (docs/cloud-tpu.md)."""
    from azero.cloud.tpu import run_tpu

    sys.exit(run_tpu(action))


COMMANDS: dict[str, Callable[..., Any]] = {
    command.__name__: command
    for command in (
        *(train, demo, report, checkpoint, models, doctor, plan, bench),
        *(match, ladder, tournament, tune, elo, analyze),
        *(gtp, uci, usi, analysis, play, web, data),
    )
} | {"eval": evaluate, "tpu": tpu}

_PLAYING = (
    *("match", "ladder", "tournament", "tune", "analyze"),
    *("gtp", "uci", "usi", "analysis", "play", "web"),
)
"""Commands that load players, whose programs take minutes to compile. (Others keep programs
themselves, or measure how long compiling takes.)"""


def _anchor(text: str) -> tuple[str, float]:
    name, _, rating = text.rpartition("=")
    try:
        elo = float(rating)
    except ValueError:
        elo = math.nan
    if not math.isfinite(elo):
        raise ValueError(f"{text!r} is not an anchor; an anchor is NAME=ELO")
    return name, elo


def _existing(workdir: Path) -> Path:
    check_directory(workdir)
    return workdir


@end_with_reader()
def main() -> None:
    """Run the `azero` command; a user's error ends in one line and exit status 2, a reader that
    closes the output (`| head`) in 141."""
    from azero import __version__

    if sys.argv[1:2] in (["--version"], ["version"]):
        print(f"azero {__version__}")
        return
    try:
        check_words(sys.argv[1:])
        if sys.argv[1:2] and sys.argv[1] in _PLAYING:
            use_compilation_cache()
            split_cpu_at_start()
        with explain_devices():
            call_command()
    except (ValueError, OSError) as error:
        if os.environ.get("AZERO_TRACEBACK") or isinstance(error, BrokenPipeError):
            raise
        print(f"azero: {describe_error(error)}", file=sys.stderr)
        sys.exit(2)


_SEVERAL = ("--anchor", "--opponents", "--parameter", "--rules", "--sequence")
"""Options that take several values."""


def _join_repeated(argv: Sequence[str]) -> list[str]:
    """Return the words of a command with all values of an option of _SEVERAL after its first
    occurrence; of an option that is repeated tyro takes the last values alone."""
    options, several = [list[str]()], dict[str, list[str]]()
    current = options[0]
    for word in argv:
        flag, _, value = word.partition("=")
        if flag in _SEVERAL:
            if flag not in several:
                several[flag] = [flag]
                options.append(several[flag])
            current = several[flag]
            current += [value] if value else []
        else:
            if word.startswith("--"):
                current = list[str]()
                options.append(current)
            current.append(word)
    return [word for option in options for word in option]


def call_command() -> None:
    """Call the command that the command line names with its flags."""
    if sys.argv[1:2] == ["train"] and len(sys.argv) > 2 and not sys.argv[2].startswith("-"):
        train(sys.argv[2])
    elif sys.argv[1:2] == ["bench"] and len(sys.argv) > 3 and not sys.argv[2].startswith("-"):
        run_bench(sys.argv[2], sys.argv[3:])
    elif sys.argv[1:2] == ["plan"]:
        plan()  # its flags are those of an experiment
    else:
        # With one command's parser alone a misspelt flag is compared with that command's flags,
        # not with those of all.
        commands = {name: COMMANDS[name] for name in sys.argv[1:2] if name in COMMANDS} or COMMANDS
        tyro.extras.subcommand_cli_from_dict(
            commands,
            prog="azero",
            description="AlphaGo, AlphaGo Zero and AlphaZero in JAX",
            args=_join_repeated(sys.argv[1:]),
        )
