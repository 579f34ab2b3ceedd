"""AlphaGo of 2016 by name: its networks from directories, in a match and behind GTP."""

import io
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

from azero.checkpoint.exported import write_exported
from azero.checkpoint.record import CheckpointError
from azero.engines.serve import Source
from azero.games.go.settings import GoConfig
from azero.games.position import Position
from azero.games.table import make
from azero.match.matches import play_match
from azero.match.request import MatchRequest
from azero.match.sides import read_sides, restore_side, with_checkpoint
from azero.networks.settings import ResNetConfig
from azero.players.alphago2016 import ApvSpec, load_apv, resolve_apv
from azero.players.specs import parse_player, resolve
from azero.players.thinking import Limits
from azero.search.single.mixed import MixSettings
from azero.search.single.selection import AlphaGo2016
from azero.settings import Config
from azero.train.alphago2016.config import SizesConfig

SCRIPT = Path(__file__).parents[1] / "players" / "scripted_go.py"
PLANES = {"policy2016": 4, "value2016": 4, "rollout2016": 6, "tree2016": 10}
TINY = SizesConfig(
    blocks=1,
    filters=4,
    value_hidden=8,
    pattern_bits=8,
    train_dtype="float32",
    inference_dtype="float32",
    convolution="xla",
)


def write_network(directory: Path, name: str, size: int = 5, iteration: int = 3) -> None:
    config = Config(
        game=GoConfig(size=(size,), komi=0.5, planes=PLANES.get(name, 17)),
        network=TINY.of(name)
        if name in PLANES
        else ResNetConfig(blocks=1, filters=4, value_hidden=8),
    )
    game = make("go", **config.game.options())
    variables = config.network.build(game).init(jax.random.key(0))
    write_exported(directory, jax.device_get(variables), iteration, config)


@pytest.fixture(scope="module")
def networks(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("networks")
    for name in PLANES:
        write_network(directory / name / "checkpoint", name)
    return directory


def player(networks: Path, *parts: str, **settings: object) -> str:
    """Return the name of the player with `parts` besides the policy."""
    places = [f"{part}={networks / f'{part}2016' / 'checkpoint'}" for part in parts]
    return f"apv:{networks}/policy2016/checkpoint?" + "&".join(
        [*places, *(f"{name}={value}" for name, value in settings.items())]
    )


def test_the_name_says_all():
    spec = parse_player(
        "apv:runs/p/checkpoint?value=v&rollout=r&tree=t&visits=100&lambda=0.25&threshold=8"
    )
    assert spec == ApvSpec(
        Path("runs/p/checkpoint"),
        Path("v"),
        Path("r"),
        Path("t"),
        visits=100,
        mixing=0.25,
        threshold=8,
    )
    assert spec.name == "alphago2016 p, 100 visits, lambda 0.25" and (
        spec.rule.mixing,
        spec.mix_settings.threshold,
    ) == (0.25, 8)
    assert (
        parse_player("apv:p?value=v").rule.mixing == 0.5
        and parse_player("apv:p").rule.mixing == 1.0
    )
    assert Source(player="apv:p").spec() == ApvSpec(Path("p"))
    few = parse_player("apv:p?c-puct=1&beta=0.9&fpu=parent&batch=4&policy-batch=8")
    assert isinstance(few, ApvSpec) and few.name == "alphago2016 p, c-puct 1, beta 0.9, fpu parent"
    assert (
        few.rule == AlphaGo2016(c_puct=1.0, mixing=1.0, fpu="parent")
        and few.tree_settings.batch == 4
    )
    assert few.mix_settings == MixSettings(uses_values=False, beta=0.9, policy_batch=8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("apv:", "is not a player"),
        ("apv:p?visit=3", "visit=3 in 'apv:p.visit=3' is not understood; the form is"),
        ("apv:p?value=", "value= in"),
        ("apv:p?value=v&lambda=much", "lambda=much in"),
        ("apv:p?value=v&lambda=2", r"lambda must be in \[0, 1\], not 2"),
        ("apv:p?visits=0", "at least 1 visit, not 0"),
        ("apv:p?fpu=half", "fpu=half in"),
        ("apv:p?priors=mine", "priors=mine in"),
        ("apv:p?lambda=0.5", "lambda=0.5 needs a value network"),
    ],
)
def test_what_is_not_understood_is_quoted(text, message):
    with pytest.raises(ValueError, match=message):
        parse_player(text)


def test_networks_that_do_not_fit_are_named(networks, tmp_path):
    policy = networks / "policy2016" / "checkpoint"
    with pytest.raises(
        ValueError, match="holds a network policy2016; the value of apv is value2016"
    ):
        resolve_apv(ApvSpec(policy, value=policy))
    write_network(tmp_path / "zero", "alphago_zero")
    with pytest.raises(
        ValueError, match="zero holds a network alphago_zero; the policy of apv is policy2016"
    ):
        resolve_apv(ApvSpec(tmp_path / "zero"))
    write_network(tmp_path / "seven", "rollout2016", size=7)
    with pytest.raises(ValueError, match="seven plays go on 7x7, not go on 5x5"):
        resolve_apv(ApvSpec(policy, rollout=tmp_path / "seven"))
    with pytest.raises(ValueError, match="plays go on 5x5, not go on 9x9"):
        load_apv(ApvSpec(policy), GoConfig(size=(9,)))


