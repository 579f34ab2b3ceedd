"""Optimised programs read from their text: shapes, loops, what is called, costs that can be counted
by hand."""

import pytest

from azero.plan.cost import ASSUMED_TURNS, Rates, module_cost
from azero.plan.hlo import parse, parse_shape
from azero.plan.loops import Loops

RATES = Rates(flops=1e12, bandwidth=1e9, links=1e8, num_devices=4)
TOWER = """\
HloModule jit_tower, is_scheduled=true, entry_computation_layout={(bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)})->bf16[8,19,19,256]{3,0,2,1}}

%fused_computation (param_0: bf16[8,19,19,256], param_1: bf16[3,3,256,256]) -> bf16[8,19,19,256] {
  %param_0 = bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)} parameter(0)
  %param_1 = bf16[3,3,256,256]{3,2,1,0:T(8,128)(2,1)} parameter(1)
  ROOT %convolution.1 = bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)} convolution(%param_0, %param_1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}

%body (state: (s32[], bf16[8,19,19,256], bf16[3,3,256,256])) -> (s32[], bf16[8,19,19,256], bf16[3,3,256,256]) {
  %state = (s32[]{:T(128)}, bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)}, /*index=2*/bf16[3,3,256,256]{3,2,1,0:T(8,128)(2,1)}) parameter(0)
  %index = s32[]{:T(128)} get-tuple-element(%state), index=0
  %x = bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)} get-tuple-element(%state), index=1
  %kernel = bf16[3,3,256,256]{3,2,1,0:T(8,128)(2,1)} get-tuple-element(%state), index=2
  %fusion.1 = bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)} fusion(%x, %kernel), kind=kOutput, calls=%fused_computation
  ROOT %tuple.1 = (s32[]{:T(128)}, bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)}, bf16[3,3,256,256]{3,2,1,0:T(8,128)(2,1)}) tuple(%index, %fusion.1, %kernel)
}

%condition (state.1: (s32[], bf16[8,19,19,256], bf16[3,3,256,256])) -> pred[] {
  %state.1 = (s32[]{:T(128)}, bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)}, bf16[3,3,256,256]{3,2,1,0:T(8,128)(2,1)}) parameter(0)
  ROOT %constant.1 = pred[]{:T(512)} constant(true)
}

ENTRY %main (state.2: (s32[], bf16[8,19,19,256], bf16[3,3,256,256])) -> (s32[], bf16[8,19,19,256], bf16[3,3,256,256]) {
  %state.2 = (s32[]{:T(128)}, bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)}, bf16[3,3,256,256]{3,2,1,0:T(8,128)(2,1)}) parameter(0)
  ROOT %while.1 = (s32[]{:T(128)}, bf16[8,19,19,256]{3,0,2,1:T(8,128)(2,1)}, bf16[3,3,256,256]{3,2,1,0:T(8,128)(2,1)}) while(%state.2), \
condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"19"}}
}
"""
TREE = """\
HloModule jit_tree

%update (param_0.1: f32[64,801,362], param_1.1: f32[64,1,362], param_2.1: s32[]) -> f32[64,801,362] {
  %param_0.1 = f32[64,801,362]{2,1,0} parameter(0)
  %param_2.1 = s32[] parameter(2)
  %param_1.1 = f32[64,1,362]{2,1,0} parameter(1)
  %bitcast.1 = f32[64,801,362]{2,1,0} bitcast(%param_0.1)
  ROOT %dynamic-update-slice.1 = f32[64,801,362]{2,1,0} dynamic-update-slice(%bitcast.1, %param_1.1, %param_2.1, %param_2.1, %param_2.1)
}

%look (param_0.2: f32[64,801,362], param_1.2: s32[]) -> f32[64,1,362] {
  %param_0.2 = f32[64,801,362]{2,1,0} parameter(0)
  %param_1.2 = s32[] parameter(1)
  %dynamic-slice.1 = f32[64,1,362]{2,1,0} dynamic-slice(%param_0.2, %param_1.2, %param_1.2, %param_1.2), dynamic_slice_sizes={64,1,362}
  ROOT %negate.1 = f32[64,1,362]{2,1,0} negate(%dynamic-slice.1)
}

ENTRY %main.1 (tree: f32[64,801,362], slot: s32[]) -> (f32[64,801,362], f32[64,1,362]) {
  %tree = f32[64,801,362]{2,1,0} parameter(0)
  %slot = s32[] parameter(1)
  %read = f32[64,1,362]{2,1,0} fusion(%tree, %slot), kind=kLoop, calls=%look
  %written = f32[64,801,362]{2,1,0} fusion(%tree, %read, %slot), kind=kLoop, calls=%update
  %all-reduce-start.1 = f32[64,1,362]{2,1,0} all-reduce-start(%read), channel_id=1, replica_groups={{0,1,2,3}}, to_apply=%add
  %all-reduce-done.1 = f32[64,1,362]{2,1,0} all-reduce-done(%all-reduce-start.1)
  ROOT %tuple.2 = (f32[64,801,362]{2,1,0}, f32[64,1,362]{2,1,0}) tuple(%written, %all-reduce-done.1)
}
"""
LAYER_FLOPS = 2 * 8 * 19 * 19 * 3 * 3 * 256 * 256


