"""The stages of AlphaGo of 2016 as one experiment: their order, what is done twice and what is not,
and the whole of it at the smallest size."""

import contextlib
import dataclasses
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from azero.config import load_overlay
from azero.data.records.dataset import Dataset
from azero.data.records.filters import SPLITS, Filters, Fractions
from azero.data.records.importing import run_import
from azero.data.records.recorded import pack_whole
from azero.data.records.requests import ImportRequest
from azero.distributed import EXIT_INTERRUPTED
from azero.experiment import MULTI_STAGE
from azero.games.go.settings import GoConfig
from azero.learn.settings import LearnerConfig
from azero.match.matches import MatchRequest, play_match
from azero.match.settings import EvaluationConfig
from azero.players.specs import parse_player
from azero.report.page import REPORT
from azero.report.paper import claim
from azero.report.stages import read_stages
from azero.selfplay.policy_games import Trace
from azero.selfplay.trajectory import select_games
from azero.train.alphago2016 import measures as alphago_measures
from azero.train.alphago2016 import run as alphago
from azero.train.alphago2016 import stages as alphago_stages
from azero.train.alphago2016.config import (
    DEFAULT,
    OPTIONAL,
    STAGES,
    AlphaGoConfig,
    AlphaGoExperiment,
    ByMoveConfig,
    LeeConfig,
    MatchesConfig,
    ReinforceConfig,
    SizesConfig,
    StageConfig,
    ValueDataConfig,
    ordered,
    stage_config,
    stage_seed,
)
from azero.train.alphago2016.run import load_stages, parse
from azero.train.alphago2016.stages import Outcome, StageContext, make_positions
from azero.train.alphago2016.value_games import MadeShard
from azero.train.settings import CheckpointConfig

ROOT = Path(__file__).parents[3]
EXPERT = ROOT / "tests" / "data" / "records" / "expert9.sgf"
LEARNER = LearnerConfig(
    batch_size=16, steps_per_iteration=2, optimiser="adamw", learning_rate=((0, 1e-3),)
)
TINY = AlphaGoExperiment(
    "alphago9",
    "tiny",
    AlphaGoConfig(
        game=GoConfig(size=(9,), komi=0.5, suicide=True, max_moves=12),
        network=SizesConfig(
            blocks=1,
            filters=2,
            value_hidden=4,
            pattern_bits=8,
            convolution="xla",
            train_dtype="float32",
            inference_dtype="float32",
        ),
        rollout=StageConfig(6, 2, LEARNER),
        tree=StageConfig(10, 2, LEARNER),
        policy=StageConfig(4, 2, LEARNER),
        value=StageConfig(4, 2, LEARNER),
        reinforce=ReinforceConfig(iterations=2, num_games=16, pool_every=1, learner=LEARNER),
        value_data=ValueDataConfig(
            positions=30, last_random_move=10, num_games=16, games_per_shard=16
        ),
        matches=MatchesConfig(games=4, search_games=2, visits=2, workers=1),
        filters=(2, 3),
        by_move=ByMoveConfig(positions=8, rollouts=2, moves_per_band=10),
        lee=LeeConfig(iterations=2, games=4, random_plies=2),
        evaluation=EvaluationConfig(every=1, validation_positions=32),
        checkpoint=CheckpointConfig(every=1, keep=1),
    ),
)


def quiet() -> Console:
    return Console(file=io.StringIO(), width=200)


@pytest.mark.parametrize("name", MULTI_STAGE)
def test_every_stage_has_whole_settings(name):
    settings = load_stages(name).config
    kinds = {
        stage: stage_config(settings, stage)
        for stage in ("rollout", "tree", "policy", "value", "reinforce")
    }
    assert [kinds[stage].network.name for stage in kinds] == [
        "rollout2016",
        "tree2016",
        "policy2016",
        "value2016",
        "policy2016",
    ]
    assert [kinds[stage].game.planes for stage in kinds] == [6, 10, 48, 49, 48]
    assert [kinds[stage].replay.symmetries for stage in kinds] == [False, False, True, True, True]
    assert (
        parse(
            load_stages(name), ["--reinforce.num-games", "8", "--stages", "policy"]
        ).settings.reinforce.num_games
        == 8
    )


