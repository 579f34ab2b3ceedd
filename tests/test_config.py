"""Settings: overlays, overrides, mistakes that are named."""

import dataclasses
import tomllib
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from azero.commands.plan import parse_plan
from azero.config import check_range, config_hash, load_overlay, overlay, to_dict
from azero.experiment import MULTI_STAGE, NAMES, load
from azero.games.chess.settings import ChessConfig
from azero.games.settings import GameConfig
from azero.games.shogi.settings import ShogiConfig
from azero.games.table import make
from azero.networks.settings import NetworkConfig
from azero.search.settings import GumbelConfig
from azero.settings import Config, from_dict
from azero.train.alphago2016.run import load_stages
from azero.train.arguments import parse_arguments

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_survives_the_round_trip(name):
    config = load(name).config
    assert from_dict(to_dict(config)) == config


def test_every_overlay_fits_every_experiment_it_names():
    assert CONFIGS
    for path in CONFIGS:
        names = tomllib.loads(path.read_text())["about"]["experiments"]
        assert names, path
        for name in names:
            base = (load_stages if name in MULTI_STAGE else load)(name).config
            game = load_overlay(path, base).game
            assert game.seen_as(base.game) == base.game, (
                "an overlay may change what the network sees, never what is played"
            )


@pytest.mark.parametrize("overlay", ["v5e_1", "v5e_8", "pod"])
def test_overlays_for_slices_keep_the_amounts_of_the_experiment(overlay):
    """Rates fall and gates come by steps, so as many steps and positions belong to an iteration, or
    the run has as many more iterations."""

    def amounts(config: Config) -> tuple[object, ...]:
        selfplay, iterations = config.selfplay, config.run.iterations
        moves = selfplay.moves_per_dispatch * selfplay.dispatches_per_iteration
        steps = config.learner.steps_per_iteration
        positions = selfplay.num_games * moves * iterations
        return (
            positions,
            steps * iterations,
            steps * config.evaluation.every,
            config.learner.batch_size,
        )

    path = CONFIGS[0].parent / f"{overlay}.toml"
    for name in tomllib.loads(path.read_text())["about"]["experiments"]:
        base = load(name).config
        config = load_overlay(path, base)
        if (overlay, name) == ("pod", "go19_40b"):  # as the overlay says
            selfplay = dataclasses.replace(config.selfplay, dispatches_per_iteration=6)
            config = dataclasses.replace(config, selfplay=selfplay)
        assert amounts(config) == amounts(base), name


def test_every_learning_rate_is_reached():
    """A run that ends before its last rate was cut short; smoke.toml only shows that things run."""
    named = [
        (f"{path.stem} {name}", load_overlay(path, load(name).config))
        for path in CONFIGS
        for name in tomllib.loads(path.read_text())["about"]["experiments"]
        if path.stem != "smoke" and name not in MULTI_STAGE
    ]
    named += [(name, load(name).config) for name in NAMES if name not in MULTI_STAGE]
    for name, config in named:
        learner, (last, rate) = config.learner, config.learner.learning_rate[-1]
        steps = config.run.iterations * learner.steps_per_iteration
        # between two rates the last one is where a line or a wave ends, and 0 where steps end
        is_end = learner.rate_between != "steps" or rate == 0
        assert last < steps or (is_end and last == steps), f"{name}: {steps} steps, rate at {last}"


