"""The command `azero`, and `python -m azero`."""

from azero.console.interrupts import end_in_one_line


def main() -> None:
    """Run the command; Ctrl-C ends it with one line and exit status 130."""
    with end_in_one_line():
        from azero.commands.main import main as run  # takes a moment, in which Ctrl-C may come

        run()


if __name__ == "__main__":
    main()