def test_alphago19_has_the_published_numbers():
    """AG16 methods, Extended Data Tables 3 to 5."""
    settings = load_stages("alphago19").config
    assert (settings.network.blocks, settings.network.filters, settings.network.value_hidden) == (
        12,
        192,
        256,
    )
    assert (
        settings.policy.iterations * settings.policy.learner.steps_per_iteration == 340_000_000
        and settings.policy.learner.batch_size == 16
    )
    assert settings.policy.learner.learning_rate[:3] == (
        (0, 0.003),
        (80_000_000, 0.0015),
        (160_000_000, 0.00075),
    )
    assert (
        settings.reinforce.iterations,
        settings.reinforce.num_games,
        settings.reinforce.pool_every,
    ) == (10_000, 128, 500)
    assert (
        settings.value.iterations * settings.value.learner.steps_per_iteration == 50_000_000
        and settings.value.learner.batch_size == 32
    )
    assert (settings.value_data.positions, settings.value_data.latest(361)) == (30_000_000, 450)


def test_the_short_version_only_shortens():
    full, short = (
        load_stages("alphago9").config,
        load_overlay(ROOT / "configs" / "alphago9_hour.toml", load_stages("alphago9").config),
    )
    assert short.game == full.game and short.value_data.positions < full.value_data.positions
    for stage in ("rollout", "tree", "policy", "value"):
        last = getattr(short, stage).learner.learning_rate[-1][0]
        assert (
            last
            == getattr(short, stage).iterations * getattr(short, stage).learner.steps_per_iteration
        ), f"the rate of {stage} falls to its end"


def test_stages_come_in_their_order_and_are_named():
    assert ordered(("mixing", "rollout", "policy")) == ["rollout", "policy", "mixing"]
    with pytest.raises(
        ValueError, match=r"unknown stage 'polcy'; the stages are: rollout, tree, policy"
    ):
        ordered(("polcy",))
    places = {name: place for place, name in enumerate(STAGES)}
    assert all(
        places[needed] < places[name] for name, stage in STAGES.items() for needed in stage.needs
    )
    assert set(DEFAULT) <= set(STAGES) == set(alphago.BUILDERS) | set(alphago.MEASURES)


@pytest.fixture
def pretended(monkeypatch):
    """Stages that only note that they ran; the list of them, and the name of one that is
    interrupted."""
    ran, interrupted = [], []

    def pretend(name):
        def build(context: StageContext) -> Outcome:
            ran.append(name)
            if name in interrupted:
                raise KeyboardInterrupt
            place = context.workdir / alphago.PLACES.get(name, name)
            place.mkdir(parents=True, exist_ok=True)
            return Outcome(
                rows=[claim("rl-match", f"{len(ran)} of 4 games")] if name == "rl-match" else ()
            )

        return build

    monkeypatch.setattr(alphago, "BUILDERS", {name: pretend(name) for name in alphago.BUILDERS})
    monkeypatch.setattr(alphago, "MEASURES", {name: pretend(name) for name in alphago.MEASURES})
    return ran, interrupted


@pytest.fixture
def records(tmp_path):
    """A data set with games in every split."""
    filters = Filters(size=(9,), suicide=True)
    data = Dataset.create(tmp_path / "records", filters, Fractions())
    for split in SPLITS:
        made = Shards().make(0, 4)
        data.append(split, made.rows, made.games, ["game"] * 4)
    return data.directory


