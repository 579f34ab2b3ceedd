"""Topologies by name, and the search for the largest size that fits."""

import pytest

from azero.chips import CHIPS, parse_topology
from azero.commands import plan
from azero.experiment import load
from azero.plan.compiled import DoesNotFit, bytes_needed, parse_size
from azero.plan.fitting import _fit_games, largest_fitting
from azero.search.batched.tree import tree_bytes
from azero.settings import Config


def test_a_topology_is_a_generation_and_a_grid() -> None:
    slice_ = parse_topology("v5e:2x4")
    assert (slice_.num_chips, slice_.num_devices, slice_.chip.device_hbm) == (8, 8, 16 * 2**30)
    assert parse_topology("v3:2x2").num_devices == 8, (
        "the two cores of a chip are devices of their own before v4"
    )
    assert parse_topology("v4:2x2x1").num_devices == 4
    assert CHIPS["v3"].device_flops == 61.5e12


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("v9:2x2", "unknown TPU generation 'v9'.*v2, v3"),
        ("v5e", "has 2 axes, as in v5e:2x2"),
        ("v4:2x2", "3 axes"),
        ("v5e:0x1", "2 axes"),
    ],
)
def test_a_wrong_topology_is_one_line(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        parse_topology(name)
    assert "\n" not in str(error.value)


def test_sizes_as_the_compiler_writes_them() -> None:
    assert (parse_size("1.5", "G"), parse_size("258.00", "M"), parse_size("12", "")) == (
        3 << 29,
        258 << 20,
        12,
    )


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 17.50G of "
            "15.75G hbm. Exceeded hbm capacity by 1.75G.",
            35 << 29,
        ),
        (
            "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for "
            "HLO temporaries (19.25G) exceeds available HBM (15.75G).",
            77 << 28,
        ),
        ("INTERNAL: Mosaic failed to compile", None),
    ],
)
def test_bytes_needed_are_read_from_the_compilers_message(
    message: str, expected: int | None
) -> None:
    assert bytes_needed(message) == expected


@pytest.mark.parametrize(
    ("fixed", "each", "expected"),
    [(0, 1, 64), (90, 0.1, 64), (60, 1.0, 32), (0, 100 / 15, 8), (99, 1, 1)],
)
def test_the_largest_power_of_two_that_fits_is_found(
    fixed: float, each: float, expected: int
) -> None:
    asked = []

    def needed(size: int) -> int:
        asked.append(size)
        return round(fixed + each * size)

    assert largest_fitting(64, needed, 100, "learner.batch-size") == expected
    assert len(asked) == len(set(asked)), "no size is compiled twice"


def test_nothing_fits() -> None:
    with pytest.raises(
        ValueError, match=r"learner\.batch-size of one a device needs 2\.0 GiB, but only 1\.0 GiB"
    ):
        largest_fitting(4, lambda size: (2 << 30) + size, float(1 << 30), "learner.batch-size")


def test_kept_trees_bound_the_games_and_not_the_positions_of_an_iteration() -> None:
    """Trees of about 19 MB a game in 8 GB a device: 256 games instead of 512, in twice as many
    dispatches."""
    config = load("go19").config
    game = config.game.build()
    search = config.search
    trees = tree_bytes(search.num_simulations, game, search.edge_width, search.kept_room)
    assert 15e6 < trees < 25e6
    asked = []

    def hbm_bytes(config: Config, program: object, what: str) -> int:
        asked.append(config.selfplay.num_games)
        return trees * config.selfplay.num_games // 8

    fitted = _fit_games(config, 8, 8e9, hbm_bytes).selfplay
    assert asked == [2048]
    assert (fitted.num_games, fitted.dispatches_per_iteration) == (2048, 10)


@pytest.mark.parametrize("flags", [[], ["--fit"]])
def test_sizes_that_were_fitted_are_not_to_be_fitted_again(flags, monkeypatch) -> None:
    """A match may not fit after --fit, which chooses no sizes of it."""

    def refuse(*arguments: object) -> None:
        raise DoesNotFit("match", 17 << 30)

    monkeypatch.setattr(plan, "fit", lambda config, *others: config)
    monkeypatch.setattr(plan, "topology_mesh", lambda topology: None)
    monkeypatch.setattr(plan, "PlannedPrograms", lambda *arguments: None)
    monkeypatch.setattr(plan, "program_costs", refuse)
    with pytest.raises(ValueError, match=r"match needs 17\.00 GiB") as error:
        plan.main(["--experiment", "go19", "--topology", "v5e:1x1", *flags])
    assert ("--fit chooses" in str(error.value)) == (not flags)