def test_a_match_goes_on_with_the_networks_that_it_began_with(tmp_path):
    policy, value = tmp_path / "policy", tmp_path / "value"
    write_network(policy, "policy2016")
    write_network(value, "value2016")
    request = MatchRequest(f"apv:{policy}?value={value}", f"apv:{policy}", 2)
    begun, _ = read_sides(request)
    assert begun.facts["iterations"] == {"policy": 3, "value": 3}
    write_network(value, "value2016", iteration=4)
    now, _ = read_sides(request)
    known = with_checkpoint(now, begun.facts)
    assert known.spec == restore_side(now, begun.facts, was_at_once=False).spec == begun.spec
    with pytest.raises(CheckpointError, match="is the network of iteration 4, not of 3"):
        load_apv(known.spec)
    former = {name: fact for name, fact in begun.facts.items() if name != "iterations"}
    assert resolve(restore_side(now, former, was_at_once=False).spec)[0] == now.spec


def test_priors_come_from_the_network_the_tree_policy_or_nowhere(networks, tmp_path):
    """AG16 Extended Data Table 7: with the policy network, with the tree policy alone; and even."""
    game = make("go", **GoConfig(size=(5,), komi=0.5, planes=10).options())
    config = Config(game=GoConfig(size=(5,), komi=0.5, planes=10), network=TINY.of("tree2016"))
    weights = config.network.build(game).init(jax.random.key(0))
    weights["params"]["distance"] += np.arange(17, dtype=np.float32)  # of the last move
    write_exported(tmp_path, jax.device_get(weights), 3, config)
    policies = {}
    for priors in ("network", "tree", "uniform"):
        text = player(networks, "rollout", tree=tmp_path, priors=priors, threshold=0, beta=1)
        one = load_apv(parse_player(text))
        analysis = one.think(Position.start(one.game).play(12), Limits(playouts=40))
        policies[priors] = analysis.raw_policy
        assert parse_player(text).name.endswith(f"beta 1, priors {priors}")
        line = max(analysis.moves, key=lambda move: move.visits).line
        assert len(line) > 1, "the priors of further nodes work, too"
    corners = [0, 4, 20, 24]
    even = np.where(np.arange(26) == 12, 0, 1 / 24) * (np.arange(26) < 25)
    np.testing.assert_allclose(policies["uniform"], even, atol=1e-6)
    assert (policies["tree"][corners] > 0.1).all(), "the weights favour what is far from the move"
    assert np.abs(policies["network"] - policies["uniform"]).max() > 0.01


def test_values_of_moves_are_told_apart(networks):
    """Q is (1 - lambda) W_v / N_v + lambda W_r / N_r (AG16 methods)."""
    spec = parse_player(
        player(networks, "value", "rollout", "tree", threshold=2, **{"lambda": 0.3})
    )
    one = load_apv(spec)
    analysis = one.think(Position.start(one.game), Limits(playouts=60))
    for move in analysis.moves:
        assert -1 <= move.network_value <= 1 and abs(move.rollout_value) <= 1
        mixed = 0.7 * move.network_value + 0.3 * move.rollout_value
        assert move.value == pytest.approx(mixed, abs=1e-6)


@pytest.mark.parametrize("replies", [False, True])
def test_it_fills_no_eye_of_its_own_and_passes_when_nothing_else_is_left(networks, replies):
    parts = {
        part: networks / f"{part}2016" / "checkpoint" for part in ("policy", "rollout", "tree")
    }
    one = load_apv(ApvSpec(**parts, threshold=0, batch=4, has_replies=replies))
    # The eye is the corner 24; two rows are empty, or a second corner is the only empty point
    # besides.
    wall = list(range(10, 24))
    for black, searched in ((wall, set(range(10))), ([*range(1, 10), *wall], {25})):
        position = Position.of_state(one.game, one.game.setup(black, [], 0))
        analysis = one.think(position, Limits(playouts=40))
        assert (
            analysis.moves
            and {move.action for move in analysis.moves} <= searched
            and position.legal[24]
        )
        assert all(24 not in move.line[::2] for move in analysis.moves)


def test_a_match_is_played(networks, tmp_path):
    console = Console(file=io.StringIO(), width=300)
    wanted = MatchRequest(
        player(networks, "value", "rollout", "tree", visits=6),
        f"gtp:{sys.executable} {SCRIPT} pass",
        2,
        random_plies=8,
        komi=-3.5,
        out=tmp_path / "match",
    )
    result = play_match(wanted, console).result
    assert result.total.games == 2 and "failure" not in console.file.getvalue()
    assert "alphago2016 policy2016, 6 visits against" in console.file.getvalue()


def test_gtp_programs_play_it_without_the_other_networks(networks):
    words = ["gtp", "--player", player(networks, visits=4)]
    asked = "boardsize 5\nkomi 3.5\nplay b c3\ngenmove w\nquit\n"
    done = subprocess.run(
        [sys.executable, "-m", "azero", *words],
        input=asked,
        capture_output=True,
        text=True,
        timeout=240,
    )
    answers = done.stdout.split("\n\n")
    assert done.returncode == 0 and answers[:3] == ["=", "=", "="], done.stderr
    assert answers[3].startswith("= ") and answers[3] != "= C3"
