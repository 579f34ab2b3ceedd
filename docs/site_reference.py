"""The reference pages of the site, read from the code: commands, settings, experiments, files of a
run, metrics."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib
import inspect
import io
import os
import re
import sys
import textwrap
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

from azero.bench import Part
from azero.commands.main import COMMANDS
from azero.config import Kind, find, to_dict
from azero.experiment import MULTI_STAGE, NAMES, load
from azero.report.schema import EVENTS, METRICS
from azero.settings import Config
from azero.train.arguments import Arguments, ClusterOptions

WIDTH = "84"
"""Columns of the help texts."""
WIDE = "---\nhide: [navigation]\n---\n\n"
"""Front matter of pages with wide tables."""
COMMANDS_OF_COMMANDS = {"bench": typing.get_args(Part)}
"""Arguments of a command that have flags of their own, other than tyro's subcommands."""
MODULES = ("endings", "opening_counts", "thinking_time", "publish")
"""Commands that are modules of `azero.commands`."""
UNITS = (
    "bytes", "games", "iterations", "moves", "points", "positions", "seconds", "share",
    "simulations", "steps", "visits",
)  # fmt: skip
"""First words of a setting's text that are its unit."""
FILE_MODULES = (
    ("The directory of a run", "azero.data.run_files"),
    ("A sample game", "azero.data.run_files:StoredGame"),
    ("The directory of a match", "azero.match.directory"),
    ("A game of a match", "azero.match.games:MatchGame"),
    ("A shard of positions", "azero.data.shard"),
    ("A file of arrays", "azero.data.files"),
    ("An exported network", "azero.checkpoint.exported"),
)
"""What the page of the file formats shows: the docstrings of modules, the fields of rows."""


def commands_page() -> str:
    """Return the help of every command."""
    parts = [f"{WIDE}# Commands\n", "`azero COMMAND --help` prints the same.\n"]
    for name in COMMANDS:
        text = help_of(name)
        parts.append(f"## azero {name}\n\n{_fenced(text)}")
        inner = COMMANDS_OF_COMMANDS.get(name) or subcommands(text)
        for word in inner:
            if text := help_of(name, word):
                parts.append(f"### azero {name} {word}\n\n{_fenced(text)}")
    for name in MODULES:
        module = f"azero.commands.{name}"
        parts.append(f"## python -m {module}\n\n{_fenced(help_of(module=module))}")
    parts.append(
        "## python -m azero.experiments.NAME\n\nThe same as `azero train NAME`; the flags are the "
        "[settings](settings.md) of the experiment, and\n\n"
        + _table(Arguments, "", skip=("settings", "elastic"))
        + _table(ClusterOptions, "")
    )
    return "\n".join(parts)


