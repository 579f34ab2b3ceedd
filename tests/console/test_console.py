"""Text from outside is shown as it is: brackets are no markup, whoever wrote them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import azero
from azero.console.progress import Progress, working
from azero.console.tables import facts_table, make_table
from azero.console.terminal import make_console
from azero.data.records.filters import Filters, Fractions
from azero.data.records.importing import run_import, show
from azero.data.records.requests import ImportRequest, ShowRequest
from azero.match.elo import Rating
from azero.match.score import Tally
from azero.report.ratings import matches_table, ratings_table
from azero.train.saving import print_checkpoints

NAMES = ["[/x]", "[red]", "[bold]a[/bold]", "[link=http://a]", "a\\[b]", ":smile:", "[[", "[/]"]


def test_every_console_is_made_in_one_place() -> None:
    root = Path(azero.__file__).parent
    makers = [
        f"{path.relative_to(root)}:{node.lineno}"
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", getattr(node.func, "attr", "")) in ("Console", "_Console")
    ]
    assert [maker.rpartition(":")[0] for maker in makers] == ["console/terminal.py"], makers


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_as_they_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    console = make_console(width=200)
    ratings = ratings_table([Rating(name, 0.0, -9.0, 9.0, 5.0, 3, 0.5)])
    for table in (
        make_table("table", (name,), [(name,)]),
        facts_table("facts", {name: name}),
        matches_table([(name, name, Tally(1, 1, 1), (0.1, 0.9))]),
        ratings,
    ):
        console.print(table)
    assert capsys.readouterr().out.count(name) == 2 + 2 + 2 + 1
    console.print(f"{name} ended", style="yellow", soft_wrap=True)
    with Progress(1, console=console) as progress, progress.working(name):
        progress.note(name)
        progress.update({"iteration": 1, "games": 1})
    with working(name, console):
        pass
    assert capsys.readouterr().out.count(name) == 4


@pytest.mark.parametrize("name", ["[/x]", "[red]"])
def test_directories_and_records_in_brackets(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    folder = tmp_path / f"a{name}"
    folder.mkdir(parents=True)
    with pytest.raises(ValueError, match=r"there is no run in .*: it has no config\.json"):
        print_checkpoints(folder)
    (folder / "config.json").touch()
    print_checkpoints(folder)
    assert f"a{name} has no checkpoint yet" in capsys.readouterr().out
    (folder / "[b].sgf").write_text(
        "(;SZ[9]PB[a]PW[\\[/x\\]]RE[B+R];B[ee];W[cc])(;SZ[9]RE[B+R];B[zz])"
    )
    run_import(ImportRequest((folder,), folder / "set", Filters(size=(9,)), Fractions(0.0, 0.0)))
    assert "[b].sgf game 2: not readable: [zz] is not a point" in capsys.readouterr().out
    show(ShowRequest(folder / "set", positions=1))
    output = capsys.readouterr().out
    assert f"a{name}/set" in output and "[b].sgf game 1: " in output
