"""REINFORCE as AlphaGo (2016) has it: the gradient by hand, games against earlier selves, and the
pool."""

import dataclasses
import functools
import io
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy_words import split_words
from rich.console import Console

from azero.checkpoint import list_checkpoints, load_variables
from azero.checkpoint.exported import write_exported
from azero.data.sample import Batch, Samples
from azero.games.go.settings import GoConfig
from azero.games.table import make
from azero.learn.learner import make_learner, reinforce_loss
from azero.learn.settings import LearnerConfig
from azero.match.compiled import MatchGames
from azero.mesh import make_mesh
from azero.networks.network import Network, Outputs
from azero.networks.settings import Policy2016Config
from azero.selfplay.policy_games import Trace
from azero.selfplay.settings import SelfplayConfig
from azero.selfplay.targets import words_of
from azero.settings import Config
from azero.train.alphago2016.reinforce import Reinforce, own_moves
from azero.train.alphago2016.reinforce_run import make_reinforce_stage
from azero.train.driver import run_stage
from azero.train.settings import CheckpointConfig, RunConfig

NETWORK = Policy2016Config(
    blocks=1,
    filters=2,
    value_hidden=4,
    convolution="xla",
    train_dtype="float32",
    inference_dtype="float32",
)
CONFIG = Config(
    game=GoConfig(size=(5,), komi=0.5, max_moves=30, planes=4),
    network=NETWORK,
    selfplay=SelfplayConfig(num_games=16),
    learner=LearnerConfig(
        batch_size=64, optimiser="momentum", momentum=0.0, learning_rate=((0, 0.05),), l2=0.0
    ),
    checkpoint=CheckpointConfig(every=1, keep=2),
    run=RunConfig(iterations=4),
)


def table_network(num_actions: int) -> Network:
    """A policy that does not look at the position: one logit a move."""

    def apply(variables, planes):
        count = planes.shape[0]
        return jnp.broadcast_to(variables["params"]["logits"], (count, num_actions)), jnp.zeros(
            count
        )

    def init(key):
        return {"params": {"logits": jnp.zeros(num_actions)}, "batch_stats": {}}

    return Network(
        init,
        apply,
        lambda variables, planes: (Outputs(*apply(variables, planes), {}), {}),
        lambda variables: variables["params"],
        None,
    )


def test_the_step_is_the_sum_over_moves_of_the_advantage_times_the_score_function():
    """Three moves of two games, one with a forbidden action, learned in two parts: grad log softmax
    is one on the move minus p."""
    game = make("go", size=1)
    actions, advantages = [0, 1, 0], [1.0, -0.5, 0.25]
    allowed = np.array([[True, True], [True, True], [True, False]])
    learner = make_learner(
        dataclasses.replace(CONFIG.learner, batch_size=2),
        table_network(2),
        game,
        make_mesh(jax.devices()[:1]),
        reinforce_loss,
    )
    state = learner.init(jax.random.key(0))
    gradients = learner.no_gradients(state)
    planes = np.zeros((2, 1, 1, 17), bool)
    # The fourth move fills the second part up and does not count.
    for part, count in (([0, 1], 2), ([2, 2], 1)):
        weights = np.eye(2, dtype=np.float32)[[actions[i] for i in part]]
        weights[count:] = 0.0
        batch = Batch(
            planes, weights, np.array([advantages[i] for i in part], np.float32), allowed[part]
        )
        gradients, metrics = learner.add_gradients(state, gradients, batch, np.float32(count / 2))
    expected = np.zeros(2)
    for action, advantage, mask in zip(actions, advantages, allowed, strict=True):
        policy = mask / mask.sum()
        expected += advantage * (np.eye(2)[action] - policy) / 2
    moved = learner.update(state, gradients).params["logits"]
    np.testing.assert_allclose(moved, 0.05 * expected, rtol=1e-5)
    assert moved[0] > 0 > moved[1], "the move that won becomes more likely"
    assert float(metrics["policy_loss"]) == pytest.approx(0.0), (
        "a move without an alternative teaches nothing"
    )


def test_only_moves_of_the_learner_count_and_carry_its_result():
    actions = np.array([[3, 5, 7, -1], [2, 4, -1, -1]], np.int32)
    games = MatchGames(
        np.array([1.0, -1.0], np.float32),
        np.array([3, 2], np.int32),
        actions,
        np.zeros((2, 4), np.float32),
        np.array([True, False]),
    )
    frames = np.arange(8, dtype=np.uint32).reshape(4, 2, 1) + 1
    moves = own_moves(games, Trace(frames, np.ones((4, 2, 10), bool)), num_frames=3).samples
    assert (
        split_words(moves.policy[:, 0])[0].tolist() == [3, 4, 7]
        and moves.value.tolist() == [1.0, -1.0, 1.0]
        and moves.to_play.tolist() == [0, 1, 0]
    )
    assert moves.frames[:, :, 0].tolist() == [[1, 0, 0], [4, 2, 0], [5, 3, 1]], (
        "the newest position first, nothing before the start"
    )


