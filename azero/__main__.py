"""`python -m azero`: the same as the command `azero`."""

from azero.commands.main import main

if __name__ == "__main__":
    main()
