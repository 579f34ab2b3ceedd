"""`python -m azero.experiments.NAME`: loading what a run needs, and starting it."""

from collections.abc import Sequence

from azero.console.interrupts import end_in_one_line
from azero.experiment import Experiment
from azero.train.alphago2016.config import AlphaGoExperiment


def main(experiment: Experiment, argv: Sequence[str] | None = None) -> None:
    """Run `experiment` with the flags `argv`, by default those of the command line, and end the
    process with its status."""
    with end_in_one_line():
        from azero.train.start import start_run  # takes seconds, in which Ctrl-C may come
    start_run(experiment, argv)


def main_of_stages(experiment: AlphaGoExperiment, argv: Sequence[str] | None = None) -> None:
    """Run the stages of `experiment` as `main` runs an experiment."""
    with end_in_one_line():
        from azero.train.alphago2016.run import start_stages
    start_stages(experiment, argv)
