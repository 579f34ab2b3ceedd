"""Write docs/python-reference.md, the reference of the Python interface, from its docstrings:
`make reference`. A test compares the page with them."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import azero

PAGE = Path(__file__).with_name("python-reference.md")
HEAD = """# Reference of the Python interface

Made from the docstrings by `make reference`; [azero from Python](python.md) has the tour.
Everything that is not on this page is internal; `azero.Game`, what `azero.make` returns, is
described in [adding a game](adding-a-game.md).
"""


def reference() -> str:
    """Return the page."""
    functions = [name for name in azero.__all__ if inspect.isfunction(getattr(azero, name))]
    classes = [name for name in azero.__all__ if name not in functions and name != "Game"]
    parts = [
        HEAD,
        "## Functions\n",
        *(_function(f"azero.{n}", getattr(azero, n)) for n in functions),
    ]
    return "\n".join([*parts, "## Classes\n", *(_class(n, getattr(azero, n)) for n in classes)])


def _function(name: str, function: Any, level: str = "###") -> str:
    signature = inspect.signature(function)
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls") and not isinstance(parameter.default, Path)
    ]
    text = str(signature.replace(parameters=parameters))
    shown = name + re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations are kept as strings
    if len(shown) > 100:
        inside, _, result = shown.partition("(")[2].rpartition(") ->")
        rows = ",\n    ".join(re.split(r", (?=\*|\w+:)", inside))
        shown = f"{name}(\n    {rows},\n) ->{result}"
    return f"{level} `{name}`\n\n```\n{shown}\n```\n\n{_text(function)}\n"


def _text(value: Any) -> str:
    """Return a docstring as Markdown: its sections as lists."""
    lines, kept = inspect.cleandoc(value.__doc__ or "").splitlines(), []
    for line in lines:
        if re.fullmatch(r"(Args|Raises|Returns):", line):
            kept += [f"**{line}**", ""]
        elif match := re.fullmatch(r"  (\*?[\w, ]+): (.*)", line):
            kept.append(f"- `{match[1]}`: {match[2]}")
        else:
            kept.append(line.strip() if line.startswith("   ") else line)
    return "\n".join(kept).strip()


def _class(name: str, kind: type) -> str:
    parts = [f"### `azero.{name}`\n\n{_text(kind)}\n"]
    fields = _fields(kind)
    if fields:
        parts.append("\n".join([*fields, ""]))
    for member, value in vars(kind).items():
        value = getattr(value, "__func__", value)
        text = value.__doc__ or ""
        if member.startswith("_") or text.startswith("Internal"):
            continue
        if isinstance(value, property):
            parts.append(f"#### `{name}.{member}`\n\n{_text(value)}\n")
        elif inspect.isfunction(value):
            parts.append(_function(f"{name}.{member}", value, "####"))
    return "\n".join(parts)


def _fields(kind: type) -> list[str]:
    """Return the attributes with the strings below them."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    assert isinstance(tree.body[0], ast.ClassDef)
    body = tree.body[0].body
    if not dataclasses.is_dataclass(kind):
        body = next((n.body for n in body if getattr(n, "name", "") == "__init__"), [])
    rows = []
    for node, following in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign):
            continue
        name = ast.unparse(node.target).removeprefix("self.")
        if name.startswith("_"):
            continue
        text = ""
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            text = f": {' '.join(inspect.cleandoc(str(following.value.value)).split())}"
        rows.append(f"- `{name}: {ast.unparse(node.annotation)}`{text}")
    return rows


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    print(PAGE)