def test_an_unknown_key_names_the_nearest_one(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text("[search]\nnum_simulation = 3\n")
    with pytest.raises(
        ValueError,
        match=r"wrong\.toml: unknown key search\.num_simulation; the nearest one is "
        r"search\.num_simulations",
    ):
        load_overlay(path, Config())


def test_a_key_without_its_table_is_named_with_it(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text("num-simulations = 3\n")
    message = "unknown key num-simulations; the nearest one is search.num_simulations"
    with pytest.raises(ValueError, match=message):
        load_overlay(path, Config())


def test_an_overlay_that_does_not_fit_says_what_it_is_for():
    message = "cpu: unknown key search; the nearest one is .*; the overlay is for go7, go9"
    with pytest.raises(ValueError, match=message):
        load_overlay(Path("cpu"), load_stages("alphago9").config)


def test_the_name_of_a_kind_is_spelled_with_either_line() -> None:
    read = overlay({"game": {"name": "animal-shogi"}}, Config(), "settings")
    assert read.game == GameConfig.default("animal_shogi")


def test_a_class_variable_is_not_a_key(tmp_path):
    path = tmp_path / "wrong.toml"
    for key in ("KINDS", "MAKE"):
        path.write_text(f'[search]\n{key} = "x"\n')
        with pytest.raises(ValueError, match=f"key search.{key}; the nearest one is search.[a-z]"):
            load_overlay(path, Config())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[search]\nnum_simulations = 0\n", "at least 1, not 0"),
        ('[search]\nname = "alphabeta"\n', "search.name is one of puct, gumbel"),
        ("[search]\nnum_simulations = 1.5\n", "search.num_simulations is of type int, not 1.5"),
        ("search = 3\n", "search is a table of settings, not 3"),
        ("[game]\nsize = [9, 26]\n", "size 9x26: sides are 1 to 25"),
        ("[game]\nkomi = 1e9\n", "komi is a multiple of 0.5 from -10,000 to 10,000, not 1e+09"),
        ("[game]\nkomi = nan\n", "komi is a multiple of 0.5 from -10,000 to 10,000, not nan"),
        ("[game]\nsize = 9\n", "game.size is of type [int, ...], not 9"),
        (
            "[learner]\nlearning_rate = 0.1\n",
            "learner.learning_rate is of type [[int, float], ...], not 0.1",
        ),
        ("[learner]\nlearning_rate = [[10, 0.1]]\n", "from step 0 upwards"),
        ("[learner]\nlearning_rate = [[0, nan]]\n", "learning-rate is at least 0, not nan"),
        ("[learner]\nBATCH_SIZE = 8\n", "the nearest one is learner.batch_size"),
        (
            "[learner]\nbatch_size = 8\nbatch-size = 9\n",
            "learner.batch_size is given twice, with _ and with -",
        ),
        ("[learner]\nbatch_size = -8\n", "learner.batch-size is at least 1, not -8"),
        ("[learner]\nmomentum = 1.5\n", "learner.momentum is from 0 to 1, not 1.5"),
        ("[search]\ndirichlet_alpha = 0.0\n", "search.dirichlet-alpha is above 0, not 0.0"),
        ("[search]\nc_puct = inf\n", "search.c-puct is at least 0 and at most 3.4e+38, not inf"),
        ("[search]\nc_puct = 1e39\n", "search.c-puct is at least 0 and at most 3.4e+38, not 1e+39"),
        (
            '[search]\nname = "gumbel"\nc_visit = 1e30\nc_scale = 1e30\n',
            "search.c-visit is from 0 to 1000000000, not 1e+30",
        ),
        (
            "[search]\nroot_temperature = 1e-300\n",
            "search.root-temperature is above 0 by at least 1.2e-38, not 1e-300",
        ),
        (
            "[selfplay]\ntemperature_moves = 99999999999\n",
            "selfplay.temperature-moves is at least 0 and at most 2147483647, not 99999999999",
        ),
        (
            "[learner]\nlearning_rate = [[0, 0.1], [99999999999, 0.01]]\n",
            "learner.learning-rate is at least 0 and at most 2147483647, not 99999999999",
        ),
        (
            "[selfplay]\nmoves_per_dispatch = 0\n",
            "selfplay.moves-per-dispatch is at least 1, not 0",
        ),
        ("[selfplay]\nresign_false_positives = 0.0\n", "false-positives is above 0 and below 1"),
        (
            "[selfplay]\nfast_simulations = 8\nfull_search_probability = 0.0\n",
            "full-search-probability = 0: no move would be learned",
        ),
        ("[selfplay]\nresign_min_games = 5000\n", "resign-min-games is from 1 to 2000, not 5000"),
        ("[evaluation]\ngate_win_rate = 1.0\n", "gate-win-rate is below 1, which no player"),
        ("[replay]\nwindow_games = 0\n", "replay.window-games is at least 1, not 0"),
        ("[checkpoint]\nevery = 0\n", "checkpoint.every is at least 1, not 0"),
        ("[checkpoint]\nkeep = 0\n", "checkpoint.keep is at least 1, not 0"),
        ("[run]\nseed = -1\n", "run.seed is from 0 to 4294967295, not -1"),
        ("[[[", "is not valid TOML"),
    ],
)
def test_mistakes_in_an_overlay_are_quoted(tmp_path, text, message):
    path = tmp_path / "o.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"o\.toml") as caught:
        load_overlay(path, Config())
    assert message in str(caught.value)


