"""Lizzie itself on a virtual display: it starts the engine, analyses, and plays where one clicks."""

import contextlib
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import not_here

ENGINE = [sys.executable, "-m", "azero", "gtp", "--random-net", "go9?blocks=1&filters=8"]
NEEDED = {"lizzie": "liblizzie-java", "Xvfb": "xvfb", "xdotool": "xdotool"}
LONGEST = 180
"""Seconds until Lizzie has done something: the engine compiles."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(4 * LONGEST)]


@pytest.fixture
def display(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of programs on a screen that nobody sees, with a home of its own."""
    path = os.pathsep.join([os.environ["PATH"], "/usr/games"])
    missing = [package for name, package in NEEDED.items() if not shutil.which(name, path=path)]
    if missing:
        not_here(f"Debian: apt-get install {' '.join(missing)}")
    number = next(n for n in itertools.count(90) if not Path(f"/tmp/.X{n}-lock").exists())
    command = ["Xvfb", f":{number}", "-screen", "0", "1200x900x24"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as screen:
        while not Path(f"/tmp/.X11-unix/X{number}").exists():
            assert screen.poll() is None
            time.sleep(0.1)
        yield {
            **os.environ,
            "PATH": path,
            "DISPLAY": f":{number}",
            "HOME": str(tmp_path),
            "JAVA_TOOL_OPTIONS": f"-Duser.home={tmp_path}",
        }
        screen.terminate()


def wait_for(log: Path, text: str, act=lambda: None) -> str:
    """Return what Lizzie has sent once it has `text`; `act` is done every second meanwhile."""
    deadline = time.monotonic() + LONGEST
    while text not in (sent := log.read_text() if log.exists() else ""):
        assert time.monotonic() < deadline, f"no {text!r} in:\n{sent}"
        act()
        time.sleep(1.0)
    return sent


def test_lizzie_analyses_and_plays(tmp_path: Path, display: dict[str, str]) -> None:
    sent, said = tmp_path / "sent", tmp_path / "said"
    engine = tmp_path / "engine"
    engine.write_text(f"#!/bin/sh\ntee {sent} | {shlex.join(ENGINE)} 2>/dev/null | tee {said}\n")
    engine.chmod(0o755)
    for folder in (".config/leela-zero", ".local/share/leela-zero"):
        (tmp_path / folder).mkdir(parents=True)
    settings = {"leelaz": {"engine-command": str(engine)}, "ui": {"board-size": 9}}
    (tmp_path / ".config/leela-zero/lizzie-config.txt").write_text(json.dumps(settings))

    def press(*words: str) -> None:
        subprocess.run(["xdotool", *words], env=display, check=True)

    def answer() -> None:
        """Press OK where Lizzie asks for Leela Zero's version."""
        question = ["xdotool", "search", "--name", "^Message$"]
        if subprocess.run(question, env=display, capture_output=True).returncode == 0:
            press("key", "Return")

    with (
        subprocess.Popen(["lizzie"], env=display, cwd=tmp_path, stderr=subprocess.DEVNULL) as java,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(java.terminate)
        wait_for(sent, "lz-analyze", answer)
        wait_for(said, "info move")
        played = wait_for(sent, "play B", lambda: press("mousemove", "600", "450", "click", "1"))
        assert "play B E5" in played and "boardsize 9" in played
        after = wait_for(sent, "undo", lambda: press("key", "Left"))
    assert after.index("play B E5") < after.rindex("lz-analyze")
    assert "?" not in {line[:1] for line in said.read_text().splitlines()}, "nothing was refused"
