"""What is saved comes back whole, on any number of devices, or is refused or passed over with a
clear reason."""

from __future__ import annotations

import dataclasses
import re
import shutil
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from azero.checkpoint import (
    Checkpointer,
    CheckpointError,
    export_network,
    find_checkpoint,
    list_checkpoints,
    load_settings,
    load_variables,
    orbax_io,
    store,
)
from azero.checkpoint.exported import exported_path, write_exported
from azero.checkpoint.record import settings_changes
from azero.commands import export
from azero.config import to_dict
from azero.mesh import batch_sharded, make_mesh, replicated
from azero.players.specs import CheckpointSpec, resolve
from azero.settings import Config, from_dict

CONFIG = from_dict(
    {
        "checkpoint": {"keep": 2},
        "selfplay": {"num_games": 16},
        "network": {"blocks": 2, "filters": 8},
    }
)


@struct.dataclass
class Train:
    """Stands for the learner's state."""

    params: Any
    batch_stats: Any
    momentum: Any
    step: Any


def make_state(devices: int, seed: int = 0, best: bool = True) -> dict[str, Any]:
    """Make a state with every kind of leaf, spread over so many devices."""
    mesh = make_mesh(jax.devices()[:devices])
    random = np.random.default_rng(seed)

    def everywhere(*shape: int, dtype: Any = np.float32) -> jax.Array:
        return jax.device_put(random.standard_normal(shape).astype(dtype), replicated(mesh))

    params = {"Conv_0": {"kernel": everywhere(3, 3, 17, 64)}, "Dense_0": {"bias": everywhere(64)}}
    return {
        "train": Train(
            params,
            {"mean": everywhere(64)},
            {"trace": everywhere(64, 3, dtype=jnp.bfloat16)},
            jax.device_put(jnp.int32(seed), replicated(mesh)),
        ),
        "best": {"params": {"a": everywhere(3)}, "batch_stats": {"b": everywhere(2)}}
        if best
        else None,
        "games": {
            "board": jax.device_put(
                random.integers(0, 2**32, (16, 25), np.uint32), batch_sharded(mesh)
            ),
            "done": jax.device_put(random.random(16) < 0.5, batch_sharded(mesh)),
            "key": jax.device_put(jax.random.split(jax.random.key(seed), 16), batch_sharded(mesh)),
            "empty": jax.device_put(np.zeros((16, 0), np.float32), batch_sharded(mesh)),
        },
        "key": jax.device_put(jax.random.key(seed, impl="rbg"), replicated(mesh)),
    }


def abstract(state: Any) -> Any:
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state
    )


def raw(leaf: Any) -> np.ndarray:
    return np.asarray(
        jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
    )


def assert_same(state: Any, other: Any) -> None:
    assert jax.tree.structure(state) == jax.tree.structure(other)
    for (path, one), two in zip(
        jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(other), strict=True
    ):
        assert one.dtype == two.dtype, path
        np.testing.assert_array_equal(raw(one), raw(two), err_msg=str(path))