def test_shapes_are_padded_to_tiles_and_lie_in_a_memory() -> None:
    plain, tiled, on_chip = (
        parse_shape(text)[0]
        for text in (
            "f32[5,3]{1,0}",
            "f32[5,3]{1,0:T(8,128)}",
            "bf16[8,128]{1,0:T(8,128)(2,1)S(1)}",
        )
    )
    assert (plain.dtype, plain.dims, plain.size) == ("f32", (5, 3), 15)
    assert (plain.hbm_bytes, tiled.hbm_bytes, on_chip.hbm_bytes) == (60, 8 * 128 * 4, 0)
    turned = parse_shape("bf16[64,19,19,17]{0,3,2,1:T(8,128)(2,1)}")[0]
    assert turned.hbm_bytes == 128 * 24 * 19 * 19 * 2, (
        "the fastest dimension is padded to 128, the next one to 8"
    )
    assert [array.dims for array in parse_shape("(s32[]{:T(128)}, pred[3]{0}, token[])")] == [
        (),
        (3,),
        (),
    ]


def test_a_loop_counts_as_often_as_it_runs() -> None:
    module = parse(TOWER)
    assert (
        module.entry == "main"
        and module.counts()["while"] == 1
        and module.counts()["convolution"] == 1
    )
    cost = module_cost(module, RATES)
    assert cost.flops == 19 * LAYER_FLOPS
    activations, kernel = 8 * 19 * 19 * 256 * 2, 3 * 3 * 256 * 256 * 2
    assert cost.hbm_bytes == 19 * (2 * activations + kernel), (
        "what is read and written once in each of the 19 turns"
    )
    assert cost.seconds == pytest.approx(
        19 * max(LAYER_FLOPS / RATES.flops, (2 * activations + kernel) / RATES.bandwidth)
    )
    assert cost.unknown_loops == 0


NESTED = """\
HloModule jit_nested

%inner_condition (state.3: (s32[], s32[])) -> pred[] {
  %state.3 = (s32[], s32[]) parameter(0)
  %end.1 = s32[] get-tuple-element(%state.3), index=1
  %counter.1 = s32[] get-tuple-element(%state.3), index=0
  ROOT %below.1 = pred[] compare(%counter.1, %end.1), direction=LT
}

%inner_body (state.4: (s32[], s32[])) -> (s32[], s32[]) {
  %state.4 = (s32[], s32[]) parameter(0)
  %two = s32[] constant(2)
  %counter.2 = s32[] get-tuple-element(%state.4), index=0
  %end.2 = s32[] get-tuple-element(%state.4), index=1
  %next.1 = s32[] add(%counter.2, %two)
  ROOT %tuple.3 = (s32[], s32[]) tuple(%next.1, %end.2)
}

%outer_condition (state.5: (s32[], s32[])) -> pred[] {
  %state.5 = (s32[], s32[]) parameter(0)
  ROOT %flag = pred[] custom-call(%state.5), custom_call_target="DependsOnData"
}

%outer_body (state.6: (s32[], s32[])) -> (s32[], s32[]) {
  %state.6 = (s32[], s32[]) parameter(0)
  %three = s32[] constant(3)
  %end.3 = s32[] get-tuple-element(%state.6), index=1
  %copy.1 = s32[] copy(%three)
  %tuple.4 = (s32[], s32[]) tuple(%copy.1, %end.3)
  %inner = (s32[], s32[]) while(%tuple.4), condition=%inner_condition, body=%inner_body
  %done = s32[] get-tuple-element(%inner), index=0
  ROOT %tuple.5 = (s32[], s32[]) tuple(%done, %end.3)
}

ENTRY %main.2 (start: s32[]) -> (s32[], s32[]) {
  %start = s32[] parameter(0)
  %ten = s32[] constant(10)
  %tuple.6 = (s32[], s32[]) tuple(%start, %ten)
  ROOT %outer = (s32[], s32[]) while(%tuple.6), condition=%outer_condition, body=%outer_body
}
"""


def test_the_ends_of_a_range_are_found_in_the_state_of_an_outer_loop() -> None:
    module = parse(NESTED)
    loops = Loops(module)
    assert loops.trip_count(module.computations["outer_body"]["inner"], "outer_body") == 4, (
        "3, 5, 7, 9 lie below 10"
    )
    assert loops.trip_count(module.computations["main.2"]["outer"], "main.2") is None
    changed = parse(NESTED.replace("tuple(%done, %end.3)", "tuple(%done, %done)"))
    assert (
        Loops(changed).trip_count(changed.computations["outer_body"]["inner"], "outer_body") is None
    ), "the end is no constant any more"


def test_a_loop_of_unknown_length_is_counted_and_named() -> None:
    cost = module_cost(
        parse(TOWER.replace(', backend_config={"known_trip_count":{"n":"19"}}', "")), RATES
    )
    assert cost.flops == ASSUMED_TURNS * LAYER_FLOPS and cost.unknown_loops == 1


def test_a_tree_is_not_read_where_one_node_is() -> None:
    module = parse(TREE)
    node = 64 * 362 * 4
    slot = 4
    cost = module_cost(module, RATES)
    exchange = 2 * node
    assert cost.hbm_bytes == (2 * node + slot) + (2 * node + slot) + exchange
    assert cost.exchanged_bytes == node and [found.name for found in module.collectives()] == [
        "all-reduce-start.1"
    ]
    assert module.counts()["all-reduce"] == 1, "an asynchronous exchange is one, not two"


def test_text_that_is_no_program_is_refused() -> None:
    with pytest.raises(ValueError, match="no ENTRY"):
        parse("HloModule empty\n")