def test_a_stage_that_is_done_is_not_done_again(pretended, records, tmp_path, monkeypatch):
    ran, interrupted = pretended
    monkeypatch.setattr(alphago, "prepare_data", lambda *_: records)
    interrupted.append("value-data")
    assert alphago.run(TINY, TINY.config, tmp_path, None, DEFAULT, quiet()) == EXIT_INTERRUPTED
    assert ran == ["rollout", "tree", "policy", "reinforce", "value-data"]
    ran.clear()
    interrupted.clear()
    assert alphago.run(TINY, TINY.config, tmp_path, None, DEFAULT, quiet()) == 0
    assert ran == ["value-data", "value", "prediction", "rl-match", "value-error", "mixing"]
    ran.clear()
    longer = dataclasses.replace(
        TINY.config, policy=dataclasses.replace(TINY.config.policy, iterations=3)
    )
    assert alphago.run(TINY, longer, tmp_path, None, DEFAULT, quiet()) == 0
    assert ran == ["policy"], "what has other settings goes on"
    ran.clear()
    evaluation = dataclasses.replace(longer.evaluation, validation_positions=64)
    longer = dataclasses.replace(longer, evaluation=evaluation)
    assert alphago.run(TINY, longer, tmp_path, None, DEFAULT, quiet()) == 0
    assert ran == ["prediction", "value-error"], "they measure more positions"
    (tmp_path / "tree").rmdir()
    alphago.run(TINY, longer, tmp_path, None, DEFAULT, quiet())
    assert ran[2:] == ["tree"], "what is gone is made again"
    page = (tmp_path / REPORT).read_text()
    assert (
        all(STAGES[name].title in page for name in DEFAULT)
        and "above 80%" in page
        and "4 of 4 games" in page
    )
    assert list(read_stages(tmp_path))[:2] == ["rollout", "tree"]


def test_a_measurement_is_repeated_without_its_directory(pretended, records, tmp_path, monkeypatch):
    ran, _ = pretended
    monkeypatch.setattr(alphago, "prepare_data", lambda *_: records)
    for _ in range(2):
        assert alphago.run(TINY, TINY.config, tmp_path, None, tuple(STAGES), quiet()) == 0
    assert ran == list(STAGES), "each once"
    matches = ("rl-match", "mixing", "strength")
    for directory, stages in (
        ("matches", matches),
        *((name, (name,)) for name in OPTIONAL if name not in (*matches, "value-by-move")),
    ):
        ran.clear()
        shutil.rmtree(tmp_path / directory)
        assert alphago.run(TINY, TINY.config, tmp_path, None, tuple(STAGES), quiet()) == 0
        assert ran == list(stages), directory


def test_a_repetition_that_was_interrupted_is_not_done(pretended, records, tmp_path, monkeypatch):
    """Its directory is there again, and its former result is still on the page."""
    ran, interrupted = pretended
    monkeypatch.setattr(alphago, "prepare_data", lambda *_: records)
    assert alphago.run(TINY, TINY.config, tmp_path, None, DEFAULT, quiet()) == 0
    (tmp_path / "policy").rmdir()
    interrupted.append("policy")
    seconds = read_stages(tmp_path)["policy"]["seconds"]
    assert alphago.run(TINY, TINY.config, tmp_path, None, DEFAULT, quiet()) == EXIT_INTERRUPTED
    assert read_stages(tmp_path)["policy"]["seconds"] > seconds
    (tmp_path / "policy").mkdir()
    assert list(read_stages(tmp_path)) == list(DEFAULT)
    with pytest.raises(ValueError, match="needs stage policy, which has not been run in"):
        alphago.run(TINY, TINY.config, tmp_path, None, ("rl-match",), quiet())
    interrupted.clear()
    ran.clear()
    for _ in range(2):
        assert alphago.run(TINY, TINY.config, tmp_path, None, DEFAULT, quiet()) == 0
    assert ran == ["policy"]


def test_the_time_of_a_stage_is_that_of_all_its_sessions(pretended, records, tmp_path, monkeypatch):
    _, interrupted = pretended
    monkeypatch.setattr(alphago, "prepare_data", lambda *_: records)
    sessions = []
    for stopped in (["rollout"], ["rollout"], []):
        interrupted[:] = stopped
        alphago.run(TINY, TINY.config, tmp_path, None, ("rollout",), quiet())
        sessions.append(read_stages(tmp_path)["rollout"]["seconds"])
    assert 0 < sessions[0] < sessions[1] < sessions[2]
    assert list(read_stages(tmp_path)) == ["rollout"]