def test_an_overlay_says_none_as_the_command_line_does(tmp_path):
    path = tmp_path / "o.toml"
    base = load("go9").config
    base = dataclasses.replace(base, game=base.game.replace(max_moves=99))
    path.write_text('[game]\nmax-moves = "None"\n')
    assert load_overlay(path, base).game.max_moves is None
    path.write_text('[game]\nkomi = "None"\n')
    with pytest.raises(ValueError, match=r"game\.komi is of type float, not 'None'"):
        load_overlay(path, base)


def test_an_overlay_may_come_from_a_windows_editor(tmp_path):
    path = tmp_path / "o.toml"
    path.write_bytes("\ufeff[run]\r\nseed = 7\r\n".encode())
    assert load_overlay(path, Config()).run.seed == 7


def test_the_name_of_a_kind_decides_which_settings_there_are(tmp_path):
    path = tmp_path / "o.toml"
    path.write_text('[search]\nname = "gumbel"\nmax-considered = 4\n')
    base = load("go9").config
    search = load_overlay(path, base).search
    assert search == GumbelConfig(num_simulations=base.search.num_simulations, max_considered=4)
    flags = ["--search.name", "gumbel", "--search.max-considered", "4"]
    assert parse_arguments(load("go9"), flags).settings.search == search
    path.write_text("[search]\nmax-considered = 4\n")
    with pytest.raises(
        ValueError,
        match=r"o\.toml: search\.max-considered is not a setting of puct, only of gumbel, mctx_gumbel",
    ):
        load_overlay(path, base)
    with pytest.raises(
        ValueError,
        match=r"--search\.name is one of puct, gumbel, mctx_puct, mctx_gumbel, not 'uct'",
    ):
        parse_arguments(load("go9"), ["--search.name", "uct"])
    for flags in (["--search.max-considered", "4"], ["--search.max_considered=4"]):
        with pytest.raises(
            ValueError, match=r"--search\.max-considered is not a setting of puct, only of gumbel"
        ):
            parse_arguments(load("go9"), flags)
    with pytest.raises(
        ValueError, match=r"--search\.reuse-tree is not a setting of gumbel, only of puct"
    ):
        parse_arguments(load("go9"), ["--search.name", "gumbel", "--search.reuse-tree"])


def test_settings_of_other_kinds_that_a_run_of_before_has_stored_are_left_out():
    stored = to_dict(Config())
    stored["game"] |= {"entering_king": True, "start_positions": None, "repetition_moves": None}
    stored["search"] |= {"max_considered": 16, "gumbel_scale": 1.0, "c_visit": 50.0, "c_scale": 1.0}
    stored["network"] |= {"pattern_bits": 16}
    assert from_dict(stored) == Config()


def test_a_missing_overlay_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"cannot read the overlay .*nowhere.toml: No such file"):
        load_overlay(tmp_path / "nowhere.toml", Config())


def test_a_setting_that_is_no_more_is_named_in_an_overlay_and_left_out_of_what_was_stored(tmp_path):
    settings = to_dict(Config())
    settings["selfplay"]["policy_slots"] = 48
    assert from_dict(settings) == Config()
    path = tmp_path / "overlay.toml"
    path.write_text("[selfplay]\npolicy-slots = 48\n")
    with pytest.raises(
        ValueError,
        match=r"overlay.toml: the setting selfplay.policy-slots was removed because policy "
        r"targets hold every move .*; remove the line",
    ):
        load_overlay(path, Config())


def test_the_command_line_wins_over_the_overlay_and_the_overlay_over_the_experiment():
    experiment = load("go9")
    arguments = parse_arguments(
        experiment, ["--config", str(CONFIGS[0]), "--search.num-simulations", "7", "--workdir", "w"]
    )
    overlay = load_overlay(CONFIGS[0], experiment.config)
    assert arguments.settings == dataclasses.replace(
        overlay, search=dataclasses.replace(overlay.search, num_simulations=7)
    )
    assert arguments.workdir == Path("w")
    assert parse_arguments(experiment, []).settings == experiment.config


