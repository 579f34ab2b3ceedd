"""Costs read from programs compiled for this CPU: hand counts of products, convolutions, loops and
slices, and collectives."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from azero import mesh as mesh_lib
from azero.plan.cost import Rates, module_cost
from azero.plan.hlo import parse


def cost_of(function, *shapes):
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    module = parse(jax.jit(function).lower(*arguments).compile().as_text())
    assert not module.collectives()
    return module_cost(module, Rates(1.0, 1.0, 1.0, 1))


def test_a_product_in_a_loop_counts_as_often_as_the_loop_turns():
    def five_times(x, w):
        return jax.lax.fori_loop(0, 5, lambda _, x: jnp.tanh(x @ w), x)

    cost = cost_of(five_times, (64, 128), (128, 128))
    assert cost.flops == pytest.approx(5 * 2 * 64 * 128 * 128, rel=0.02)
    assert cost.hbm_bytes >= 5 * 4 * (2 * 64 * 128 + 128 * 128)


def test_a_convolution():
    def convolve(x, w):
        return jax.lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    assert cost_of(convolve, (8, 9, 9, 16), (3, 3, 16, 32)).flops == pytest.approx(
        2 * 8 * 81 * 9 * 16 * 32, rel=0.02
    )


def test_chunks_of_an_array_are_read_and_written_once():
    def doubled(x):
        return jax.lax.map(lambda chunk: jnp.sin(chunk), x)

    narrow, wide = cost_of(doubled, (8, 1000)), cost_of(doubled, (64, 1000))
    assert 64 * 1000 * 8 <= wide.hbm_bytes < 3 * 64 * 1000 * 8, (
        "not the whole array for every chunk"
    )
    assert wide.hbm_bytes == pytest.approx(8 * narrow.hbm_bytes, rel=0.05)


def test_collectives_are_found():
    mesh = mesh_lib.make_mesh()
    split = PartitionSpec(mesh_lib.DATA_AXIS)
    total = jax.shard_map(
        lambda x: jax.lax.psum(x, mesh_lib.DATA_AXIS),
        mesh=mesh,
        in_specs=split,
        out_specs=PartitionSpec(),
    )
    text = jax.jit(total).lower(np.zeros(mesh.size, np.float32)).compile().as_text()
    assert len(parse(text).collectives()) == (1 if mesh.size > 1 else 0)


GATES_OF_GO19 = """
import jax, sys
from pathlib import Path
from azero.config import load_overlay
from azero.experiment import load
from azero.mesh import make_mesh
from azero.train.programs import Programs

published = load("go19").config
for config in (published, load_overlay(Path(sys.argv[1]), published)):
    for devices in (16, 32, 64, 128, 256):
        programs = Programs(config, make_mesh(jax.devices()[:devices]))
print(programs.match_games, programs.trace_match().in_avals[0][2].ply.shape)
"""


def test_the_gate_of_go19_is_built_on_16_to_256_devices():
    """400 games divide over none of them. On 256 there are 200 pairs of games, filled up to one
    pair a device."""
    overlay = Path(__file__).parents[2] / "configs" / "pod.toml"
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "256"}
    done = subprocess.run(
        [sys.executable, "-c", GATES_OF_GO19, str(overlay)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "400 (256,)\n", done.stderr