@pytest.fixture(scope="module")
def start():
    game = make("go", **CONFIG.game.options())
    return jax.device_get(NETWORK.build(game).init(jax.random.key(3)))


def run(directory: Path, start, config: Config = CONFIG, pool_every: int = 2) -> list[dict]:
    write_exported(directory / "policy", start, 0, config)
    make_stage = functools.partial(make_reinforce_stage, directory / "policy", pool_every, None)
    console = Console(file=io.StringIO())
    assert run_stage("test", config, directory / "run", make_stage, console) == 0
    return [
        json.loads(line) for line in (directory / "run" / "metrics.jsonl").read_text().splitlines()
    ]


@pytest.fixture(scope="module")
def whole(start, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("whole")
    run(directory, start)
    return directory


def test_games_that_do_not_divide_over_the_devices_are_refused_before_any_is_played(start):
    config = dataclasses.replace(CONFIG, selfplay=SelfplayConfig(num_games=15))
    with pytest.raises(ValueError, match=r"selfplay.num-games = 15 .* the 2 devices; .* is 14"):
        Reinforce(config, make_mesh(jax.devices()[:2]), start, 2)


def test_averaged_parameters_begin_with_those_of_the_policy_too(start):
    learner = dataclasses.replace(CONFIG.learner, average_decay=0.9)
    loop = Reinforce(dataclasses.replace(CONFIG, learner=learner), make_mesh(), start, 2)
    state = loop.fresh_state()
    jax.tree.map(np.testing.assert_array_equal, state.train.variables["params"], start["params"])
    for _ in loop.iterate(state):
        pass
    assert int(state.train.step) == 1


def test_the_pool_grows_and_its_members_are_players(whole, start):
    rows = [json.loads(line) for line in (whole / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["pool"] for row in rows] == [1, 2, 2, 3]
    assert {row["opponent"] for row in rows[:2]} == {0} and {
        row["opponent"] for row in rows[2:]
    } <= {0, 2}
    assert all(0.0 <= row["score"] <= 1.0 and row["games"] == 16 * row["iteration"] for row in rows)
    first, third = (
        load_variables(whole / "run" / "pool" / name)[0]["params"] for name in ("000000", "000004")
    )
    jax.tree.map(np.testing.assert_array_equal, first, start["params"])
    jax.tree.map(np.testing.assert_array_equal, third, load_variables(whole / "run")[0]["params"])
    assert not np.array_equal(first["head"]["kernel"], third["head"]["kernel"])


def test_a_continued_run_ends_like_an_unbroken_one(whole, start, tmp_path):
    run(tmp_path, start, dataclasses.replace(CONFIG, run=RunConfig(iterations=3)))
    run(tmp_path, start)
    ends = [
        {row.iteration: row.digest for row in list_checkpoints(directory / "run")}[4]
        for directory in (whole, tmp_path)
    ]
    assert ends[0] == ends[1]


def test_another_distance_of_the_pool_is_refused_in_a_run_that_has_one(whole, start):
    longer = dataclasses.replace(CONFIG, run=RunConfig(iterations=5))
    with pytest.raises(ValueError, match=r"000003 is not there: .*pool-every = 3 is not what"):
        run(whole, start, longer, pool_every=3)
    with pytest.raises(ValueError, match=r"000002 is in the pool: .*pool-every = 4 is not what"):
        run(whole, start, longer, pool_every=4)


def test_a_baseline_takes_the_value_network_off_the_result(whole, start):
    """Without one the advantage is the result, 1 or -1; a network that always says 1 leaves won
    moves nothing to teach, and lost ones twice as much."""
    rows = [json.loads(line) for line in (whole / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["value_loss"] for row in rows] == pytest.approx([1.0] * 4)
    loop = Reinforce(CONFIG, make_mesh(), start, 2, lambda samples: jnp.ones(len(samples.to_play)))
    samples = Samples(
        frames=np.zeros((8, 8, 2), np.uint32),
        to_play=np.zeros(8, np.uint8),
        policy=words_of(np.zeros((8, 1), int), np.ones((8, 1), np.uint16)),
        is_target=np.ones(8, bool),
        value=np.array([1.0, -1.0] * 4, np.float32),
        symmetry=np.zeros(8, np.uint8),
    )
    assert loop.batch(samples, np.ones((8, 26), bool)).value.tolist() == [0.0, -2.0] * 4
