"""The metrics of a run in Weights & Biases, an optional extra (`pip install 'azero[wandb]'`)."""

import secrets
from pathlib import Path
from typing import Any

from azero.data.files import StorageError
from azero.data.rows import replace_text

ID = "wandb-id"
"""File of the working directory with the run's name at Weights & Biases, so that a resumed run
continues there."""


class WandbRun:
    """A run of Weights & Biases: numbers by iteration, and the run's settings.

    The package reads its own settings from the environment: WANDB_MODE=offline writes into the
    working directory alone, for `wandb sync` later.
    """

    def __init__(self, workdir: Path, project: str, settings: dict[str, Any]) -> None:
        """Start or resume the run.

        Raises:
          ValueError: the package wandb is not installed.
          StorageError: it does not start (no account, no connection, a full disk).
        """
        try:
            import wandb
        except ImportError:
            raise ValueError(
                "run.wandb needs the package wandb: pip install 'azero[wandb]'"
            ) from None
        self._errors = (wandb.Error, OSError)
        path = workdir / ID
        try:
            if not path.exists():
                replace_text(path, secrets.token_hex(4))
            self._run = wandb.init(
                project=project,
                dir=str(workdir),
                id=path.read_text(encoding="utf-8").strip(),
                name=workdir.absolute().name,
                config=settings,
                resume="allow",
                settings=wandb.Settings(silent=True, console="off"),
            )
            # By iteration, not by W&B's own count: a run that goes back writes iterations again.
            self._run.define_metric("*", step_metric="iteration")
        except self._errors as error:
            raise self._failure(error) from error

    def write(self, numbers: dict[str, float], step: int) -> None:
        """Send the numbers of an iteration.

        Raises:
          StorageError: they cannot be sent or written.
        """
        try:
            self._run.log({"iteration": step, **numbers})
        except self._errors as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Wait until everything is sent or written.

        Raises:
          StorageError: it cannot be.
        """
        try:
            self._run.finish()
        except self._errors as error:
            raise self._failure(error) from error

    def _failure(self, error: BaseException) -> StorageError:
        reason = " ".join(str(error).split())[:300]
        return StorageError(f"Weights & Biases: {reason}")
