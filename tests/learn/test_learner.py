"""The train step: the same on any number of devices, able to learn, donated, strict about types."""

import dataclasses
import functools
import itertools
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.data.sample import Batch
from azero.games.table import make as get_game
from azero.learn.learner import Learner, TrainState, check_state, make_learner
from azero.learn.metrics import STEPS_AHEAD, StepMetrics, check_finite
from azero.learn.settings import LearnerConfig
from azero.mesh import batch_sharded, make_mesh, put
from azero.networks import convolution
from azero.networks.settings import NetworkConfig, PooledConfig, ResNetConfig
from azero.plan.hlo import Instruction, parse

NETWORK = ResNetConfig(
    blocks=2, filters=8, train_dtype="float32", inference_dtype="float32", convolution="xla"
)
GAME: Any = SimpleNamespace(board_shape=(3, 3), num_planes=5, num_actions=10)
"""All that the learner asks of a game."""
CONFIG = LearnerConfig(batch_size=32, learning_rate=((0, 0.02),))


@functools.cache
def make(
    config: LearnerConfig = CONFIG, network: NetworkConfig = NETWORK, devices: int = 1
) -> Learner:
    net = network.build(GAME)
    return make_learner(config, net, GAME, make_mesh(jax.devices()[:devices]))


def draw_batch(seed: int, size: int = 32) -> Batch:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(GAME.num_actions, 0.3), size).astype(np.float32)
    weights[::5] = 0.0
    planes: Any = rng.random((size, *GAME.board_shape, GAME.num_planes)) < 0.4
    value: Any = rng.choice([-1.0, 0.0, 1.0], size).astype(np.float32)
    return Batch(planes, weights, value)  # type: ignore[arg-type]


def train(
    learner: Learner, batches: list[Batch], devices: int = 1
) -> tuple[TrainState, list[float]]:
    mesh = make_mesh(jax.devices()[:devices])
    state, losses = learner.init(jax.random.key(0)), []
    for batch in batches:
        state, metrics = learner.train_step(state, put(batch, batch_sharded(mesh)))
        losses.append(float(metrics["loss"]))
    return state, losses


def test_eight_devices_and_one_give_the_same_losses() -> None:
    batches = [draw_batch(seed) for seed in range(20)]
    one, losses_of_one = train(make(), batches)
    eight, losses_of_eight = train(make(devices=8), batches, devices=8)
    np.testing.assert_allclose(losses_of_one, losses_of_eight, atol=1e-5)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(eight), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize(("optimiser", "rate"), [("momentum", 0.05), ("adamw", 0.01)])
def test_learns_a_batch_by_heart(optimiser: Any, rate: float) -> None:
    learner = make(dataclasses.replace(CONFIG, optimiser=optimiser, learning_rate=((0, rate),)))
    state, batch = learner.init(jax.random.key(0)), draw_batch(0)
    first = None
    for _ in range(150):
        state, metrics = learner.train_step(state, batch)
        first = metrics if first is None else first
    assert first is not None
    assert float(metrics["value_loss"]) < 0.05 < float(first["value_loss"])
    excess = float(metrics["policy_loss"] - metrics["target_entropy"])
    assert excess < 0.25 * float(first["policy_loss"] - first["target_entropy"])
    assert float(metrics["accuracy"]) > 0.8


def test_bfloat16_trains() -> None:
    learner = make(
        dataclasses.replace(CONFIG, learning_rate=((0, 0.05),)),
        dataclasses.replace(NETWORK, convolution="dots", train_dtype="bfloat16"),
    )
    state, losses = train(learner, [draw_batch(0)] * 40)
    assert losses[-1] < 0.8 * losses[0]
    assert all(
        leaf.dtype == jnp.float32 for leaf in jax.tree.leaves((state.params, state.batch_stats))
    )


def test_statistics_of_batch_norm_are_those_of_the_averaged_parameters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With momentum 0 the running statistics are those of the last batch that updated them."""
    monkeypatch.setattr("azero.learn.learner._FIRST_STEPS", 2)
    network = dataclasses.replace(NETWORK, batch_norm_momentum=0.0)
    learner = make(dataclasses.replace(CONFIG, average_decay=0.9), network)
    state, batch = learner.init(jax.random.key(0)), draw_batch(0)
    apply = jax.jit(network.build(GAME).train_apply)

    def misses(params: Any, stats: Any) -> float:
        """Return how far the state's statistics are from those of `params` for the batch."""
        expected = apply({"params": params, "batch_stats": stats}, batch.planes)[1]
        found = state.variables["batch_stats"]
        pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
        return max(float(jnp.abs(one - other).max()) for one, other in pairs)

    for is_updated in (True, True, False, False, True, False):
        before = jax.device_get(state.batch_stats)
        state, _ = learner.train_step(state, batch)
        if is_updated:
            assert misses(state.average, before) < 1e-4 < misses(state.params, before)
        else:
            jax.tree.map(np.testing.assert_array_equal, state.batch_stats, before)


