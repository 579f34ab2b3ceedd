"""The secret that the processes of a run share, so that no other process can join.

It is never sent: each end proves that it has it by a keyed digest of a random number that the other
end has chosen.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import time
from pathlib import Path

VARIABLE = "AZERO_TOKEN"
"""Environment variable with the token, for processes that do not share a directory yet."""
FILE = ".token"
"""Otherwise the token is in this file of the working directory, which only its owner may read."""
_SEEN_SECONDS = 15.0
"""A file written by one host is seen by the others within this time (see `azero.train.hosts`)."""


def load_or_create_token(workdir: Path) -> str:
    """Return the token of the environment or of the working directory; if there is none, create one
    there.

    Raises:
      OSError: the file cannot be read or written.
    """
    if token := os.environ.get(VARIABLE):
        return token
    workdir.mkdir(parents=True, exist_ok=True)
    path = workdir / FILE
    if path.exists() and (kept := path.read_text(encoding="utf-8").strip()):
        return kept
    unfinished = workdir / f"{FILE}.{secrets.token_hex(4)}"
    with open(
        os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(token := secrets.token_hex(32))
    os.replace(unfinished, path)
    return token


def wait_for_token(workdir: Path, process: int) -> str:
    """Return the lead's token, as process `process`.

    Raises:
      ValueError: there is none, neither in the environment nor in the working directory.
    """
    if token := os.environ.get(VARIABLE):
        return token
    path = workdir / FILE
    end = time.monotonic() + _SEEN_SECONDS
    while True:
        with contextlib.suppress(FileNotFoundError):
            if token := path.read_text(encoding="utf-8").strip():
                return token
        if time.monotonic() > end:
            raise ValueError(
                f"process {process} finds no token: {path} does not exist; give a --workdir that "
                f"all hosts share, or the same {VARIABLE} to all"
            )
        time.sleep(0.2)


def proof(token: str, *message: object) -> str:
    """Return the keyed digest that shows that the sender of `message` has `token`."""
    return hmac.new(
        token.encode(), "|".join(map(str, message)).encode(), hashlib.sha256
    ).hexdigest()


def is_proof(given: object, token: str, *message: object) -> bool:
    """Return whether `given` is the proof of `message`; the comparison takes constant time."""
    return isinstance(given, str) and hmac.compare_digest(
        given.encode(), proof(token, *message).encode()
    )
