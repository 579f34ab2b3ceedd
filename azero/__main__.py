"""The command `azero`, and `python -m azero`."""

import sys

from azero.console.interrupts import exit_at_once, keep_interrupts


def main() -> None:
    """Run the command; Ctrl-C ends it with one line and exit status 130."""
    keep_interrupts()
    try:
        from azero.commands.main import main as run  # takes a moment, in which Ctrl-C may come

        run()
    except KeyboardInterrupt as stop:
        print(f"azero: {str(stop) or 'stopped'}", file=sys.stderr)
        exit_at_once(130)  # 128 and the number of SIGINT, as shells have it


if __name__ == "__main__":
    main()