def test_state_is_donated() -> None:
    learner = make()
    state = learner.init(jax.random.key(0))
    learner.train_step(state, draw_batch(0))
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state.params))


def test_step_has_no_implicit_promotion() -> None:
    # With momentum: optax's AdamW raises a float to an integer power.
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        network = dataclasses.replace(NETWORK, convolution="winograd")
        train(make(dataclasses.replace(CONFIG, warmup_steps=3), network), [draw_batch(0)])


def test_l2_covers_all_parameters_and_is_in_the_loss_of_momentum_only() -> None:
    parts = {}
    for optimiser in ("momentum", "adamw"):
        learner = make(dataclasses.replace(CONFIG, optimiser=optimiser, value_weight=0.5, l2=1e-3))
        state = learner.init(jax.random.key(0))
        squares = sum(float(np.sum(np.square(leaf))) for leaf in jax.tree.leaves(state.params))
        _, metrics = learner.train_step(state, draw_batch(0))
        assert float(metrics["l2"]) == pytest.approx(1e-3 * squares, rel=1e-5)
        parts[optimiser] = float(
            metrics["loss"] - metrics["policy_loss"] - 0.5 * metrics["value_loss"]
        )
    assert parts["momentum"] == pytest.approx(1e-3 * squares, rel=1e-4)
    assert parts["adamw"] == pytest.approx(0.0, abs=1e-6)


def test_momentum_accumulates() -> None:
    """With no gradient but the L2's, g = 2 c theta, the first two updates are -r g and -r (g' + m
    g)."""
    learner = make(
        dataclasses.replace(
            CONFIG, learning_rate=((0, 0.1),), value_weight=0.0, l2=0.5, momentum=0.9
        )
    )
    state = learner.init(jax.random.key(0))
    # The value head's last kernel has no other gradient once the value's weight is zero.
    before = np.asarray(state.params["value"]["value"]["kernel"])
    batch = draw_batch(0)
    state, _ = learner.train_step(state, batch)
    first = np.asarray(state.params["value"]["value"]["kernel"])
    state, _ = learner.train_step(state, batch)
    np.testing.assert_allclose(first, 0.9 * before, atol=1e-6)
    np.testing.assert_allclose(
        state.params["value"]["value"]["kernel"], first - 0.1 * (first + 0.9 * before), atol=1e-6
    )


def test_a_loss_that_is_not_finite_is_named() -> None:
    learner = make()
    state, good = learner.train_step(learner.init(jax.random.key(0)), draw_batch(0))
    check_finite(good)
    broken = draw_batch(0)
    broken.value[3] = np.nan  # type: ignore[index]
    _, bad = learner.train_step(state, broken)
    with pytest.raises(FloatingPointError, match=r"at step 42: .*value_loss = nan"):
        check_finite(jax.tree.map(lambda *values: np.stack(values), good, bad), first_step=40)


def test_a_state_that_is_not_finite_is_named_with_its_step() -> None:
    learner = make()
    state = learner.init(jax.random.key(0))
    check_state(state)
    kernel = state.params["value"]["value"]["kernel"]
    state.params["value"]["value"]["kernel"] = kernel.at[0, 0].set(jnp.inf)
    with pytest.raises(
        FloatingPointError,
        match=r"before the first step the learner's params/value/value/kernel is not finite",
    ):
        check_state(state)


def test_a_loss_that_explodes_is_told_from_one_that_is_high() -> None:
    """362 moves: ln 362 is 5.89, and ten times that the limit."""

    def means(policy_loss: float, num_actions: int | None) -> dict[str, float]:
        steps = StepMetrics(100, num_actions)
        for _ in range(2):
            steps.add(
                {
                    "policy_loss": jnp.float32(policy_loss),
                    "learning_rate": jnp.float32(1.0),
                    "is_finite": jnp.bool_(True),
                }
            )
        return steps.means()

    assert means(58.0, 362)["policy_loss"] == 58.0
    assert means(1e9, None)["policy_loss"] == 1e9
    with pytest.raises(
        FloatingPointError,
        match=r"the loss explodes: policy_loss = 59 in the mean over the steps 101 to 102, more "
        r"than 10 times the 5.89",
    ):
        means(59.0, 362)


def test_clipped_gradients_have_the_norm_that_is_set_and_the_state_keeps_its_form() -> None:
    """The first step of momentum moves by rate x gradient, so that the move shows the gradient's
    norm; without a limit it is what the metrics say."""
    moves = {}
    for clip_norm in (None, 0.5):
        learner = make(dataclasses.replace(CONFIG, clip_norm=clip_norm))
        state = learner.init(jax.random.key(0))
        before = jax.device_get(state.params)
        form = jax.tree.structure(state)
        state, metrics = learner.train_step(state, draw_batch(0))
        assert jax.tree.structure(state) == form
        change = jax.tree.map(lambda new, old: new - old, jax.device_get(state.params), before)
        moves[clip_norm] = float(
            np.sqrt(sum(np.square(leaf).sum() for leaf in jax.tree.leaves(change)))
        ) / float(metrics["learning_rate"])
        norm = float(metrics["gradient_norm"])
    assert norm > 0.5
    assert moves[None] == pytest.approx(norm, rel=1e-3)
    assert moves[0.5] == pytest.approx(0.5, rel=1e-3)


