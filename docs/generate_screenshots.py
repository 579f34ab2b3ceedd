"""Make the pictures of docs/web.md and README.md in Chromium:
python docs/generate_screenshots.py [NAME ...]."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image  # matplotlib needs it too

if TYPE_CHECKING:
    from web_browser import Person

ROOT = Path(__file__).parents[1]
EXPERIMENTS = ROOT / "experiments"
PLAYERS = [str(EXPERIMENTS / "go9-cpu"), "animal-shogi", "go9"]
GO9, ANIMAL, STRONGER = "0", "1", "2"
RECORD = EXPERIMENTS / "alphago9-cpu" / "gnugo" / "game0001.sgf"
MOST_BYTES, MOST_FILM_BYTES = 150_000, 1_500_000
VISITS = 3_000
FILM, SCREEN = "play", {"width": 1100, "height": 760}
SEARCHED = """([ply, visits]) => {
  const facts = document.getElementById("facts").textContent;
  const shown = document.getElementById("ply").textContent;
  return shown === String(ply) && parseInt(facts.replace(",", "")) >= visits;
}"""
"""Whether the position after `ply` moves has been searched with so many visits."""
OPENING = ("F5", "D4", "D6")
"""What is played at first; then the best move of each search."""
FILM_MOVES, FILM_VISITS = 40, 300
FRAME_MS, LAST_FRAME_MS = 700, 3_000
FRAME_WIDTH, FRAME_COLOURS = 800, 64
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
PAPER = {"width": 1100, "height": 1340}


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


def report(person: Person) -> None:
    """The report of a run."""
    from azero.report.page import write_report

    with tempfile.TemporaryDirectory() as place:
        path = write_report(EXPERIMENTS / "go9-cpu", Path(place) / "report.html")
        person.page.goto(path.as_uri())


SCENES = {
    "web-go": (play_go, DESKTOP, "light"),
    "web-review": (review, DESKTOP, "dark"),
    "web-run": (watch, DESKTOP, "light"),
    "web-phone": (play_animals, PHONE, "light"),
    "report": (report, PAPER, "light"),
}


def film(person: Person, path: Path) -> None:
    """A game, move by move, with the analysis of every position: a moving picture."""
    page = person.page
    person.new_game(STRONGER, human="analysis", visits=FILM_VISITS)
    frames: list[Image.Image] = []
    for ply in range(FILM_MOVES):
        page.wait_for_function(SEARCHED, arg=[ply, FILM_VISITS])
        page.mouse.move(5, 400)
        with Image.open(io.BytesIO(page.screenshot())) as picture:
            size = FRAME_WIDTH, FRAME_WIDTH * picture.height // picture.width
            frames.append(picture.convert("RGB").resize(size, Image.Resampling.LANCZOS))
        if ply < len(OPENING):
            person.click_square(OPENING[ply])
        else:
            page.click("#lines tbody tr:first-child button")
    # One palette for all: only what changes takes bytes.
    palette = frames[FILM_MOVES // 2].quantize(FRAME_COLOURS)
    first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    durations = [*[FRAME_MS] * len(others), LAST_FRAME_MS]
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)


def screenshot(person: Person, path: Path) -> None:
    """What the page shows now."""
    person.page.screenshot(path=path)
    with Image.open(path) as picture:  # 256 colours take a third of the bytes
        picture.convert("RGB").quantize(256).save(path, optimize=True)


def main() -> None:
    """Make the pictures that are named, or all."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "engines")]
    from web_browser import Person, chromium
    from web_server import running

    from azero.engines.web.limits import WebLimits

    with running(PLAYERS, WebLimits(visits=VISITS)) as server, chromium() as browser:
        for name in sys.argv[1:] or [*SCENES, FILM]:
            scene, size, colours = SCENES.get(name, (None, SCREEN, "light"))
            context = browser.new_context(viewport=size, color_scheme=colours)
            person = Person(context.new_page(), server.url)
            path = ROOT / "docs" / f"{name}.{'gif' if scene is None else 'png'}"
            if scene is None:
                film(person, path)
            else:
                scene(person)
                screenshot(person, path)
            context.close()
            most = MOST_FILM_BYTES if scene is None else MOST_BYTES
            if person.problems or path.stat().st_size > most:
                raise SystemExit(f"{path}: {path.stat().st_size:,} bytes; {person.problems}")
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
