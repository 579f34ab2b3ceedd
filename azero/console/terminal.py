"""The terminal. All consoles are made here, so that no external text is read as rich's markup."""

from typing import IO

from rich.console import Console


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise  # the BrokenPipeError, which `end_with_reader` expects


def make_console(file: IO[str] | None = None, **settings: bool | int) -> Console:
    """Return a console that prints strings as they are: names of files, players and programs,
    errors and notes may hold brackets or ":colons:".

    What is to be bold or coloured is a `rich.text.Text`, or has a style.
    """
    return _Console(file=file, markup=False, emoji=False, **settings)  # type: ignore[arg-type]
