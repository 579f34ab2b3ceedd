"""The pages are true: what docs/adding-*.md add learns, and every file and command they name
exists."""

import contextlib
import dataclasses
import importlib
import importlib.util
import json
import re
import shlex
import sys
import textwrap
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_runs import quiet_run, tictactoe

import azero
from azero.checkpoint import list_checkpoints, load_settings
from azero.config import Kind, to_dict
from azero.experiment import NAMES, load
from azero.games.settings import GameConfig
from azero.games.table import make
from azero.networks.settings import NetworkConfig
from azero.players.searches import search_settings
from azero.players.specs import parse_player, resolve, with_search
from azero.search.leaf import uniform_leaf
from azero.search.settings import GumbelConfig, PuctConfig, SearchConfig
from azero.settings import from_dict
from azero.train.arguments import parse_arguments
from azero.train.settings import RunConfig

pytestmark = pytest.mark.usefixtures("shared_programs")
ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


LINE = re.compile(
    r"The line in the table of `(azero/[\w/]+)\.py`:\n\n```\n\"(\w+)\": \"([\w.:]+)\",\n```"
)


@contextlib.contextmanager
def added(page: str, family: type[Kind]):
    """Do what a page says: its modules are there, and its line is in the table of `family`."""
    text = (ROOT / "docs" / page).read_text()
    modules = [
        match.group(1).replace("/", ".")
        for match in re.finditer(r"`(azero/[\w/]+)\.py`:[^`]*```python\n", text)
    ]
    codes = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ((table, kind, path),) = LINE.findall(text)
    assert (
        len(modules) == len(codes)
        and importlib.import_module(table.replace("/", ".")).__dict__[family.__name__] is family
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, code in zip(modules, codes, strict=True):
            assert importlib.util.find_spec(name.rpartition(".")[0]) or name.startswith(
                "azero.games."
            )
            module = types.ModuleType(name)
            patch.setitem(sys.modules, name, module)
            exec(code, module.__dict__)
        patch.setattr(family, "KINDS", {**family.KINDS, kind: path})
        yield family.kind(kind)


def learn_two_iterations(workdir: Path, **parts: Kind) -> None:
    """Learn with small settings and these parts; resume, and play matches."""
    small = tictactoe(iterations=1)
    evaluation = dataclasses.replace(
        small.evaluation, gate=False, every=1, games=8, temperature_moves=2
    )
    config = dataclasses.replace(
        small,
        evaluation=evaluation,
        selfplay=dataclasses.replace(small.selfplay, resign=False),
        **parts,
    )
    assert quiet_run("tictactoe", config, workdir) == 0
    assert (
        quiet_run("tictactoe", dataclasses.replace(config, run=RunConfig(iterations=2)), workdir)
        == 0
    )
    assert [row.iteration for row in list_checkpoints(workdir)] == [1, 2]
    assert load_settings(workdir)[1].game.name == config.game.name


def test_the_game_of_the_page_is_learned_searched_and_won(tmp_path):
    with added("adding-a-game.md", GameConfig) as kind:
        learn_two_iterations(
            tmp_path,
            game=kind(heap=10),
            search=GumbelConfig(num_simulations=2, max_considered=2),
            network=tictactoe().network,
        )
        model = azero.load(tmp_path)
        start = azero.Position.start(model.game)
        assert model.search(start, visits=10).visits >= 10, "with its heap, not the default one"
        game, longer = kind(heap=12).build(), kind(heap=20).build()  # as --game.heap 20
    assert longer.max_moves == 20
    start = longer.init()
    seen = [longer.observe(longer.step(start, jnp.int32(action))) for action in range(3)]
    assert {int(planes.sum()) for planes in seen} == {17, 18, 19}, "all heaps look different"
    state = game.init()
    search = jax.jit(
        PuctConfig(num_simulations=256, dirichlet_fraction=0.0).build(game, uniform_leaf(game))
    )
    for heap in (5, 6, 7):
        roots = jax.tree.map(lambda leaf: leaf[None], state.replace(heap=jnp.int32(heap)))
        output = search({}, jax.random.key(0), roots)
        assert int(output.action[0]) == heap % 4 - 1, "whoever leaves a multiple of four wins"
        assert float(output.best_child_value[0]) > 0.5
    while not game.is_terminal(state):
        state = game.step(state, jnp.int32(np.flatnonzero(game.legal_action_mask(state))[0]))
    assert sorted(game.rewards(state).tolist()) == [-1.0, 1.0]


def test_the_network_of_the_page_learns(tmp_path):
    with added("adding-a-network.md", NetworkConfig) as kind:
        assert parse_arguments(
            load("tictactoe"), ["--network.name", "dense", "--network.hidden", "8"]
        ).settings.network == kind(hidden=8)
        learn_two_iterations(tmp_path, network=kind(hidden=8))


def test_the_search_of_the_page_learns_and_takes_what_wins(tmp_path):
    with added("adding-a-search.md", SearchConfig) as kind:
        learn_two_iterations(tmp_path, search=kind())
        player = parse_player(f"{tmp_path}?value-scale=2")
        config = resolve(player)[1]
        assert with_search(player, config, "trained").name.endswith("one_ply, value-scale 2")
        assert search_settings(config, "trained", player.constants).value_scale == 2.0
        game = make("tictactoe")
        state = game.init()
        for square in (0, 3, 1, 4):
            state = game.step(state, jnp.int32(square))
        output = kind().build(game, uniform_leaf(game))(
            {}, jax.random.key(0), jax.tree.map(lambda leaf: leaf[None], state)
        )
        assert int(output.action[0]) == 2 and float(output.value[0]) == 1.0


def test_what_the_pages_name_exists():
    for page in PAGES:
        text = page.read_text()
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            assert link.startswith("https://") or (page.parent / link).exists(), (
                f"{page.name} links to {link}"
            )
        is_added = set(re.findall(r"`(azero/[\w/]+\.py)`:[^`]*```python\n", text))
        for path in (
            set(re.findall(r"configs/\w+\.toml|azero/[\w/]+\.py|tests/[\w/]+\.py", text)) - is_added
        ):
            assert (ROOT / path).exists(), f"{page.name} names {path}"
        for name in re.findall(r"azero\.experiments\.(\w+)", text):
            assert name in NAMES or (ROOT / "azero" / "experiments" / f"{name}.py").exists(), (
                f"{page.name} names the experiment {name}"
            )


def test_the_examples_of_the_python_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(
        r"^```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.M | re.S
    )
    assert len(examples) > 6
    scope: dict[str, object] = {}
    for code in examples:
        exec(code, scope)
    assert len(scope["losses"]) == 2 and (tmp_path / "game.sgf").exists()


def test_the_examples_of_the_readme_run():
    examples = re.findall(
        r"^( *)```python\n(.*?)```", (ROOT / "README.md").read_text(), re.M | re.S
    )
    assert examples
    for _, code in examples:
        scope: dict[str, object] = {}
        exec(textwrap.dedent(code), scope)
    state = scope["step"](scope["state"], jnp.full(256, 40))
    assert scope["legal"](state).shape == (256, 82) and not scope["legal"](state)[:, 40].any()


RESULT = re.compile(
    r"(?:\| (\d+), (?:(\d+), )?(\d+) \| |(\d+) won, (\d+) drawn, (\d+) lost,\s+)\*{0,2}([\d.]+)%"
)


def test_scores_are_those_of_the_games_beside_them():
    """`| won, drawn, lost | score |`, or without draws, and the same in words."""
    checked = 0
    for page in sorted(
        [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("experiments/**/*.md")]
    ):
        for found in RESULT.finditer(page.read_text()):
            won, drawn, lost = (int(found[i] or found[i + 3] or 0) for i in (1, 2, 3))
            score = 100 * (won + drawn / 2) / (won + drawn + lost)
            assert abs(score - float(found[7])) <= 0.051, f"{page}: {found[0]} is {score:.2f}%"
            checked += 1
    assert checked > 30


RECORDS = (
    "animal-shogi chess chess-endings connect-four go5-gated go5-margin go5-search go5-settings "
    "go9-cpu go9-figure3 minichess othello shogi sl-chess sl-shogi sl19-cpu sl19-gpu tictactoe"
)


@pytest.mark.parametrize("name", RECORDS.split())
def test_the_commands_of_a_record_give_its_settings(name, monkeypatch):
    """Experiments change; a record's commands then need flags for what they were."""
    monkeypatch.chdir(ROOT)
    directory = ROOT / "experiments" / name
    text = (directory / "README.md").read_text().replace("\\\n", " ")
    found = re.findall(r"^(?:python -m azero\.experiments\.|azero train )(.+)$", text, re.M)
    given = []
    for experiment, *flags in (shlex.split(command, comments=True) for command in found):
        given.append(_what_is_learned(parse_arguments(load(experiment), flags).settings))
    for path in sorted(directory.rglob("config.json")):
        assert _what_is_learned(from_dict(json.loads(path.read_text()))) in given, path


def _what_is_learned(config):
    """Return the settings that decide what is learned, without the file of start positions, which
    may have moved, and the convolution, which the machine chooses."""
    settings = to_dict(config)
    settings["game"].pop("start_positions", None)
    settings["network"].pop("convolution", None)
    if not config.selfplay.random_moves:
        settings["selfplay"].pop("random_share")
    tables = ("game", "network", "search", "selfplay", "replay", "learner")
    return {table: settings[table] for table in tables}
