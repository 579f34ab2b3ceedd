"""Profiles of programs whose times are known: read from text, and compiled by the TPU compiler."""

import importlib.util
import re

import jax
import jax.numpy as jnp
import pytest
from needs import NOT_HERE

from azero.chips import parse_topology
from azero.mesh import replicated
from azero.plan.compiled import compile_program, device_rates
from azero.plan.cost import ASSUMED_TURNS, Rates, module_cost
from azero.plan.hlo import Module, SourceLine, parse
from azero.plan.profile import (
    CONVOLUTIONS,
    COPIES,
    OTHER,
    Line,
    profile,
    profile_json,
    profile_tables,
)
from azero.plan.programs import topology_mesh

needs_compiler = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None,
    reason=f"{NOT_HERE}the TPU compiler (pip install 'azero[plan]')",
)
RATES = Rates(flops=1e12, bandwidth=1e9, links=1e8, num_devices=1)
CLOCK = 1e6
PROGRAM = """\
HloModule jit_play, is_scheduled=true

FileNames
1 "/somewhere/azero/search/batched/tree.py"
2 "/somewhere/azero/networks/resnet.py"
3 "ANOTHER_PACKAGE"

FunctionNames
1 "play"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=1 end_column=9}
2 {file_name_id=2 function_name_id=1 line=20 end_line=20 column=1 end_column=9}
3 {file_name_id=3 function_name_id=1 line=30 end_line=30 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}


%product (param_0: bf16[100,256], param_1: bf16[256,256]) -> bf16[100,256] {
  %param_0 = bf16[100,256]{1,0} parameter(0)
  %param_1 = bf16[256,256]{1,0} parameter(1)
  ROOT %convolution.1 = bf16[100,256]{1,0} convolution(%param_0, %param_1), dim_labels=bf_io->bf
}

%body (state: (s32[], bf16[100,256], bf16[256,256])) -> (s32[], bf16[100,256], bf16[256,256]) {
  %state = (s32[], bf16[100,256]{1,0}, bf16[256,256]{1,0}) parameter(0)
  %index = s32[] get-tuple-element(%state), index=0
  %x = bf16[100,256]{1,0} get-tuple-element(%state), index=1
  %w = bf16[256,256]{1,0} get-tuple-element(%state), index=2
  %fusion.1 = bf16[100,256]{1,0} fusion(%x, %w), kind=kOutput, calls=%product, metadata={op_name="jit(play)/tower/dot_general" stack_frame_id=3}, backend_config={"window_config":{"estimated_cycles":"1000"}}
  %copy.1 = bf16[100,256]{0,1} copy(%fusion.1), metadata={op_name="jit(play)/transpose" stack_frame_id=1}, backend_config={"window_config":{"estimated_cycles":"300"}}
  %tanh.1 = bf16[100,256]{0,1} tanh(%copy.1), metadata={op_name="jit(play)/tower/tanh" stack_frame_id=2}, backend_config={"window_config":{"estimated_cycles":"200"}}
  %scatter.1 = bf16[100,256]{0,1} fusion(%tanh.1), kind=kCustom, calls=%nothing, metadata={op_name="jit(play)/scatter" stack_frame_id=1}
  ROOT %tuple.1 = (s32[], bf16[100,256]{1,0}, bf16[256,256]{1,0}) tuple(%index, %scatter.1, %w)
}

%nothing (param_2: bf16[100,256]) -> bf16[100,256] {
  ROOT %param_2 = bf16[100,256]{0,1} parameter(0)
}

%condition (state.1: (s32[], bf16[100,256], bf16[256,256])) -> pred[] {
  %state.1 = (s32[], bf16[100,256]{1,0}, bf16[256,256]{1,0}) parameter(0)
  ROOT %flag = pred[] custom-call(%state.1), custom_call_target="DependsOnData"
}

ENTRY %main (state.2: (s32[], bf16[100,256], bf16[256,256])) -> (s32[], bf16[100,256], bf16[256,256]) {
  %state.2 = (s32[], bf16[100,256]{1,0}, bf16[256,256]{1,0}) parameter(0)
  %iota.1 = s32[50]{0} iota(), iota_dimension=0, backend_config={"window_config":{"estimated_cycles":"50"}}
  ROOT %while.1 = (s32[], bf16[100,256]{1,0}, bf16[256,256]{1,0}) while(%state.2), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"19"}}
}
""".replace("ANOTHER_PACKAGE", jnp.__file__)


