"""The pages are true: the game of docs/adding-a-game.md plays, is searched, and every file and command they name exists."""

import re
import sys
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from azero.config import SearchConfig
from azero.experiment import NAMES
from azero.search import make_search, uniform_leaf

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def nim_of_the_page():
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "adding-a-game.md").read_text(), re.DOTALL)
    module = sys.modules["nim_of_the_page"] = types.ModuleType("nim_of_the_page")
    exec(code.group(1), module.__dict__)
    return module.Nim()


def test_the_game_of_the_page_is_searched_and_won():
    game = nim_of_the_page()
    state = game.init()
    search = jax.jit(make_search(SearchConfig(name="puct", num_simulations=256, dirichlet_fraction=0.0), game, uniform_leaf(game)))
    for heap in (5, 6, 7):
        roots = jax.tree.map(lambda leaf: leaf[None], state.replace(heap=jnp.int32(heap)))
        output = search({}, jax.random.key(0), roots)
        assert int(output.action[0]) == heap % 4 - 1, "whoever leaves a multiple of four wins"
        assert float(output.best_child_value[0]) > 0.5
    while not game.is_terminal(state):
        state = game.step(state, jnp.int32(np.flatnonzero(game.legal_action_mask(state))[0]))
    assert sorted(game.rewards(state).tolist()) == [-1.0, 1.0]


def test_what_the_pages_name_exists():
    for page in PAGES:
        text = page.read_text()
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page.name} links to {link}"
        for path in re.findall(r"configs/\w+\.toml|azero/[\w/]+\.py|tests/[\w/]+\.py", text):
            assert (ROOT / path).exists(), f"{page.name} names {path}"
        for name in re.findall(r"azero\.experiments\.(\w+)", text):
            assert name in NAMES or (ROOT / "azero" / "experiments" / f"{name}.py").exists(), f"{page.name} names the experiment {name}"
