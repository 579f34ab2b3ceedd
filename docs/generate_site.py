"""The pages of the site that are made from the code and the runs, and links to files outside docs/.

A hook of MkDocs (mkdocs.yml). The front page is README.md, the gallery is experiments/, the
reference is read from the package. A link to any other file of the repository leads to a copy of
it, so that the site is whole without a network.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from site_reference import PAGES  # noqa: E402 - beside this file

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#:]+)((?:#[^)]*)?\))")
"""A Markdown link to a file: what is before the target, the target, its anchor."""
OPTIONAL = {"papers.md": "Explanation", "tuning.md": "How-to"}
"""Pages that are in the navigation once they exist, and their sections."""


def on_config(config: Any) -> Any:
    """Put the gallery, and optional pages that are there, into the navigation."""
    for section in config["nav"]:
        for title, entries in section.items():
            if title == "Gallery":
                entries[:] = ["gallery/index.md", *map(site_path, gallery_sources())]
            elif isinstance(entries, list):
                there = [page for page, place in OPTIONAL.items() if place == title]
                entries += [page for page in there if (ROOT / "docs" / page).exists()]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs/, and the files that pages link to."""

    def add(path: str, content: str | bytes) -> None:
        files.append(File.generated(config, path, content=content))

    sources = [Path("README.md"), *gallery_sources()]
    for source in sources:
        add(site_path(source), (ROOT / source).read_text(encoding="utf-8"))
    add("gallery/index.md", gallery())
    for path, page in PAGES.items():
        add(path, page())
    sources += [Path("docs") / path.name for path in (ROOT / "docs").glob("*.md")]
    for target in sorted({target for source in sources for target in linked_files(source)}):
        if files.get_file_from_path(site_path(target)) is None and (ROOT / target).is_file():
            add(site_path(target), (ROOT / target).read_bytes())
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    here = page.file.src_uri
    source = repository_path(here)
    if source is None:
        return markdown

    def link(match: re.Match[str]) -> str:
        target = site_path(resolve(source, match[2]))
        return f"{match[1]}{os.path.relpath(target, Path(here).parent)}{match[3]}"

    return LINK.sub(link, markdown)


def gallery_sources() -> list[Path]:
    """Return the pages of the runs, each in its directory."""
    runs = sorted((ROOT / "experiments").rglob("README.md"))
    return [path.relative_to(ROOT) for path in runs]


def gallery() -> str:
    """Return the page that lists the runs with their questions and verdicts."""
    lines = [
        "# Gallery of runs\n",
        "Every run that backs a claim: its question, its command, what came of it. Each has a",
        "directory in `experiments/` with settings, metrics and matches, from which `azero report`",
        "makes its page.\n",
    ]
    for source in gallery_sources():
        text = (ROOT / source).read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        lines.append(f"## [{title}]({Path(site_path(source)).relative_to('gallery')})\n")
        for word in ("Question", "Verdict"):
            found = re.search(rf"^\*\*{word}\.\*\* (.*?)(?:\n\n|\Z)", text, re.M | re.S)
            if found is not None:
                lines.append(f"**{word}.** {LINK.sub(_text_alone, found[1])}\n")
    return "\n".join(lines)


def _text_alone(link: re.Match[str]) -> str:
    return link[1].removesuffix("(")


def linked_files(source: Path) -> list[Path]:
    """Return the files of the repository that a page links to."""
    text = (ROOT / source).read_text(encoding="utf-8")
    return [resolve(source, match[2]) for match in LINK.finditer(text)]


def resolve(source: Path, target: str) -> Path:
    """Return what a relative link in the file `source` leads to, from the root."""
    return Path(os.path.normpath(source.parent / target))


def site_path(path: Path) -> str:
    """Return where a file of the repository is in the site."""
    if path == Path("README.md"):
        return "index.md"
    if path.parts[0] == "docs":
        return path.relative_to("docs").as_posix()
    if path.parts[0] == "experiments" and path.name == "README.md":
        return f"gallery/{path.parent.relative_to('experiments')}.md"
    return f"files/{path.as_posix()}"


def repository_path(page: str) -> Path | None:
    """Return the file of the repository that a page of the site is; None for a made one."""
    sources = [Path("README.md"), *gallery_sources(), Path("docs") / page]
    return next((p for p in sources if site_path(p) == page and (ROOT / p).exists()), None)
