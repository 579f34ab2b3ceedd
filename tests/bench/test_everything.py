"""`azero bench all`: records are kept as they come and not made twice, a part that fails is named,
and the table has the command beside each number."""

import dataclasses
import io
import json

import pytest
from rich.console import Console

from azero.bench import everything, run_bench
from azero.bench.parts import PARTS, Figure, Record, installed

DONE = Record(
    "train",
    "done",
    "1 x abacus",
    True,
    1.5,
    [Figure("train step", "12 positions/s", "azero bench train")],
)
FAILED = Record("games", "failed", "1 x abacus", True, 2.0, reason="no beads")


@pytest.fixture
def stubbed(monkeypatch):
    """Parts that are measured without a process; returns the list of their names."""
    measured = []

    def measure(name, device, quick):
        measured.append(name)
        return dataclasses.replace(
            FAILED if name == "games" else DONE, part=name, device=device, quick=quick
        )

    monkeypatch.setattr(everything, "_child", lambda *arguments: "1 x abacus")
    monkeypatch.setattr(everything, "measure", measure)
    return measured


def test_records_are_kept_and_what_is_done_is_not_measured_again(tmp_path, stubbed):
    file, output = tmp_path / "records.jsonl", io.StringIO()
    arguments = everything.EverythingArguments(
        quick=True, json=file, resume=True, only=("train", "games")
    )
    first = everything.run(arguments, Console(file=output))
    assert everything.read_records(file) == first and stubbed == ["train", "games"]
    assert "games: failed: no beads" in output.getvalue()
    assert everything.run(arguments, Console(file=output)) == first
    assert stubbed == ["train", "games", "games"], "only what failed is tried again"
    everything.run(
        dataclasses.replace(arguments, quick=False, only=("train",)), Console(file=output)
    )
    assert stubbed[-1] == "train", "a short measurement is none of the whole one"


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path, stubbed):
    file = tmp_path / "records.jsonl"
    arguments = everything.EverythingArguments(quick=True, json=file, only=("train",))
    first = everything.run(arguments, Console(file=io.StringIO()))
    file.write_text(file.read_text() + '{"part": "tr')
    assert everything.read_records(file) == first
    assert everything.read_records(tmp_path / "none.jsonl") == []
    second = everything.run(arguments, Console(file=io.StringIO()))
    assert everything.read_records(file) == first + second
    file.write_text(json.dumps({"part": "train"}) + "\n")
    with pytest.raises(ValueError, match="is not a file of azero bench all"):
        everything.read_records(file)


def test_the_table_names_the_command_and_what_is_missing():
    text = everything.markdown(
        [DONE, FAILED, dataclasses.replace(DONE, device="8 x other", quick=False)]
    )
    assert "| train step | 12 positions/s | `azero bench train` |" in text
    assert "- games (failed): no beads" in text
    assert text.count("### ") == 2 and "### 1 x abacus, shortened by --quick" in text


def test_a_part_that_fails_in_its_process_is_named(monkeypatch):
    monkeypatch.setitem(PARTS, "broken", PARTS["train"])  # known here, unknown in the process
    record = everything.measure("broken", "1 x abacus", True)
    assert (record.part, record.status, record.device) == ("broken", "failed", "1 x abacus")
    assert "KeyError: 'broken'" in record.reason


def test_mistakes():
    with pytest.raises(ValueError, match="unknown part 'chess'; the parts are: network, train"):
        everything.run(everything.EverythingArguments(only=("chess",)), Console(file=io.StringIO()))
    with pytest.raises(ValueError, match="--json FILE"):
        everything.run(everything.EverythingArguments(resume=True), Console(file=io.StringIO()))


def test_what_does_not_fit_a_cpu_is_skipped_and_a_missing_peer_is_said(capsys):
    record = everything.measure("loop 19x19", "2 x cpu", quick=True)
    assert record.status == "skipped" and "takes too long on a CPU" in record.reason
    assert installed("a_program_that_nobody_has") is None
    assert "is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--batch", "0"], "--batch is at least 1, not 0"),
        (["train", "--steps", "-3"], "--steps is at least 1, not -3"),
        (["search", "--num-simulations", "0"], "--num-simulations is at least 1, not 0"),
        (["engine", "--batches", "8", "0"], "--batches is at least 1, not 0"),
        (["engine", "--visits", "0"], "--visits is at least 1, not 0"),
        (["loop", "--iterations", "0"], "--iterations is at least 1, not 0"),
        (["scaling", "--devices", "0"], "--devices is at least 1, not 0"),
        (["games", "--seconds", "0"], "--seconds is above 0, not 0"),
        (["rollouts", "--seconds", "nan"], "--seconds is above 0, not nan"),
    ],
)
def test_numbers_that_measure_nothing_are_refused(words, message):
    with pytest.raises(ValueError, match=message):
        run_bench(words[0], words[1:])