def test_a_stage_that_is_older_than_what_it_needs_is_named(
    pretended, records, tmp_path, monkeypatch
):
    monkeypatch.setattr(alphago, "prepare_data", lambda *_: records)
    console = quiet()
    assert alphago.run(TINY, TINY.config, tmp_path, None, DEFAULT, console) == 0
    more = dataclasses.replace(TINY.config.value_data, positions=100)
    settings = dataclasses.replace(TINY.config, value_data=more)
    assert alphago.run(TINY, settings, tmp_path, None, DEFAULT, console) == 0
    output = console.file.getvalue()
    assert "value: done before value-data went on; docs/alphago2016.md says how" in output
    assert "rl-match: done before\n" in output


@pytest.mark.parametrize(
    ("gone", "stage"),
    [("tree", "lee"), ("value-data", "overfitting"), ("value-data", "value-error")],
)
def test_a_needed_stage_whose_directory_is_gone_is_an_error_at_the_start(
    pretended, records, tmp_path, gone, stage
):
    ran, _ = pretended
    others = tuple(name for name in DEFAULT if name != stage)
    assert alphago.run(TINY, TINY.config, tmp_path, records, others, quiet()) == 0
    (tmp_path / gone).rmdir()
    ran.clear()
    with pytest.raises(ValueError, match=f"stage {stage} needs stage {gone}, which has not been"):
        alphago.run(TINY, TINY.config, tmp_path, records, (stage,), quiet())
    assert alphago.run(TINY, TINY.config, tmp_path, records, (gone, stage), quiet()) == 0
    assert ran == [gone, stage]


@pytest.mark.parametrize(
    ("change", "stages"),
    [
        ({"filters": (2, 3, 4)}, ["filters", "strength"]),
        (
            {"matches": dataclasses.replace(TINY.config.matches, games=6)},
            ["rl-match", "mixing", "second-pass", "strength", "lee"],
        ),
        (
            {"value": dataclasses.replace(TINY.config.value, iterations=3)},
            ["value", "overfitting", "lee"],
        ),
    ],
)
def test_a_stage_with_other_settings_goes_on(
    pretended, records, tmp_path, monkeypatch, change, stages
):
    ran, _ = pretended
    monkeypatch.setattr(alphago, "prepare_data", lambda *_: records)
    for config in (TINY.config, dataclasses.replace(TINY.config, **change)):
        ran.clear()
        assert alphago.run(TINY, config, tmp_path, None, tuple(STAGES), quiet()) == 0
    assert ran == stages


def test_a_comparison_takes_the_policy_only_of_the_same_settings(monkeypatch, tmp_path):
    (tmp_path / "policy" / "checkpoint").mkdir(parents=True)
    policy = stage_config(TINY.config, "policy")
    monkeypatch.setattr(alphago_measures, "load_settings", lambda _: (2, policy))
    monkeypatch.setattr(alphago_measures, "held_out_records", lambda _: (None, np.arange(1)))
    monkeypatch.setattr(
        alphago_measures, "_accuracy", lambda _, name, place, *rest: claim(name, place.name)
    )
    learned = []
    monkeypatch.setattr(StageContext, "learn", lambda _, stage, *rest: learned.append(stage))
    tiny = TINY.config
    for settings, expected in (
        (tiny, []),
        (dataclasses.replace(tiny, seed=1), ["filters/2"]),
        (
            dataclasses.replace(tiny, network=dataclasses.replace(tiny.network, blocks=2)),
            ["filters/2"],
        ),
        (
            dataclasses.replace(tiny, replay=dataclasses.replace(tiny.replay, symmetries=False)),
            ["filters/2"],
        ),
    ):
        learned.clear()
        settings = dataclasses.replace(settings, filters=(2,))
        context = StageContext("tiny", settings, tmp_path, tmp_path, quiet())
        alphago_measures.MEASURES["filters"](context)
        assert learned == expected
    assert (tmp_path / "filters").is_dir(), "so the stage is done"


