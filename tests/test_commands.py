"""Every command that README.md and the pages show exists, and its flags parse; nothing is run."""

import functools
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import tyro

from azero.bench import Part
from azero.commands import endings, publish
from azero.commands.main import COMMANDS, main
from azero.commands.plan import parse_plan
from azero.experiment import MULTI_STAGE, NAMES, load
from azero.train.alphago2016 import run as alphago
from azero.train.arguments import parse_arguments

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted(set((ROOT / "docs").glob("*.md")) - set((ROOT / "docs").glob("adding-*.md"))),
]
"""What the other pages add is learned by tests/test_docs.py."""
RECORDS = sorted((ROOT / "experiments").rglob("README.md"))


def shown_commands(pages: list[Path]) -> dict[str, str]:
    """The commands of the pages by their text, and where each one is: lines of shell examples, and
    what stands with its flags in a sentence."""
    found: dict[str, str] = {}
    for page in pages:
        text = page.read_text()
        fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        lines = [line for block in fenced for line in expanded(block.replace("\\\n", " "))]
        lines += [span for span in re.findall(r"`([^`\n]+)`", text) if " --" in span]
        for line in lines:
            if re.match(
                r"(\.venv/bin/)?(azero|python -m azero\.(experiments|commands)\.\w+) ", line
            ):
                found.setdefault(line.removeprefix(".venv/bin/"), str(page.relative_to(ROOT)))
    return found


def expanded(block: str) -> list[str]:
    """Return the lines of a shell example with its variables replaced by their values."""
    values: dict[str, str] = {}
    lines = []
    for line in block.splitlines():
        line = re.sub(r"\$([A-Z]+)", lambda found: values.get(found[1], found[0]), line)
        if assigned := re.fullmatch(r'([A-Z]+)="(.*)"', line):
            values[assigned[1]] = assigned[2]
        lines.append(line)
    return lines


@functools.cache
def parser_of(command: str):
    """The command with its arguments, doing nothing."""

    @functools.wraps(COMMANDS[command])
    def nothing(*args, **kwargs) -> None:
        return None

    return nothing


def parse(words: list[str]) -> None:
    """Parse a command line; SystemExit says that a flag is wrong."""
    if words[0] == "azero":
        if words[-1] == "--help":
            return
        assert words[1] in COMMANDS, f"there is no azero {words[1]}"
        if words[1] == "bench":
            parse_bench(words[2], words[3:])
            return
        if words[1] == "train":  # its flags are those of an experiment
            parse([*["python", "-m"], f"azero.experiments.{words[2]}", *words[3:]])
            return
        if words[1] == "plan":  # the same
            parse_plan(words[2:])
            return
        tyro.cli(parser_of(words[1]), args=words[2:])
        return
    name = words[2].rpartition(".")[2]
    if name in NAMES:
        parse_arguments(load(name), words[3:])
    elif name in MULTI_STAGE:
        alphago.parse(alphago.load_stages(name), words[3:])
    elif name == "endings":
        tyro.cli(endings.EndingsRequest, args=words[3:])
    elif name == "publish":
        tyro.cli(publish.PublishRequest, args=words[3:])
    else:
        assert hasattr(importlib.import_module(words[2]), "main"), f"{words[2]} is no command"


class Parsed(Exception):
    """Raised where the work would begin."""


def parse_bench(part: str, words: list[str]) -> None:
    """Parse the flags of a benchmark; each has its own."""
    assert part in get_args(Part), f"there is no azero bench {part}"
    module = importlib.import_module(f"azero.bench.{'everything' if part == 'all' else part}")

    def begin(*args, **kwargs) -> None:
        raise Parsed

    own = [value for name, value in vars(module).items() if name.endswith("Arguments")]
    if own:
        tyro.cli(own[0], args=words)
        return
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Parsed):
        patch.setattr(module, "run", begin)
        module.main(words)


@pytest.mark.parametrize("pages", [PAGES, RECORDS], ids=["pages", "records"])
def test_every_command_parses(
    pages: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    commands = shown_commands(pages)
    assert len(commands) > 40
    for line, page in commands.items():
        try:
            parse(shlex.split(line, comments=True))
        except SystemExit:
            pytest.fail(f"{page}: {line}\n{capsys.readouterr().err}")


def test_a_wrong_flag_does_not_parse(capsys: pytest.CaptureFixture[str]) -> None:
    for line in (
        "azero gtp --checkpont runs/go9",
        "python -m azero.experiments.go5 --search.num-simulation 3",
        "azero data import games --out x --min-rnk 6d",
    ):
        with pytest.raises(SystemExit):
            parse(shlex.split(line))
    assert capsys.readouterr().err


def test_a_misspelt_flag_is_compared_with_the_flags_of_its_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["azero", "gtp", "--checkpont", "runs/go9"])
    with pytest.raises(SystemExit):
        main()
    output = "".join(capsys.readouterr())
    assert "--checkpoint" in output and "azero gtp --help" in output
    assert "azero play" not in output and "azero uci" not in output


@pytest.mark.parametrize(
    "words",
    [
        "azero match --help",
        "azero models",
        "azero.experiments.go9 --help",
        "azero.experiments.alphago9 --help",
    ],
)
def test_a_reader_that_goes_is_no_error(words: str) -> None:
    """`azero match --help | head -1`."""
    command = [sys.executable, "-m", *words.split()]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["report", ""], "argument 2"),
        (["match", "--first", "go5", "--second", "go5", "--out", ""], "--out"),
        (["data", "import", "games", "--out="], "--out"),
    ],
)
def test_an_empty_word_is_not_the_current_directory(
    words: list[str],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["azero", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert capsys.readouterr().err == f"azero: {name} is empty (an unset variable?)\n"
