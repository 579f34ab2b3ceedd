"""Make the pictures of docs/web.md in Chromium: python docs/generate_screenshots.py [NAME ...]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image  # matplotlib needs it too

if TYPE_CHECKING:
    from web_browser import Person

ROOT = Path(__file__).parents[1]
EXPERIMENTS = ROOT / "experiments"
PLAYERS = [str(EXPERIMENTS / "go9-cpu"), "animal-shogi"]
GO9, ANIMAL = "0", "1"
RECORD = EXPERIMENTS / "alphago9-cpu" / "gnugo" / "game0001.sgf"
MOST_BYTES = 150_000
VISITS = 3_000
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


def play_go(person: Person) -> None:
    """A few moves against the network, and its analysis."""
    page = person.page
    person.new_game(GO9, visits=200)
    for square in ("E5", "C3", "G3", "C6"):
        person.wait_for_turn()
        square_is_free = page.locator(f"#board rect[aria-label='{square}, empty']").count()
        if square_is_free:
            person.click_square(square)
            stone = f"#board rect[aria-label='{square}, black stone']"
            page.wait_for_selector(stone, state="attached")
    person.wait_for_turn()
    page.click("label.switch")
    page.wait_for_selector("#facts:has-text('3,00')")  # of VISITS, rounded up to a batch
    page.mouse.move(5, 400)


def review(person: Person) -> None:
    """A game against GNU Go with its mistakes."""
    page = person.page
    page.set_input_files("#file", RECORD)
    page.wait_for_selector("#panel-review:not([hidden])")
    page.select_option("#review-visits", "100")
    page.click("#review")
    page.wait_for_selector("#mistakes li")
    page.locator("#mistakes button").first.click()
    page.wait_for_selector("#board .disc")
    page.mouse.move(5, 400)


def watch(person: Person) -> None:
    """A run's curves."""
    person.page.click("#tab-run")
    person.page.wait_for_selector("#run-charts svg")


def play_animals(person: Person) -> None:
    """Animal shogi on a telephone."""
    person.new_game(ANIMAL, visits=200)
    for start, end in (("b2", "b3"), ("c1", "c2")):
        person.wait_for_turn()
        person.click_square(start)
        person.click_square(end)
    person.wait_for_turn()
    person.page.click("label.switch")
    person.page.wait_for_selector("#board .arrow")
    person.page.wait_for_timeout(2_000)


SCENES = {
    "web-go": (play_go, DESKTOP, "light"),
    "web-review": (review, DESKTOP, "dark"),
    "web-run": (watch, DESKTOP, "light"),
    "web-phone": (play_animals, PHONE, "light"),
}


def main() -> None:
    """Make the pictures that are named, or all."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "engines")]
    from web_browser import Person, chromium
    from web_server import running

    from azero.engines.web.limits import WebLimits

    with running(PLAYERS, WebLimits(visits=VISITS)) as server, chromium() as browser:
        for name in sys.argv[1:] or SCENES:
            scene, size, colours = SCENES[name]
            context = browser.new_context(viewport=size, color_scheme=colours)
            person = Person(context.new_page(), server.url)
            scene(person)
            path = ROOT / "docs" / f"{name}.png"
            person.page.screenshot(path=path)
            with Image.open(path) as picture:  # 256 colours take a third of the bytes
                picture.convert("RGB").quantize(256).save(path, optimize=True)
            context.close()
            if person.problems or path.stat().st_size > MOST_BYTES:
                raise SystemExit(f"{path}: {path.stat().st_size:,} bytes; {person.problems}")
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