def save(workdir: Path, *iterations: int, config: Config = CONFIG, devices: int = 8) -> None:
    checkpointer = Checkpointer(workdir, config)
    for iteration in iterations:
        meta = {"games": 10 * iteration, "steps": iteration, "threshold": -0.9}
        host = {"points": np.arange(iteration, dtype=np.float32), "ply": np.zeros((0, 2), np.int8)}
        checkpointer.save(
            iteration, make_state(devices, iteration), meta, host, {"first_shard": iteration // 2}
        )
    checkpointer.close()


def largest_file(directory: Path) -> Path:
    return max(
        (path for path in directory.rglob("*") if path.is_file()),
        key=lambda path: path.stat().st_size,
    )


def flip(path: Path, at: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 0x04
    path.write_bytes(content)


@pytest.mark.parametrize(("before", "after"), [(8, 8), (8, 2), (1, 4)])
def test_everything_comes_back_on_any_number_of_devices(
    tmp_path: Path, before: int, after: int
) -> None:
    save(tmp_path, 3, devices=before)
    target = make_state(after, seed=9)
    checkpointer = Checkpointer(tmp_path, CONFIG)
    restored = checkpointer.restore(abstract(target))
    assert restored is not None and checkpointer.take_warnings() == []
    assert_same(restored.arrays, make_state(after, seed=3))
    for one, other in zip(jax.tree.leaves(restored.arrays), jax.tree.leaves(target), strict=True):
        assert one.sharding.is_equivalent_to(other.sharding, one.ndim)
    assert (restored.iteration, restored.meta, restored.cursor) == (
        3,
        {"games": 30, "steps": 3, "threshold": -0.9},
        {"first_shard": 1},
    )
    assert restored.host["points"].tolist() == [0, 1, 2] and restored.host["ply"].shape == (0, 2)


def test_nothing_saved_is_none(tmp_path: Path) -> None:
    assert Checkpointer(tmp_path, CONFIG).restore(abstract(make_state(1))) is None
    assert list_checkpoints(tmp_path) == []


def test_saved_values_are_those_of_the_call(tmp_path: Path) -> None:
    """The learner gives its buffers away right after a save has returned."""
    checkpointer = Checkpointer(tmp_path, CONFIG)
    increment = jax.jit(lambda array: array + 1, donate_argnums=0)
    array = jnp.zeros((512, 512))
    checkpointer.save(1, {"a": {"x": array}}, {})
    for _ in range(20):
        array = increment(array)
    checkpointer.wait()
    restored = checkpointer.restore({"a": {"x": jax.ShapeDtypeStruct((512, 512), jnp.float32)}})
    assert restored is not None
    assert not np.asarray(restored.arrays["a"]["x"]).any()


def test_rolling_set_and_those_kept_for_good(tmp_path: Path) -> None:
    config = dataclasses.replace(
        CONFIG, checkpoint=dataclasses.replace(CONFIG.checkpoint, keep_every=3)
    )
    save(tmp_path, 1, 2, 3, 4, 5, 6, 7, config=config)
    assert [row.iteration for row in list_checkpoints(tmp_path)] == [3, 6, 7]
    assert Checkpointer(tmp_path, config).cursors() == [{"first_shard": 3}, {"first_shard": 3}]
    hosts = sorted(path.name for path in (tmp_path / "checkpoints" / "hosts").iterdir())
    assert hosts == ["3.p000.host", "6.p000.host", "7.p000.host"]
    save(tmp_path, 8, 9, 10)  # the flag was forgotten
    assert [row.iteration for row in list_checkpoints(tmp_path)] == [3, 6, 9, 10]
    hosts = sorted(path.name for path in (tmp_path / "checkpoints" / "hosts").iterdir())
    assert hosts == ["10.p000.host", "3.p000.host", "6.p000.host", "9.p000.host"]


@pytest.mark.parametrize("name", ["run [x]", "run?", "run*"])
def test_directories_in_which_orbax_loses_its_files_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CheckpointError, match=r"the characters \* \? \[ in a path are patterns"):
        Checkpointer(tmp_path / name / "run", CONFIG)
    assert not (tmp_path / name).exists()


def test_iterations_only_go_up(tmp_path: Path) -> None:
    save(tmp_path, 4)
    checkpointer = Checkpointer(tmp_path, CONFIG)
    with pytest.raises(
        CheckpointError, match=r"cannot save checkpoint 4: .* already has checkpoint 4"
    ):
        checkpointer.save(4, make_state(1), {})


def test_a_save_without_its_directory_says_once_what_is_kept(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, CONFIG)
    shutil.rmtree(tmp_path / "checkpoints" / "hosts")
    checkpointer.save(1, make_state(1), {})
    with pytest.raises(CheckpointError, match=r"hosts/1\.p000\.host: No such file") as caught:
        checkpointer.wait()
    assert str(caught.value).count("what was saved before is untouched") == 1


DAMAGES = {
    "flipped byte in an array": lambda root: flip(largest_file(root / "steps" / "2" / "train")),
    "torn array": lambda root: largest_file(root / "steps" / "2" / "train").write_bytes(b"torn"),
    "missing file": lambda root: largest_file(root / "steps" / "2" / "train").unlink(),
    "flipped byte in the record": lambda root: flip(root / "steps" / "2" / "record" / "metadata"),
    "flipped byte in a process's state": lambda root: flip(root / "hosts" / "2.p000.host", -20),
    "missing process's state": lambda root: (root / "hosts" / "2.p000.host").unlink(),
    "process's state of another time": lambda root: shutil.copy(
        root / "hosts" / "1.p000.host", root / "hosts" / "2.p000.host"
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_is_named_and_the_one_before_taken(tmp_path: Path, damage: str) -> None:
    save(tmp_path, 1, 2)
    DAMAGES[damage](tmp_path / "checkpoints")
    checkpointer = Checkpointer(tmp_path, CONFIG)
    restored = checkpointer.restore(abstract(make_state(8)))
    assert restored is not None and restored.iteration == 1
    assert_same(restored.arrays, make_state(8, seed=1))
    warnings = checkpointer.take_warnings()
    assert all("\n" not in warning for warning in warnings)
    assert re.search(
        r"checkpoint 2 is damaged: .*(train|record|host).*; going back to checkpoint 1",
        warnings[-1],
    ), warnings
    checkpointer.save(2, make_state(8, seed=2), {})
    checkpointer.wait()
    again = checkpointer.restore(abstract(make_state(8)))
    assert again is not None and again.iteration == 2


def test_flipped_byte_names_the_leaf(tmp_path: Path) -> None:
    save(tmp_path, 1)
    stored = largest_file(tmp_path / "checkpoints" / "steps" / "1" / "train")
    size = stored.stat().st_size
    for at in (size // 4, size // 2, 3 * size // 4):
        flip(stored, at)
        with pytest.raises(
            CheckpointError,
            match=r"no checkpoint in .* is complete: checkpoint 1 is damaged: the digest of "
            r"train/params/Conv_0/kernel",
        ):
            Checkpointer(tmp_path, CONFIG).restore(abstract(make_state(8)))
        flip(stored, at)
    assert Checkpointer(tmp_path, CONFIG).restore(abstract(make_state(8))) is not None


REFUSED = [
    ({"network": {"filters": 16}}, "network.filters = 8 in the checkpoint, now 16"),
    ({"game": {"komi": 0.5}}, "game.komi = 7.5 in the checkpoint, now 0.5"),
    ({"game": {"size": [9]}}, "game.size = [19] in the checkpoint, now [9]"),
    ({"selfplay": {"num_games": 32}}, "selfplay.num-games = 16 in the checkpoint, now 32"),
    (
        {"learner": {"optimiser": "adamw"}},
        "learner.optimiser = momentum in the checkpoint, now adamw",
    ),
    (
        {"learner": {"average_decay": 0.9}},
        "learner.average-decay = null in the checkpoint, now 0.9",
    ),
    # The games of the window have no such targets.
    (
        {"learner": {"root_value_share": 0.5}},
        "learner.root-value-share = 0.0 in the checkpoint, now 0.5",
    ),
    # The same shapes, and another meaning: whose result the value is.
    ({"network": {"colour_plane": 16}}, "network.colour-plane = null in the checkpoint, now 16"),
    ({"network": {"name": "pooled"}}, "network.name = alphago_zero in the checkpoint, now pooled"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED)
def test_settings_that_do_not_fit_are_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    save(tmp_path, 1)
    with pytest.raises(CheckpointError, match=re.escape(words)):
        Checkpointer(tmp_path, from_dict(change, CONFIG)).restore(abstract(make_state(8)))


def test_settings_that_may_change_are_reported(tmp_path: Path) -> None:
    save(tmp_path, 1)
    config = from_dict(
        {
            "run": {"iterations": 5},
            "learner": {"learning_rate": [[0, 0.5]]},
            "game": {"margin_weight": 0.5},
        },
        CONFIG,
    )
    checkpointer = Checkpointer(tmp_path, config)
    assert checkpointer.restore(abstract(make_state(8))) is not None
    assert checkpointer.take_warnings() == [
        "settings changed since the checkpoint: game.margin-weight = 0.0 in "
        "the checkpoint, now 0.5; "
        "learner.learning-rate = [[0, 0.01], [400000, 0.001], [600000, 0.0001]] in the "
        "checkpoint, now [[0, 0.5]]; "
        "run.iterations = 7000 in the checkpoint, now 5"
    ]


def test_weights_of_targets_may_change_while_there_are_any() -> None:
    before = from_dict({"learner": {"score_weight": 0.02, "reply_weight": 0.15}})
    fewer = from_dict({"learner": {"score_weight": 0.1, "reply_weight": 0.0}}, before)
    assert settings_changes(to_dict(before), fewer)[0] == []
    none = from_dict({"learner": {"score_weight": 0.0, "reply_weight": 0.0}}, before)
    assert len(settings_changes(to_dict(before), none)[0]) == 2


def test_start_positions_may_move_and_not_go_away() -> None:
    given = from_dict({"game": {"name": "chess", "start_positions": "endings.txt"}})
    moved = from_dict({"game": {"start_positions": "/home/endings.txt"}}, given)
    line = "game.start-positions = endings.txt in the checkpoint, now /home/endings.txt"
    assert settings_changes(to_dict(given), moved) == ([], [line])
    without = from_dict({"game": {"start_positions": None}}, given)
    line = "game.start-positions = endings.txt in the checkpoint, now null"
    assert settings_changes(to_dict(given), without) == ([line], [])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda state: state["games"].update(board=jnp.zeros((16, 24), jnp.uint32)),
            "games/board is uint32[16, 25] in it, now uint32[16, 24]",
        ),
        (
            lambda state: state["games"].update(done=jnp.zeros(16, jnp.int8)),
            "games/done is bool[16] in it, now int8[16]",
        ),
        (
            lambda state: state.update(key=jax.random.key(0)),
            "values/key is key<rbg>[] in it, now key<fry>[]",
        ),
        (lambda state: state.update(best=None), "it has an unexpected best/batch_stats/b"),
        (lambda state: state.update(more={"x": jnp.zeros(2)}), "it has no more/x"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, change: Any, words: str) -> None:
    save(tmp_path, 1, devices=1)
    target = make_state(1)
    change(target)
    with pytest.raises(CheckpointError, match=re.escape(words)):
        Checkpointer(tmp_path, CONFIG).restore(abstract(target))


def test_list_says_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "a", 1, 2)
    flip(tmp_path / "a" / "checkpoints" / "steps" / "1" / "record" / "metadata")
    damaged, row = list_checkpoints(tmp_path / "a")
    assert "record" in damaged.problem and damaged.iteration == 1
    assert (row.iteration, row.games, row.steps, row.problem) == (2, 20, 2, "")
    assert row.num_bytes > 40_000 and 0 <= row.age_s < 100 and len(row.digest) == 12
    monkeypatch.setattr(time, "time", lambda: 0.0)  # a clock that was set back
    assert [row.age_s for row in list_checkpoints(tmp_path / "a")] == [0.0, 0.0]


def test_list_leaves_out_what_the_run_deletes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1, 2)
    read = orbax_io.read_record

    def read_after_deletion(root: Path, iteration: int) -> Any:
        store.remove_checkpoints(root, {1})
        return read(root, iteration)

    monkeypatch.setattr(orbax_io, "read_record", read_after_deletion)
    assert [(row.iteration, row.problem) for row in list_checkpoints(tmp_path)] == [(2, "")]


def test_digest_is_of_the_state_and_not_of_devices_or_time(tmp_path: Path) -> None:
    save(tmp_path / "a", 1, 2, devices=8)
    save(tmp_path / "b", 2, devices=2, config=from_dict({"run": {"iterations": 5}}, CONFIG))
    [first, one], [other] = list_checkpoints(tmp_path / "a"), list_checkpoints(tmp_path / "b")
    assert one.digest == other.digest != first.digest


@pytest.mark.parametrize("part", ["host", "cursor", "meta", "arrays"])
def test_digest_covers_every_part(tmp_path: Path, part: str) -> None:
    digests = set()
    for value in (0, 1):
        checkpointer = Checkpointer(tmp_path / str(value), CONFIG)
        changed = {
            name: value if name == part else 0 for name in ("host", "cursor", "meta", "arrays")
        }
        arrays = {"a": {"x": np.asarray(changed["arrays"])}}
        checkpointer.save(
            1,
            arrays,
            {"m": changed["meta"]},
            {"h": np.asarray(changed["host"])},
            {"c": changed["cursor"]},
        )
        checkpointer.close()
        digests |= {row.digest for row in list_checkpoints(tmp_path / str(value))}
    assert len(digests) == 2


def test_load_variables_for_players(tmp_path: Path) -> None:
    save(tmp_path, 1, 2)
    state = make_state(1, seed=2)
    variables, config = load_variables(tmp_path)
    assert_same(variables, state["best"])
    assert config == CONFIG
    older, _ = load_variables(tmp_path, iteration=1)
    assert_same(older, make_state(1, seed=1)["best"])
    with pytest.raises(CheckpointError, match="no checkpoint 7; it has 1, 2"):
        load_variables(tmp_path, iteration=7)


@pytest.mark.parametrize("part", ["record", "best"])
def test_players_pass_over_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    save(tmp_path, 1, 2)
    flip(largest_file(tmp_path / "checkpoints" / "steps" / "2" / part))
    assert load_settings(tmp_path)[0] == (2 if part == "best" else 1)
    assert not capsys.readouterr().err  # who loads the network says it
    variables, _ = load_variables(tmp_path)
    assert_same(variables, make_state(1, seed=1)["best"])
    # A match keeps the number.
    assert find_checkpoint(tmp_path)[0] == 1
    resolved, _ = resolve(CheckpointSpec(tmp_path))
    assert isinstance(resolved, CheckpointSpec) and resolved.iteration == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    for line in lines:
        wanted = rf"{tmp_path}: checkpoint 2 is damaged: .*{part}.*; checkpoint 1 is used"
        assert re.fullmatch(wanted, line)
    for read in (load_variables, find_checkpoint):
        with pytest.raises(CheckpointError, match=f"checkpoint 2 of .* is damaged: .*{part}"):
            read(tmp_path, 2)
    flip(largest_file(tmp_path / "checkpoints" / "steps" / "1" / part))
    problems = "checkpoint 2 is damaged: .*; checkpoint 1 is damaged: "
    with pytest.raises(CheckpointError, match=f"no checkpoint in .* is complete: {problems}"):
        find_checkpoint(tmp_path)


def test_files_of_a_network_pass_over_damage_and_are_of_one_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    save(run, 1, 2)
    flip(largest_file(run / "checkpoints" / "steps" / "2" / "best"))
    assert load_settings(run)[0] == 2, "only the arrays are damaged"
    export_network(run, out)
    assert load_settings(out)[0] == 1
    assert_same(load_variables(out)[0], make_state(1, seed=1)["best"])
    written = []

    def write(path: Path, variables: Any, config: Config) -> None:
        written.append(variables)

    def write_and_save(*arguments: Any) -> Path:
        save(run, 3)  # as a run that goes on
        return write_exported(*arguments)

    monkeypatch.setattr(export, "write_exported", write_and_save)
    monkeypatch.setitem(export._WRITERS, "onnx", write)
    monkeypatch.setitem(export._WRITERS, "leela", write)
    targets = {"": tmp_path / "again", "leela": tmp_path / "a", "onnx": tmp_path / "b"}
    export.export_checkpoint(run, targets, None)
    for variables in (load_variables(tmp_path / "again")[0], *written):
        assert_same(variables, make_state(1, seed=1)["best"])


def test_load_variables_while_the_run_replaces_its_only_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path, 1)
    read = orbax_io.read_record

    def read_too_late(root: Path, iteration: int) -> Any:
        if iteration == 1:
            save(tmp_path, 2)
            store.remove_checkpoints(root, {1})
        return read(root, iteration)

    monkeypatch.setattr(orbax_io, "read_record", read_too_late)
    load_variables(tmp_path)
    assert not capsys.readouterr().err


def test_a_network_is_not_exported_over_the_checkpoints_of_a_run(tmp_path: Path) -> None:
    save(tmp_path, 1)
    with pytest.raises(CheckpointError, match=r"has the checkpoints of a run.*another directory"):
        export_network(tmp_path, tmp_path)
    assert not exported_path(tmp_path).exists()


def test_half_precision_halves_the_file_and_comes_back_as_single_precision(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    kernel, bias = random.standard_normal((3, 3, 64, 64)), random.standard_normal(64)
    variances = np.float32([[586640.4, 1e-9]])  # the first is of experiments/sl9-architectures
    variables = {
        "params": {"kernel": np.float32(kernel), "bias": np.float32(bias)},
        "batch_stats": {"var": variances},
    }
    whole = write_exported(tmp_path / "whole", variables, 3, CONFIG)
    half = export_network(tmp_path / "whole", tmp_path / "half", half=True)
    assert half.stat().st_size < 0.55 * whole.stat().st_size
    both = load_variables(tmp_path / "half")[0]
    loaded = both["params"]
    np.testing.assert_array_equal(both["batch_stats"]["var"], variances)
    assert loaded["kernel"].dtype == np.float32
    np.testing.assert_allclose(loaded["kernel"], kernel, rtol=2**-11, atol=1e-7)
    np.testing.assert_array_equal(loaded["bias"], variables["params"]["bias"])
    again = export_network(tmp_path / "half", tmp_path / "again", half=True)
    assert again.read_bytes() == half.read_bytes()


@pytest.mark.parametrize("began_with", ["xla", "winograd"])
def test_a_network_is_computed_as_the_machine_that_loads_it_does(
    tmp_path: Path, began_with: Any
) -> None:
    network = dataclasses.replace(CONFIG.network, convolution=began_with)
    write_exported(tmp_path, {"a": np.ones(1)}, 3, dataclasses.replace(CONFIG, network=network))
    for config in (load_settings(tmp_path)[1], load_variables(tmp_path)[1]):
        assert config.network == dataclasses.replace(CONFIG.network, convolution="auto")


def test_a_directory_without_a_checkpoint_names_the_exported_networks_in_it(
    tmp_path: Path,
) -> None:
    with pytest.raises(CheckpointError, match=r"has no checkpoint$"):
        load_variables(tmp_path)
    for part in ("value", "policy"):
        write_exported(tmp_path / part, {"a": np.ones(1)}, 3, CONFIG)
    listed = f"{tmp_path / 'policy'}, {tmp_path / 'value'}"
    with pytest.raises(CheckpointError, match=f"has no checkpoint; exported networks: {listed}$"):
        load_settings(tmp_path)