def test_variables_that_a_checkpoint_would_not_give_back_are_refused() -> None:
    game = get_game("tictactoe")
    network = ResNetConfig(blocks=1, filters=4).build(game)

    def in_a_list(key: jax.Array) -> Any:
        variables = network.init(key)
        return {**variables, "params": [variables["params"]]}

    wrong = network._replace(init=in_a_list)
    learner = make_learner(LearnerConfig(), wrong, game, make_mesh(jax.devices()[:1]))
    with pytest.raises(ValueError, match=r"nested dictionaries, not in a list .*\['params'\]\[0\]"):
        learner.init(jax.random.key(0))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"learner\.batch-size = 30 .* 8 devices"):
        make(dataclasses.replace(CONFIG, batch_size=30), devices=8)
    learner = make()
    batch = draw_batch(0)
    with pytest.raises(AssertionError, match="shape"):
        learner.train_step(
            learner.init(jax.random.key(0)), batch._replace(weights=batch.weights[:, 1:])
        )


MANY_STEPS = """
import functools, jax, jax.numpy as jnp, numpy as np
from azero.learn.metrics import StepMetrics
from azero.mesh import batch_sharded, make_mesh, put, replicated

mesh = make_mesh()
packed = put(np.random.default_rng(0).random((512, 512), np.float32), batch_sharded(mesh))
weights = put(np.eye(512, dtype=np.float32), replicated(mesh))
unpack = jax.jit(lambda packed: packed * 1.0001)

@functools.partial(jax.jit, donate_argnums=0)
def step(weights, batch):
    for _ in range(4):
        gradient = batch.T @ jnp.tanh(batch @ weights)  # a sum over the devices
        weights = weights - 1e-9 * gradient
    return weights, {"loss": gradient.sum()}

steps = StepMetrics()
for number in range(100):
    weights, metrics = step(weights, unpack(packed))
    steps.add(metrics)
jax.block_until_ready(weights)
"""


def test_devices_do_not_wait_for_each_other_for_ever() -> None:
    """Two devices of one CPU and more steps than XLA takes at a time; started without a limit, they
    never end."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
    done = subprocess.run(
        [sys.executable, "-c", MANY_STEPS],
        env=environment,
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "network",
    [
        NETWORK.replace(convolution="dots"),
        NETWORK.replace(convolution="winograd", train_loop="scan"),
        PooledConfig(blocks=2, filters=8, value_hidden=8, convolution="dots"),
    ],
)
def test_devices_meet_in_one_order(network: NetworkConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two sums over the devices one needs the other's result. Otherwise the threads of two CPU
    devices may begin them in different order, and each waits for the other for ever."""
    monkeypatch.setattr(convolution, "PART_BYTES", 1 << 10)  # a batch is convolved in parts
    game = get_game("go", size=5)
    built = network.build(game)
    learner = make_learner(CONFIG, built, game, make_mesh(jax.devices()))
    batch = Batch(
        *(
            jax.ShapeDtypeStruct((32, *shape), np.float32)
            for shape in ((*game.board_shape, game.num_planes), (game.num_actions,), ())
        )
    )
    state = jax.eval_shape(learner.init, jax.random.key(0))
    module = parse(learner.train_step.lower(state, batch).compile().as_text())
    assert module.counts()["while"] > 0
    meetings = {instruction.name for instruction in module.collectives()}
    assert meetings

    def meets(instruction: Instruction) -> bool:
        inner = instruction.called("body", "condition", "calls", "to_apply", "branch_computations")
        return instruction.name in meetings or any(
            meets(part) for name in inner for part in module.computations.get(name, {}).values()
        )

    for computation in module.computations.values():
        needs: dict[str, set[str]] = {}
        for name, instruction in computation.items():
            needs[name] = set().union(*(needs[of] | {of} for of in instruction.operands))
        ordered = [name for name, instruction in computation.items() if meets(instruction)]
        for former, later in itertools.pairwise(ordered):
            assert former in needs[later], f"{later} does not wait for {former}"


def test_the_host_stays_a_few_steps_ahead() -> None:
    square = jax.jit(lambda matrix: matrix @ matrix / 1024)
    matrix, steps, started = jnp.ones((1024, 1024)), StepMetrics(), []
    for _ in range(3 * STEPS_AHEAD):
        matrix = square(matrix)
        started.append(matrix)
        steps.add({"loss": matrix})
        assert all(earlier.is_ready() for earlier in started[:-STEPS_AHEAD])