def test_a_match_has_one_interval(tmp_path):
    """That of its own record: the games of a pair, which share an opening, depend on each other."""
    request = MatchRequest(
        *["random:tictactoe"] * 2, games=20, random_plies=2, second_name="b", out=tmp_path
    )
    said = alphago_measures.format_score(play_match(request, quiet()))
    result = json.loads((tmp_path / "match.json").read_text())["result"]
    low, high = (100 * bound for bound in result["interval"])
    assert said == f"{100 * result['score']:.1f}% ({low:.1f} to {high:.1f}) of 20 games"


def test_errors_are_lines(pretended, tmp_path, capsys):
    with pytest.raises(
        ValueError, match="stage value needs stage value-data, which has not been run in"
    ):
        alphago.run(TINY, TINY.config, tmp_path / "new", None, ("value",), quiet())
    assert not (tmp_path / "new").exists(), "nothing was run"
    with pytest.raises(ValueError, match="no records in"):
        alphago.run(TINY, TINY.config, tmp_path / "new", None, ("planes",), quiet())
    assert not (tmp_path / "new").exists()
    with pytest.raises(SystemExit):
        alphago.start_stages(
            TINY, ["--workdir", str(tmp_path), "--config", str(tmp_path / "nothing.toml")]
        )
    assert "azero: cannot read the overlay" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("matches", {"games": 5}),
        ("matches", {"search_games": 3}),
        ("lee", {"games": 3}),
        ("value_data", {"positions": 0}),
        ("", {"filters": (32, 0)}),
        ("value_data", {"games_per_shard": 0}),
    ],
)
def test_sizes_that_a_late_stage_refuses_are_errors_at_the_start(section, change):
    settings = getattr(TINY.config, section) if section else TINY.config
    (name,) = change
    with pytest.raises(ValueError, match=f"{name.replace('_', '-')} is (even|at least 1)"):
        dataclasses.replace(settings, **change)


def test_missing_records_are_an_error_before_any_stage(pretended, records, tmp_path, monkeypatch):
    ran, _ = pretended
    with monkeypatch.context() as patched:
        patched.setattr(alphago, "prepare_data", lambda *_: records)
        alphago.run(TINY, TINY.config, tmp_path, None, ("rollout", "tree", "policy"), quiet())
    ran.clear()
    for stages in (("reinforce", "value-data", "prediction"), DEFAULT):
        with pytest.raises(ValueError, match="no records in"):
            alphago.run(TINY, TINY.config, tmp_path, None, stages, quiet())
    assert not ran
    assert alphago.run(TINY, TINY.config, tmp_path, None, ("reinforce",), quiet()) == 0


def test_records_without_a_split_are_an_error_before_any_stage(pretended, records, tmp_path):
    ran, _ = pretended
    shutil.rmtree(records / "test")
    with pytest.raises(ValueError, match="records has no games in its test split; it needs more"):
        alphago.run(TINY, TINY.config, tmp_path, records, DEFAULT, quiet())
    assert not ran
    stages = tuple(name for name in DEFAULT if name != "prediction")
    assert alphago.run(TINY, TINY.config, tmp_path, records, stages, quiet()) == 0


def test_a_value_error_does_not_need_records(records, tmp_path, monkeypatch):
    shutil.rmtree(records / "test")
    monkeypatch.setattr(alphago_measures, "_value_errors", lambda *_: [])
    for there in (None, records):
        context = StageContext("tiny", TINY.config, tmp_path, there, quiet())
        assert not alphago_measures.MEASURES["value-error"](context).rows


