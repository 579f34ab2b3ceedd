"""docs/papers.md is true: the files, names, settings and commands of its tables exist, and its
figures stand in the pages that it names."""

import ast
import contextlib
import functools
import importlib
import io
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest
import tyro

from azero.bench import Part
from azero.commands.main import COMMANDS
from azero.experiment import MULTI_STAGE, NAMES, load
from azero.players.specs import parse_player
from azero.train.alphago2016.config import STAGES
from azero.train.alphago2016.run import load_stages, parse
from azero.train.arguments import parse_arguments

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers.md"
COLUMNS = ["where", "the paper", "code and settings", "command", "published", "ours", "verdict"]
MEASURED = {"reproduced", "not reproduced"}
VERDICTS = {
    *MEASURED,
    "as published",
    "departs",
    "cannot be seen at this size",
    "missing",
}


class Row(NamedTuple):
    where: str
    statement: str
    code: str
    command: str
    published: str
    ours: str
    verdict: str


def read_rows() -> list[Row]:
    rows, lines = [], PAGE.read_text().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("|") and [c.strip() for c in line.strip("|").split("|")] == COLUMNS:
            for below in lines[number + 2 :]:
                if not below.startswith("|"):
                    break
                cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", below.strip("|"))]
                assert len(cells) == len(COLUMNS), below
                rows.append(Row(*cells))
    return rows


ROWS = read_rows()


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@functools.cache
def names_in(path: str) -> set[str]:
    """Return the names that a module defines, those in its classes as Class.name."""
    found = set()

    def look(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(prefix + node.name)
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{prefix}{node.name}.")
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            found.update(prefix + one.id for one in targets if isinstance(one, ast.Name))

    look(ast.parse((ROOT / path).read_text()).body, "")
    return found


def value_of(experiment: str, setting: str) -> object:
    """Return a setting of an experiment as it stands: `search.c-puct` of `go19`."""
    value: object = (load_stages if experiment in MULTI_STAGE else load)(experiment).config
    for part in setting.replace("-", "_").split("."):
        value = getattr(value, part)
    return value


def check_code(text: str) -> None:
    """Check `azero/file.py: name, Class.name` or `experiment: setting = value`."""
    if found := re.fullmatch(r"(azero/[\w/]+\.py)(?:: (.+))?", text):
        path, names = found.groups()
        assert (ROOT / path).is_file(), text
        wanted = set(names.split(", ")) if names else set()
        assert wanted <= names_in(path), f"{path} has no {wanted - names_in(path)}"
    elif found := re.fullmatch(r"(\w+): ([\w.-]+) = (.+)", text):
        experiment, setting, wanted = found.groups()
        value = value_of(experiment, setting)
        assert wanted == str(value).replace("'", "") or _literal(wanted) == value, (
            f"{text}: it is {value}"
        )
    else:
        raise AssertionError(f"{text!r} is neither a file with names nor a setting with its value")


def _literal(text: str) -> object:
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(text)
    return text


def check_command(text: str) -> None:
    """Parse a command of the page as the program does, without running it."""
    words = [word.replace("DIR", "runs/x") for word in shlex.split(text)]
    for word in words:
        if re.match("(apv|checkpoint|model|random-net|uci|usi):|go9", word):
            with contextlib.suppress(ValueError):
                parse_player(word)
                continue
            pytest.fail(f"{word} is no player")
    if words[0] == "pytest":
        path = words[-1].partition("::")
        assert (ROOT / path[0]).exists(), text
        assert not path[2] or f"def {path[2]}(" in (ROOT / path[0]).read_text(), text
    elif words[:2] == ["python", "-m"]:
        check_module(words[2], words[3:])
    else:
        assert words[0] == "azero", text
        check_azero(words[1], words[2:])


def check_module(module: str, arguments: list[str]) -> None:
    room, name = module.rsplit(".", 1)
    if room != "azero.experiments":
        assert callable(importlib.import_module(module).main), module
    elif name in MULTI_STAGE:
        stages = parse(load_stages(name), arguments).stages
        assert set(stages) <= set(STAGES), arguments
    else:
        assert name in NAMES
        parse_arguments(load(name), arguments)


def check_azero(command: str, arguments: list[str]) -> None:
    assert command in COMMANDS, command
    if command == "bench":
        assert arguments[0] in Part.__args__, arguments
    elif command != "plan":  # its flags are those of an experiment
        ran: list[object] = []
        cli = _recorder(COMMANDS[command], ran)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                tyro.extras.subcommand_cli_from_dict(
                    {command: cli, "-": _nothing}, args=[command, *arguments]
                )
            except SystemExit:
                pytest.fail(f"azero {command} {' '.join(arguments)}: {said.getvalue()}")
        assert ran


def _nothing() -> None:
    """Be the other command."""


def _recorder(function, ran: list[object]):
    """Return a function with the same arguments that notes its call and does nothing."""

    @functools.wraps(function)
    def record(*args, **options):
        ran.append((args, options))

    return record


def test_the_tables_are_complete():
    assert len(ROWS) > 120
    for row in ROWS:
        assert row.verdict in VERDICTS, row
        assert row.where and row.statement, row
        if row.verdict in ("departs", *MEASURED):
            assert row.ours, f"how does it differ? {row}"
        if row.verdict not in ("missing", "cannot be seen at this size"):
            assert row.code or row.command, row
        if row.verdict in MEASURED:
            assert row.command and row.published, f"what was measured, and how? {row}"


@pytest.mark.parametrize("text", sorted({text for row in ROWS for text in quoted(row.code)}))
def test_files_names_and_settings_are_there(text):
    check_code(text)


@pytest.mark.parametrize("text", sorted({text for row in ROWS for text in quoted(row.command)}))
def test_commands_are_understood(text):
    check_command(text)


def test_our_figures_stand_in_the_pages_that_are_named():
    for row in ROWS:
        pages = [PAGE.parent / link for link in re.findall(r"\]\(([^)#]+)\)", row.ours)]
        if row.verdict in MEASURED:
            assert pages, f"a measured figure names its page: {row}"
        text = " ".join(page.read_text() for page in pages)
        shown = re.sub(r"\]\([^)]*\)", "", row.ours)
        for number in re.findall(r"\d+\.\d+" if pages else r"\d+\.\d+%", shown):
            assert number in text, f"{number} is not in {pages}: {row.ours}"


def test_the_checks_can_fail():
    for wrong in (
        "azero/search/puct.py: no_such_function",
        "azero/search/no_such_file.py",
        "go19: search.num-simulations = 1601",
        "something else",
    ):
        with pytest.raises(AssertionError):
            check_code(wrong)
    for wrong in (
        "azero nothing",
        "azero match --frist a --second b",
        "python -m azero.experiments.go9 --search.nothing 1",
        "python -m azero.experiments.alphago9 --stages nothing",
        "azero bench nothing",
        "pytest tests/test_papers.py::test_nothing",
    ):
        with pytest.raises((AssertionError, SystemExit, ValueError, pytest.fail.Exception)):
            check_command(wrong)