def test_the_time_of_a_line_is_that_of_its_instructions_as_often_as_they_run() -> None:
    found = profile(parse(PROGRAM), RATES, CLOCK)
    seconds = {line: time.seconds for line, time in found.lines.items()}
    assert {line: value for line, value in seconds.items() if value} == pytest.approx(
        {
            Line(CONVOLUTIONS, "networks/resnet.py:20", "dot_general"): 19e-3,
            Line(COPIES, "search/batched/tree.py:10", "copy bf16[100,256]"): 19 * 0.3e-3,
            Line("network, the rest", "networks/resnet.py:20", "tanh"): 19 * 0.2e-3,
            Line(OTHER, "", "iota"): 0.05e-3,
        }
    )
    assert next(iter(found.parts)) == CONVOLUTIONS
    assert found.total.seconds == pytest.approx(19 * 1.5e-3 + 0.05e-3)
    assert found.outside_convolutions == pytest.approx((19 * 0.5 + 0.05) / (19 * 1.5 + 0.05))


def test_what_has_no_estimate_stands_apart_at_the_roofline() -> None:
    found = profile(parse(PROGRAM), RATES, CLOCK)
    scatter = found.lines[Line("search tree", "search/batched/tree.py:10", "scatter")]
    moved = 100 * 256 * 2 / RATES.bandwidth
    assert scatter.seconds == 0 and scatter.roofline == pytest.approx(19 * moved)
    assert scatter.unestimated == scatter.roofline and scatter.unestimated_runs == 19
    assert found.total.unestimated >= scatter.unestimated


def test_a_loop_of_unknown_length_runs_as_often_as_in_the_roofline() -> None:
    text = re.sub(r", backend_config=\{\"known_trip.*", "", PROGRAM)
    found = profile(parse(text), RATES, CLOCK)
    assert found.parts[CONVOLUTIONS].seconds == pytest.approx(ASSUMED_TURNS * 1e-3)
    assert found.total.roofline == pytest.approx(module_cost(parse(text), RATES).seconds)


def test_callers_are_found_whether_the_outermost_frame_is_numbered_0_or_1() -> None:
    shifted = re.sub(
        r"parent_frame_id=(\d)", lambda found: f"parent_frame_id={int(found[1]) - 1}", PROGRAM
    )
    for text in (PROGRAM, shifted):
        files = [line.file.rpartition("/")[2] for line in parse(text).stack(3)]
        assert files == ["__init__.py", "resnet.py", "tree.py"]
    assert parse(PROGRAM).stack(1) == [SourceLine("/somewhere/azero/search/batched/tree.py", 10)]
    assert parse(PROGRAM).stack(None) == []


def test_json_has_every_line_and_the_tables_the_total() -> None:
    found = profile(parse(PROGRAM), RATES, CLOCK)
    plain = profile_json(found)
    assert sum(line["seconds"] for line in plain["lines"]) == pytest.approx(plain["seconds"])
    assert sum(part["seconds"] for part in plain["parts"].values()) == pytest.approx(
        plain["seconds"]
    )
    parts, lines = profile_tables({"play": found})
    assert str(parts.title).startswith("play: 28.6 ms by the compiler's estimates, 33.5% of it")
    assert parts.row_count == len(found.parts) + 1 and lines.row_count == len(found.lines)


def compiled(topology: str, function, *shapes) -> Module:
    slice_ = parse_topology(topology)
    whole = replicated(topology_mesh(slice_))
    arguments = [jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=whole) for shape in shapes]
    return compile_program(jax.jit(function).lower(*arguments), slice_.name).module


@needs_compiler
@pytest.mark.parametrize("topology", ["v4:2x2x1", "v5e:1x1", "v5p:2x2x1", "v6e:1x1", "tpu7x:1x1x1"])
def test_the_clock_rate_gives_a_large_product_the_time_of_the_peak(topology: str) -> None:
    """The compiler's estimate is above the bound, on no generation by half: another clock rate
    would be."""
    slice_ = parse_topology(topology)
    module = compiled(topology, jnp.matmul, (8192, 8192), (8192, 8192))
    found = profile(module, device_rates(slice_), slice_.chip.clock).total
    assert found.roofline == pytest.approx(2 * 8192**3 / slice_.chip.device_flops)
    assert found.roofline < found.seconds < 1.5 * found.roofline


@needs_compiler
def test_five_products_in_a_loop_take_five_times_as_long_as_one() -> None:
    def times(count: int):
        return lambda x, w: jax.lax.fori_loop(0, count, lambda _, x: jnp.tanh(x @ w), x)

    rates = device_rates(parse_topology("v5e:1x1"))
    one, five = (
        profile(compiled("v5e:1x1", times(count), (2048, 2048), (2048, 2048)), rates, 1.5e9)
        for count in (1, 5)
    )
    assert five.parts[CONVOLUTIONS].seconds == pytest.approx(
        5 * one.parts[CONVOLUTIONS].seconds, rel=0.2
    )