class Shards:
    """Makes shards of four positions, one of each game, and asks for a stop after some."""

    rows_per_position = 1
    stop_after: int | None = None

    def __init__(self, *arguments: object) -> None:
        pass

    def make(self, number: int, most_positions: int) -> MadeShard:
        frames = np.full((1, 4, 6), number, np.uint32)
        rows, games = pack_whole(
            Trace(frames, np.ones((1, 4, 82), bool)),
            np.zeros((4, 1), np.int32),
            np.ones(4, np.float32),
            4 * number,
        )
        if number == self.stop_after:
            raise KeyboardInterrupt
        return MadeShard(rows, games, 4)


def test_positions_that_were_interrupted_are_gone_on_with(monkeypatch, tmp_path):
    monkeypatch.setattr(alphago_stages, "ValueGames", Shards)
    monkeypatch.setattr(alphago_stages, "load_variables", lambda directory: (None, None))
    contents = []
    for directory, stops in ((tmp_path / "whole", [None]), (tmp_path / "parts", [1, 4, None])):
        context = StageContext("alphago9", TINY.config, directory, None, quiet())
        for stop in stops:
            monkeypatch.setattr(Shards, "stop_after", stop)
            try:
                outcome = make_positions(context, "value-data", "one")
            except KeyboardInterrupt:
                continue
        assert outcome.rows[0].ours == "32 positions of 32 games" and outcome.rows[
            0
        ].paper.startswith("over 30 M")
        data = Dataset.open(context.directory("value-data"))
        assert all(data.shards(split) for split in SPLITS)
        contents.append({split: data.rows(split).tobytes() for split in SPLITS})
    assert contents[0] == contents[1]


def test_an_interruption_within_a_shard_stores_no_game_twice(monkeypatch, tmp_path):
    """Also after a shard with a single game, of which nothing went to the test split."""

    class SmallFirst(Shards):
        def make(self, number: int, most_positions: int) -> MadeShard:
            made = super().make(number, most_positions)
            if number:
                return made
            one = select_games(made.games, np.arange(4) == 0)
            return MadeShard(made.rows[:1], one, 4)

    class Stopping(Dataset):
        def append(self, split, rows, games, sources):
            if split == "train" and games.number[0] == 4:
                raise KeyboardInterrupt
            super().append(split, rows, games, sources)

    monkeypatch.setattr(alphago_stages, "ValueGames", SmallFirst)
    monkeypatch.setattr(alphago_stages, "load_variables", lambda directory: (None, None))
    context = StageContext("alphago9", TINY.config, tmp_path, None, quiet())
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(alphago_stages, "Dataset", Stopping)
        make_positions(context, "value-data", "one")
    make_positions(context, "value-data", "one")
    data = Dataset.open(context.directory("value-data"))
    sources = [
        source
        for split in SPLITS
        for shard in data.shards(split)
        for source in data.sources(split, shard.shard)
    ]
    assert len(sources) == len(set(sources)) >= 32


def test_positions_that_are_cut_off_say_how_many_are_kept(monkeypatch, tmp_path):
    """They have no checkpoints, and a second Ctrl-C said that the same command starts over."""
    requests, said = [], []

    class Asking(Shards):
        def make(self, number: int, most_positions: int) -> MadeShard:
            said.append(requests[0].kept())
            return super().make(number, most_positions)

    @contextlib.contextmanager
    def noted(directory, stop_on_signals=alphago_stages.stop_on_signals):
        with stop_on_signals(directory) as stop:
            requests.append(stop)
            yield stop

    monkeypatch.setattr(alphago_stages, "stop_on_signals", noted)
    monkeypatch.setattr(alphago_stages, "ValueGames", Asking)
    monkeypatch.setattr(alphago_stages, "load_variables", lambda directory: (None, None))
    context = StageContext("alphago9", TINY.config, tmp_path, None, quiet())
    make_positions(context, "value-data", "one")
    place = context.directory("value-data")
    assert said[:2] == [
        f"{place} has {count} positions, and the same command continues from there"
        for count in (0, 4)
    ]


