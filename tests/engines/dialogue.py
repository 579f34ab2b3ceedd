"""Written GTP dialogues.

A dialogue is a text file. A line that begins with "> " is sent, with Python's backslash escapes for
what cannot be printed; the lines after it, up to the next "> ", are the answer, where "<...>"
stands for any text and a line "<nothing>" for no answer at all. Lines that begin with "## " are
headings.
"""

import re
from pathlib import Path
from typing import NamedTuple

NOTHING = "<nothing>"


class Exchange(NamedTuple):
    line_number: int
    sent: str
    expected: str

    @property
    def raw(self) -> bytes:
        return self.sent.encode("ascii").decode("unicode_escape").encode("latin-1")

    def fits(self, answer: str) -> bool:
        if self.expected == NOTHING:
            return answer == ""
        pattern = ".*".join(re.escape(part) for part in self.expected.split("<...>"))
        return re.fullmatch(
            pattern, answer.removesuffix("\n\n"), re.DOTALL
        ) is not None and answer.endswith("\n\n")


def read_dialogue(path: Path) -> list[Exchange]:
    exchanges: list[Exchange] = []
    sent: tuple[int, str] | None = None
    answer: list[str] = []

    def close() -> None:
        if sent is not None:
            exchanges.append(Exchange(*sent, "\n".join(answer)))
        answer.clear()

    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if line.startswith("> "):
            close()
            sent = (number, line[2:])
        elif not line.startswith("## ") and line:
            answer.append(line)
    close()
    return exchanges