def test_the_last_of_several_overlays_wins(tmp_path):
    texts = ("[search]\nnum-simulations = 7\n[run]\nseed = 3\n", "[search]\nnum-simulations = 9\n")
    paths = [tmp_path / "first.toml", tmp_path / "second.toml"]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    flags = ["--config", str(paths[0]), f"--config={paths[1]}"]
    for settings in (
        parse_arguments(load("go9"), flags).settings,
        parse_plan(["--experiment", "go9", *flags]).settings,
    ):
        assert (settings.search.num_simulations, settings.run.seed) == (9, 3)


def test_a_plan_takes_another_network_and_search_as_a_run_does():
    flags = ["--network.name", "pooled", "--search.name", "gumbel", "--search.c-visit", "40"]
    planned = parse_plan(["--experiment", "go9", *flags]).settings
    assert planned == parse_arguments(load("go9"), flags).settings
    assert (planned.network.name, planned.search.c_visit) == ("pooled", 40.0)


@dataclasses.dataclass(frozen=True)
class OwnNetwork(NetworkConfig):
    """A network whose settings have names of those of AlphaGo Zero's."""

    MAKER: ClassVar[str] = "azero.networks.make:make_resnet"
    name: Literal["own"] = "own"
    blocks: int = 3
    filters: int = 8
    heads: int = 4

    def __post_init__(self) -> None:
        check_range(self, "network", "filters heads", 1, 64)