def test_positions_of_other_settings_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(alphago_stages, "ValueGames", Shards)
    monkeypatch.setattr(alphago_stages, "load_variables", lambda directory: (None, None))
    printed = []
    for changes in ({}, {"positions": 34}, {"last_random_move": 3}):
        made = dataclasses.replace(TINY.config.value_data, **changes)
        console = quiet()
        settings = dataclasses.replace(TINY.config, value_data=made)
        make_positions(StageContext("alphago9", settings, tmp_path, None, console))
        printed.append(console.file.getvalue())
    assert "other settings" not in printed[0] + printed[1]
    place = tmp_path / "value-data"
    assert (
        f"{place} has 36 positions of other settings, which are kept: "
        "last-random-move = 10 there, 3 now" in printed[2]
    )


def test_a_directory_of_stages_is_a_player(tmp_path):
    for part in ("policy", "value", "rollout"):
        (tmp_path / "alpha" / part).mkdir(parents=True)
    spec = parse_player(f"apv:{tmp_path}/alpha?visits=20&lambda=0&replies=1")
    assert spec.directories == {
        part: tmp_path / "alpha" / part for part in ("policy", "value", "rollout")
    }
    assert spec.name == "alphago2016 alpha, 20 visits, lambda 0, replies" and spec.has_replies
    assert parse_player(f"apv:{tmp_path}/alpha?value=elsewhere").value == Path("elsewhere")


def test_no_two_stages_draw_the_same_numbers(monkeypatch, tmp_path):
    """They count iterations, shards and batches from 0, so the same seed is the same numbers."""
    seeds = {}

    def see(stage, seed):
        seeds[stage] = seed
        raise KeyboardInterrupt

    monkeypatch.setattr(
        alphago_stages,
        "run_stage",
        lambda name, config, directory, *others: see(directory.name, config.run.seed),
    )
    monkeypatch.setattr(alphago_stages, "load_variables", lambda directory: (None, None))
    for stage in ("value-data", "value-data-all"):
        monkeypatch.setattr(
            alphago_stages,
            "ValueGames",
            lambda settings, *others, stage=stage: see(stage, settings.seed),
        )
        with pytest.raises(KeyboardInterrupt):
            make_positions(
                StageContext("tiny", TINY.config, tmp_path, tmp_path, quiet()), stage, "one"
            )
    for stage in ("rollout", "tree", "policy", "value", "reinforce", "second-pass"):
        with pytest.raises(KeyboardInterrupt):
            (alphago_stages.BUILDERS | alphago_measures.MEASURES)[stage](
                StageContext("tiny", TINY.config, tmp_path, tmp_path, quiet())
            )
    assert len(seeds) == len(set(seeds.values())) == 8, seeds
    assert stage_seed(1, "policy") != stage_seed(0, "policy") == stage_seed(0, "policy")


@pytest.mark.slow
def test_the_whole_at_the_smallest_size(tmp_path):
    request = ImportRequest(
        (EXPERT,),
        tmp_path / "records",
        Filters(size=(9,), suicide=True),
        Fractions(validation=0.25, test=0.25),
    )
    run_import(request, quiet())
    assert (
        alphago.run(TINY, TINY.config, tmp_path, tmp_path / "records", tuple(STAGES), quiet()) == 0
    )
    done = read_stages(tmp_path)
    assert list(done) == list(STAGES)
    rows = {row["what"]: row["ours"] for stage in done.values() for row in stage["rows"]}
    assert {
        "rl-match",
        "lambda 0 against lambda 1",
        "rating of lambda 0.5",
        "4 planes",
        "3 filters",
        "one position, test",
    } <= set(rows)
    assert {"planes/12 in the search", "SL rollouts, moves 0 to 9", "value network"} <= set(rows)
    assert (tmp_path / "lee" / "2" / "value" / "checkpoint").is_dir()
    assert "all positions of records, train" in rows and "second pass against SL" in rows
    assert json.loads((tmp_path / "run.json").read_text())["experiment"] == "alphago9"
