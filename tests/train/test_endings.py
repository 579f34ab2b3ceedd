"""Files of endings, and runs that begin with positions of a file."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from small_runs import digests, quiet_run, tiny

from azero.checkpoint.exported import exported_path, read_exported_settings, write_exported
from azero.commands.endings import EndingsRequest, main, write_endings
from azero.data.run_files import write_config
from azero.experiment import load
from azero.games.chess.text import board_of_fen
from azero.settings import Config
from azero.train.loop import START_POSITIONS
from azero.train.resolving import resolve_settings

pytestmark = pytest.mark.usefixtures("shared_programs", "two_devices")


def test_endings_have_the_pieces_that_were_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "endings.txt"
    count = write_endings(EndingsRequest(path, ("KQk", "KPkp"), count=40, seed=3))
    lines = path.read_text().splitlines()
    assert len(lines) == count >= 38
    pieces = {
        "".join(sorted(letter for letter in line.split()[0] if letter.isalpha())) for line in lines
    }
    assert pieces == {"KQk", "Kkq", "KPkp"}
    assert all(board_of_fen(line).actions for line in lines)
    write_endings(EndingsRequest(tmp_path / "again.txt", ("KQk", "KPkp"), count=40, seed=3))
    assert (tmp_path / "again.txt").read_text() == path.read_text()


def test_kings_at_the_edge(tmp_path: Path) -> None:
    path = tmp_path / "endings.txt"
    write_endings(EndingsRequest(path, count=60, at_edge=1.0, seed=1))
    for line in path.read_text().splitlines():
        rows = "".join(
            "." * int(letter) if letter.isdigit() else letter
            for letter in line.split()[0]
            if letter != "/"
        )
        lone = "k" if "Q" in rows or "R" in rows else "K"
        (rank, file), (other_rank, other_file) = (
            divmod(rows.index(king), 8) for king in (lone, lone.swapcase())
        )
        assert {rank, file} & {0, 7} and max(abs(rank - other_rank), abs(file - other_file)) in (
            2,
            3,
        ), line


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--pieces", "KQ"], "'KQ' are not the pieces of an ending"),
        (["--count", "0"], "--count is at least 1, not 0"),
        (["--at-edge", "1.5"], "--at-edge is from 0 to 1, not 1.5"),
    ],
)
def test_bad_requests(flags: list[str], reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        main([*flags, "--out", str(tmp_path / "endings.txt")])


def from_file(path: Path) -> Config:
    config = tiny(load("animal_shogi").config)
    return dataclasses.replace(
        config,
        game=dataclasses.replace(config.game, start_positions=str(path), max_moves=12),
        evaluation=dataclasses.replace(config.evaluation, every=0),
    )


def test_a_run_keeps_its_start_positions(tmp_path: Path) -> None:
    path, workdir = tmp_path / "positions.txt", tmp_path / "run"
    workdir.mkdir()
    with pytest.raises(
        ValueError, match=r"cannot read the start positions in .*positions\.txt: No such file"
    ):
        resolve_settings(from_file(path), workdir)
    path.write_text("gl1/3/3/1L1 b 2c2eG 3\nno position\n")
    with pytest.raises(ValueError, match=rf"{path}, line 2"):
        resolve_settings(from_file(path), workdir)
    path.write_text("2l/3/3/1L1 b G 1\n")
    resolve_settings(from_file(path), workdir)  # of a start that was refused for something else
    path.write_text("gl1/3/3/1L1 b 2c2eG 3\n")
    write_config(workdir, resolve_settings(from_file(path), workdir))
    path.write_text("1l1/+C2/3/1L1 w 2Ge 2\n")
    with pytest.raises(ValueError, match="have changed since the run started"):
        resolve_settings(from_file(path), workdir)
    path.unlink()
    resolve_settings(from_file(path), workdir)
    assert (workdir / START_POSITIONS).read_text() == "gl1/3/3/1L1 b 2c2eG 3\n"


def test_an_exported_network_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    write_exported(tmp_path, {"params": {}}, 3, from_file(tmp_path / "positions.txt"))
    assert str(tmp_path).encode() not in exported_path(tmp_path).read_bytes()
    assert read_exported_settings(tmp_path)[1].game.start_positions == "positions.txt"


@pytest.mark.slow
def test_a_run_from_a_file_goes_on_bit_for_bit_from_its_own_copy(tmp_path: Path) -> None:
    path = tmp_path / "positions.txt"
    path.write_text("gl1/3/3/1L1 b 2c2eG 3\n1l1/+C2/3/1L1 w 2Ge 2\n")
    config = from_file(path)
    half = dataclasses.replace(config, run=dataclasses.replace(config.run, iterations=1))
    assert quiet_run("animal_shogi", config, tmp_path / "whole") == 0
    assert quiet_run("animal_shogi", half, tmp_path / "parts") == 0
    path.unlink()
    assert quiet_run("animal_shogi", config, tmp_path / "parts") == 0
    assert digests(tmp_path / "parts") == digests(tmp_path / "whole")
