"""What a program does differently on other platforms."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from azero.mesh import DATA_AXIS, make_mesh, platform_dependent
from azero.types import Array

ON_DEVICES = {"in_specs": PartitionSpec(DATA_AXIS), "out_specs": PartitionSpec(DATA_AXIS)}


class Device(NamedTuple):
    """What all versions of JAX say of the devices of an abstract mesh."""

    device_kind: str


def traced_branches(mesh: object) -> tuple[list[str], jax.stages.Traced]:
    """Trace a program with a branch for CPUs, one for TPUs and one for others; return which of them
    were traced."""
    names: list[str] = []

    def branch(name: str, x: Array) -> Array:
        names.append(name)
        return x + len(name)

    @jax.jit  # inside it, too, and it is traced again for another platform
    def inner(x: Array) -> Array:
        others = {name: lambda x, name=name: branch(name, x) for name in ("cpu", "tpu")}
        return platform_dependent(x, default=lambda x: branch("others", x), **others)

    inner(jnp.zeros(2))
    assert sorted(names) == ["cpu", "others", "tpu"], "what JAX does without a mesh"
    names.clear()
    function = inner if mesh is None else jax.shard_map(inner, mesh=mesh, **ON_DEVICES)
    return names, jax.jit(lambda x: function(x)).trace(jnp.zeros(8))


def test_the_devices_of_a_mesh_choose_while_a_program_is_traced() -> None:
    names, traced = traced_branches(make_mesh())
    assert names == ["cpu"]
    assert "case" not in traced.lower().as_text()
    assert float(traced.lower().compile()(jnp.zeros(8))[0]) == len("cpu")


@pytest.mark.parametrize(
    ("kind", "branch"), [("TPU v5 lite", "tpu"), ("TPU7x", "tpu"), ("NVIDIA H200", "others")]
)
def test_a_program_for_other_devices_has_their_branch(kind: str, branch: str) -> None:
    types = (AxisType.Auto,)
    mesh = AbstractMesh((8,), (DATA_AXIS,), axis_types=types, abstract_device=Device(kind))
    assert traced_branches(mesh)[0] == [branch]