def help_of(*words: str, module: str = "azero.commands.main") -> str:
    """Return what `azero WORDS --help`, or a module, prints; nothing where there are no flags."""
    output, program = io.StringIO(), "azero" if words else f"python -m {module}"
    with (
        mock.patch.object(sys, "argv", [program, *words, "--help"]),
        mock.patch.dict(os.environ, {"COLUMNS": WIDTH, "NO_COLOR": "1"}),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        importlib.import_module(module).main()
    return output.getvalue().strip()


def subcommands(text: str) -> list[str]:
    """Return the subcommands in a help text."""
    found = re.search(r"usage: azero \w+ \[-h\] \{([\w,-]+)\}", text)
    return found[1].split(",") if found else []


def settings_page() -> str:
    """Return all settings of an experiment, by table."""
    parts = [
        f"{WIDE}# Settings\n",
        "All settings of an experiment. `--TABLE.NAME VALUE` on the command line (with hyphens), "
        "`NAME = VALUE` below `[TABLE]` in an overlay (`--config`), `{'TABLE.NAME': VALUE}` in "
        "`azero.run_experiment`. An experiment sets its own values on top of these defaults: "
        "[experiments](experiments.md). *Source* is where a value comes from; without one it is "
        "ours.\n",
    ]
    for field in dataclasses.fields(Config):
        kind = type(getattr(Config(), field.name))
        family = next((c for c in kind.__mro__ if Kind in c.__bases__), None)
        classes = [kind] if family is None else [family, *_kinds(family)]
        parts.append(f"## {field.name}\n")
        for member in classes:
            if family is not None:
                parts.append(f"### {_kind_title(field.name, member, family)}\n")
            parts.append(f"{inspect.cleandoc(member.__doc__ or '')}\n")
            parts.append(_table(member, f"{field.name}.", skip=("name",)))
    parts.append("## Sources\n")
    parts += [f"* {key}: {text}" for key, text in _all_sources().items()]
    return "\n".join(parts) + "\n"


def _kinds(family: type[Kind]) -> list[type]:
    """Return the classes of a family, each after those that it inherits settings from."""
    classes: list[type] = []
    for name in family.KINDS:
        chain = [c for c in family.kind(name).__mro__ if issubclass(c, family) and c is not family]
        classes += [c for c in reversed(chain) if c not in classes]
    return classes


def _kind_title(table: str, member: type, family: type[Kind]) -> str:
    """Return the name of a kind, or of those that share the settings of a class."""
    heirs = [name for name in family.KINDS if issubclass(family.kind(name), member)]
    own = [name for name in heirs if family.kind(name) is member]
    if member is family:
        return f"every {table}"
    if not own:
        return f"{', '.join(heirs)}"
    others = [name for name in heirs if name not in own]
    return f"{table}.name {own[0]}" + (f" (and {', '.join(others)})" if others else "")


def _table(kind: type, prefix: str, skip: Sequence[str] = ()) -> str:
    """Return the settings that a class has of its own, as a table; empty where there are none."""
    texts = _field_texts(kind)
    sources = "|".join(_all_sources())
    rows = []
    for field in dataclasses.fields(kind):
        if field.name not in texts or field.name in skip:
            continue
        annotation, text = texts[field.name]
        found = [m for m in _brackets(text) if re.search(rf"\b({sources}|unpublished)\b", m)]
        for source in found:
            text = text.replace(f" ({source})", "").replace(f"({source})", "")
        cells = (
            f"`{prefix}{field.name.replace('_', '-')}`",
            f"`{annotation}`",
            f"`{_default(field)}`",
            _unit(field.name, text),
            text,
            "; ".join(found),
        )
        rows.append(_row(cells))
    if not rows:
        return ""
    head = "| setting | type | default | unit | what it is | source |\n|---|---|---|---|---|---|"
    return "\n".join([head, *rows]) + "\n"


def _row(cells: Sequence[str]) -> str:
    """Return a row of a table; a bar inside code needs no escape."""
    return " | ".join(
        ["", *(c if c[:1] == "`" else c.replace("|", "\\|") for c in cells), ""]
    ).strip()


def _field_texts(kind: type) -> dict[str, tuple[str, str]]:
    """Return the type and the text of every field that a class defines itself."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    texts = {}
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or "ClassVar" in ast.unparse(node.annotation):
            continue
        text = ""
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            text = " ".join(str(following.value.value).split())
        texts[ast.unparse(node.target)] = (ast.unparse(node.annotation), text)
    return texts


def _brackets(text: str) -> Iterator[str]:
    """Return what stands in the outermost parentheses of a text."""
    depth, start = 0, 0
    for place, letter in enumerate(text):
        if letter == "(":
            start, depth = (place + 1, 1) if depth == 0 else (start, depth + 1)
        elif letter == ")" and depth:
            depth -= 1
            if depth == 0:
                yield text[start:place]


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return repr(field.default_factory())
    return "required"


def _unit(name: str, text: str) -> str:
    """Return the unit of a setting: the end of its name, or the first word of its text."""
    words = [name.rpartition("_")[2], *re.findall(r"\w+", text.lower())[:1]]
    return next((word for word in words if word in UNITS), "")


def _all_sources() -> dict[str, str]:
    """Return the abbreviations in the docstrings of the modules of settings: "Sources: AGZ = ...;
    AZ = ..."."""
    kinds = [type(getattr(Config(), field.name)) for field in dataclasses.fields(Config)]
    found = {}
    for module in {sys.modules[kind.__module__] for kind in kinds}:
        text = " ".join((module.__doc__ or "").split()).partition("Sources: ")[2].rstrip(".")
        pairs = [entry.partition(" = ") for entry in text.split("; ")]
        found.update({key.strip(): value for key, equals, value in pairs if equals})
    return dict(sorted(found.items()))


def experiments_page() -> str:
    """Return the experiments, and the settings of each that differ from the defaults."""
    parts = [
        "# Experiments\n",
        "What `azero train NAME` learns, and where it differs from the default "
        "[settings](settings.md).\n",
    ]
    usual = dict(_flat(to_dict(Config())))
    for name in NAMES:
        experiment = load(name)
        own = dict(_flat(to_dict(experiment.config)))
        lines = [f"{key} = {value!r}" for key, value in own.items() if usual.get(key) != value]
        parts.append(f"## {name}\n\n{experiment.title}\n\n{_fenced(chr(10).join(lines))}")
    for name in MULTI_STAGE:
        title = find(f"azero.experiments.{name}:EXPERIMENT").title
        parts.append(f"## {name}\n\n{title} ([stages](../alphago2016.md))\n")
    return "\n".join(parts)


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def files_page() -> str:
    """Return what is in the files that azero writes, in the words of the modules that do."""
    parts = [
        "# Files\n",
        "Games are SGF, PGN, CSA, KIF and KI2 ([matches](../matches.md), [records](../human.md)); "
        "networks of others are on the page of [other programs](../interop.md). The files below "
        "are azero's own.\n",
    ]
    for title, path in FILE_MODULES:
        module, _, name = path.partition(":")
        value = find(path) if name else importlib.import_module(module)
        parts.append(f"## {title}\n\n{_fenced(inspect.cleandoc(value.__doc__ or ''))}")
        if name:
            texts = _field_texts(value).items()
            rows = [_row((f"`{key}`", f"`{kind}`", text)) for key, (kind, text) in texts]
            parts.append("\n".join(["| key | type | what it is |\n|---|---|---|", *rows]) + "\n")
        parts.append(f"Written by `{module}`.\n")
    return "\n".join(parts)


def metrics_page() -> str:
    """Return the keys of metrics.jsonl and the kinds of events."""
    parts = [
        "# Metrics\n",
        "A row of `metrics.jsonl` for every iteration, the same numbers in TensorBoard and, with "
        "`--run.wandb`, in Weights & Biases. A key that a run has no number for is missing.\n",
        "| key | what it is |\n|---|---|",
        *(f"| `{key}` | {text} |" for key, text in METRICS.items()),
        "\n## Events\n",
        "A row of `events.jsonl`: `time`, `iteration`, `kind`, and what its kind adds.\n",
        "| kind | what it is |\n|---|---|",
        *(f"| {kind} | {text} |" for kind, text in EVENTS.items()),
    ]
    return "\n".join(parts) + "\n"


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```\n"


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands_page,
    "reference/settings.md": settings_page,
    "reference/experiments.md": experiments_page,
    "reference/files.md": files_page,
    "reference/metrics.md": metrics_page,
}
"""The pages, by their places in the site."""