def test_another_kind_takes_over_settings_of_the_same_type_that_are_not_given(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(
        NetworkConfig, "KINDS", {**NetworkConfig.KINDS, "own": f"{__name__}:OwnNetwork"}
    )
    go9 = load("go9")
    assert go9.config.network.filters > 64 and go9.config.network.heads == "dual"
    expected = OwnNetwork(blocks=go9.config.network.blocks, filters=16)
    flags = ["--network.name", "own", "--network.filters=16"]
    assert parse_arguments(go9, flags).settings.network == expected
    path = tmp_path / "own.toml"
    path.write_text('[network]\nname = "own"\nfilters = 16\n')
    assert load_overlay(path, go9.config).network == expected
    with pytest.raises(
        ValueError, match=r"^--network.name is own: network.filters is from 1 to 64, not \d+$"
    ):
        parse_arguments(go9, ["--network.name", "own"])


def test_an_unknown_flag_names_the_nearest_one(capsys):
    with pytest.raises(SystemExit):
        parse_arguments(load("go5"), ["--search.num-simulation", "7"])
    assert "--search.num-simulations" in capsys.readouterr().err


def test_help_explains_settings_with_their_sources(capsys):
    with pytest.raises(SystemExit) as end:
        parse_arguments(load("go19"), ["--help"])
    assert end.value.code == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Simulations per move (AGZ: 1600; AZ: 800; GUM: 16 to 400)." in text


def test_the_hash_tells_settings_apart():
    assert config_hash(Config()) == config_hash(Config())
    assert config_hash(Config()) != config_hash(
        dataclasses.replace(Config(), run=dataclasses.replace(Config().run, seed=1))
    )


def test_go19_has_the_published_numbers():
    """AlphaGo Zero, methods and Extended Data Table 3."""
    config = load("go19").config
    assert (config.network.blocks, config.network.filters, config.search.num_simulations) == (
        20,
        256,
        1600,
    )
    assert (config.learner.batch_size, config.learner.momentum, config.learner.l2) == (
        2048,
        0.9,
        1e-4,
    )
    assert config.learner.learning_rate == ((0, 1e-2), (400_000, 1e-3), (600_000, 1e-4))
    assert config.run.iterations * config.learner.steps_per_iteration == 700_000
    assert (
        config.evaluation.gate_games,
        config.evaluation.gate_win_rate,
        config.evaluation.every * config.learner.steps_per_iteration,
    ) == (400, 0.55, 1000)
    assert (
        config.replay.window_games,
        config.selfplay.temperature_moves,
        config.search.dirichlet_alpha,
    ) == (500_000, 30, 0.03)
    assert config.search.reuse_tree
    assert load("go19_40b").config.network.blocks == 40


def test_chess_has_the_published_numbers():
    """AlphaZero, Table S3 and the pseudocode."""
    config = load("chess").config
    assert (
        config.game.max_moves,
        config.network.blocks,
        config.network.filters,
        config.search.num_simulations,
    ) == (512, 20, 256, 800)
    assert (config.search.puct_form, config.search.pb_c_base, config.search.pb_c_init) == (
        "alphazero",
        19652.0,
        1.25,
    )
    assert (
        config.search.dirichlet_alpha,
        config.search.dirichlet_fraction,
        config.selfplay.temperature_moves,
    ) == (0.3, 0.25, 30)
    assert (config.learner.batch_size, config.learner.momentum, config.learner.l2) == (
        4096,
        0.9,
        1e-4,
    )
    assert config.learner.learning_rate == (
        (0, 2e-1),
        (100_000, 2e-2),
        (300_000, 2e-3),
        (500_000, 2e-4),
    )
    assert config.run.iterations * config.learner.steps_per_iteration == 700_000
    assert (
        config.replay.window_games,
        config.replay.symmetries,
        config.search.random_symmetry,
        config.evaluation.gate,
    ) == (1_000_000, False, False, False)


def test_shogi_has_the_published_numbers():
    """AlphaZero, Table S3 and the pseudocode: those of chess, but for the noise and the number of
    games."""
    chess, shogi = load("chess").config, load("shogi").config
    assert (shogi.game.name, shogi.game.max_moves, shogi.search.dirichlet_alpha) == (
        "shogi",
        512,
        0.15,
    )
    for part in ("network", "replay", "learner", "evaluation", "checkpoint", "run"):
        assert getattr(shogi, part) == getattr(chess, part), part
    assert dataclasses.replace(shogi.search, dirichlet_alpha=0.3) == chess.search


def test_alphazeros_go_has_the_published_numbers():
    """AlphaZero, Table S3 and the pseudocode: those of chess, but for the rules, the noise, the
    first learning rate and the number of games."""
    chess, go = load("chess").config, load("go19_alphazero").config
    assert (go.game.size, go.game.komi, go.game.max_moves, go.search.dirichlet_alpha) == (
        (19,),
        7.5,
        722,
        0.03,
    )
    assert dataclasses.replace(go.search, dirichlet_alpha=0.3) == chess.search
    assert go.learner == dataclasses.replace(
        chess.learner, learning_rate=((0, 2e-2), (300_000, 2e-3), (500_000, 2e-4))
    )
    for part in ("replay", "evaluation", "checkpoint", "run"):
        assert getattr(go, part) == getattr(chess, part), part
    assert (go.network.blocks, go.network.filters, go.network.value_hidden) == (20, 256, 256)


def test_the_options_of_a_game_are_those_that_it_has():
    assert ShogiConfig(max_moves=100, entering_king=False).options() == {
        "max_moves": 100,
        "entering_king": False,
    }
    with pytest.raises(TypeError, match="repetition_moves"):
        ChessConfig(repetition_moves=9)
    game = make(
        "shogi", **ShogiConfig(max_moves=300, repetition_moves=300, entering_king=False).options()
    )
    assert (game.max_moves, game.num_codes, game.entering_king) == (300, 300, False)
    default = make("shogi", **ShogiConfig().options())
    assert (default.num_codes, default.entering_king) == (192, True)


@pytest.mark.parametrize("name", ["cpu", "configs/cpu.toml"])
def test_own_overlays_are_known_by_name(name: str, tmp_path: Path, monkeypatch) -> None:
    expected = load_overlay(CONFIGS[0].parent / "cpu.toml", load("go9").config)
    monkeypatch.chdir(tmp_path)
    assert load_overlay(Path(name), load("go9").config) == expected
    (tmp_path / "cpu.toml").write_text("[run]\nseed = 7\n")
    assert load_overlay(Path("cpu.toml"), Config()).run.seed == 7, "files come first"
    for unknown in ("cup", "other/cpu.toml"):
        with pytest.raises(ValueError, match="cannot read the overlay"):
            load_overlay(Path(unknown), Config())
