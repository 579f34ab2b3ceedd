"""The dialogues of programs that cannot run in a test: recorded, or read from their sources. The
first line of each file says which."""

from pathlib import Path

import pytest
from dialogue import NOTHING, read_dialogue
from engine_in_process import InProcess
from moves_in_process import MovesInProcess

HERE = Path(__file__).parent / "dialogues"
ENGINES = {
    "lizzie": lambda: InProcess(9).ask,
    "gogui": lambda: InProcess(5).ask,
    "lizgoban": lambda: InProcess(9).ask,
    "cutechess": lambda: MovesInProcess("chess").answer,
    "gnomechess": lambda: MovesInProcess("chess").answer,
    "polyglot": lambda: MovesInProcess("chess").answer,
    "pychess": lambda: MovesInProcess("chess").answer,
    "shogihome": lambda: MovesInProcess("shogi").answer,
}


def test_every_dialogue_has_an_engine() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == set(ENGINES)


@pytest.mark.parametrize("program", ENGINES)
def test_the_engine_answers_as_the_program_expects(program: str) -> None:
    ask = ENGINES[program]()
    exchanges = read_dialogue(HERE / f"{program}.txt")
    assert len(exchanges) >= 10
    for exchange in exchanges:
        answer = ask(exchange.raw)
        assert exchange.fits(answer), (
            f"{program}, line {exchange.line_number}: {exchange.sent}\n{answer}"
        )


def test_an_answer_that_differs_does_not_fit() -> None:
    exchange = next(e for e in read_dialogue(HERE / "lizzie.txt") if "komi" in e.sent)
    assert exchange.fits("=4\n\n") and not exchange.fits("?4 unknown command\n\n")
    assert exchange.expected != NOTHING
