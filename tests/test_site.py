"""The site builds strictly, every link of it leads somewhere, and its pages hold what the code
has."""

import contextlib
import html.parser
import os
import re
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import require_module

import azero
from azero.commands.main import COMMANDS
from azero.experiment import NAMES
from azero.settings import Config

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


class Page(html.parser.HTMLParser):
    """The links, the anchors and the text of a page; `loaded` is what a browser fetches by
    itself."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        if tag == "a" and (link := values.get("href")):
            self.links.append(link)
        if link := values.get("src") or (values.get("href") if tag == "link" else None):
            self.loaded.append(link)

    def handle_data(self, data: str) -> None:
        self.text += data


def problems(site: Path) -> list[str]:
    """Return the links that lead nowhere, and what is loaded from elsewhere; of a server's 404 page
    they are from the root."""
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    found = []
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            target, anchor = urllib.parse.urldefrag(urllib.parse.unquote(link))
            if re.match(r"https?:|mailto:|data:", target):
                if link in page.loaded:
                    found.append(f"{path.name} loads {link}")
                continue
            file = path if not target else Path(os.path.normpath(path.parent / target))
            if not file.exists() or (
                anchor and file in pages and anchor not in _anchors(pages[file])
            ):
                found.append(f"{path.name} links to {link}")
    return found


def _anchors(page: Page) -> set[str]:
    return page.anchors | {"__top", "__skip"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The site as `make site` builds it; a warning of MkDocs is an error."""
    require_module("material")
    config = require_module("mkdocs.config")
    build = require_module("mkdocs.commands.build")
    place = tmp_path_factory.mktemp("site")
    with contextlib.chdir(ROOT), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        build.build(config.load_config("mkdocs.yml", site_dir=str(place), strict=True))
    yield place


def test_every_link_leads_somewhere(site: Path) -> None:
    assert problems(site) == []
    assert {path.stem for path in DOCS.glob("*.md")} <= {path.stem for path in site.glob("*.html")}


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="there">B</h1>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there"></a><a href="b.html#gone"></a><a href="c.html"></a>'
        '<a href="https://example.org/"></a><script src="https://example.org/x.js"></script>'
    )
    assert problems(tmp_path) == [
        "a.html links to b.html#gone",
        "a.html links to c.html",
        "a.html loads https://example.org/x.js",
    ]


def test_the_reference_is_that_of_the_code(site: Path) -> None:
    commands = Page(site / "reference" / "commands.html").text
    for name in COMMANDS:
        assert f"usage: azero {name}" in commands
    assert "usage: azero data import" in commands and "--against" in commands
    settings = Page(site / "reference" / "settings.html").text
    for table in vars(Config()):
        assert f"{table}." in settings
    for text in ("search.c-puct", "AGZ: 1600; AZ: 800; GUM: 16 to 400", "network.name pooled"):
        assert text in settings
    experiments = Page(site / "reference" / "experiments.html")
    assert set(NAMES) <= experiments.anchors and "game.size = [5]" in experiments.text
    assert "policy_loss" in Page(site / "reference" / "metrics.html").text
    interface = Page(site / "python-reference.html")
    assert {f"azero.{name}" for name in azero.__all__} <= interface.anchors
    assert "azero.Model.search" in interface.anchors
    assert not {"azero.Model.held", "azero.Model.limits"} & interface.anchors


def test_the_gallery_has_every_run(site: Path) -> None:
    runs = list((ROOT / "experiments").glob("*/README.md"))
    gallery = Page(site / "gallery" / "index.html")
    assert {f"{path.parent.name}.html" for path in runs} <= set(gallery.links)
    assert gallery.text.count("Verdict.") >= 20
    assert (site / "files" / "experiments" / "go9-cpu" / "curves.svg").exists()
