"""Players by name whose network is a file of Leela Zero or ONNX; the search options of all networks
by name."""

from dataclasses import dataclass
from pathlib import Path

from azero.games.game import Game
from azero.games.settings import GameConfig
from azero.interop.onnx_file import Backend, OnnxNetwork
from azero.players.head_estimates import Heads
from azero.players.play_style import PlayStyle
from azero.players.searches import Constants, symmetry_of, visit_words, with_eyes_last
from azero.players.thinking import can_play, describe_board
from azero.players.tree_player import TreePlayer
from azero.search.leaf import external_leaf
from azero.search.single.evaluator import Symmetries
from azero.search.single.parallel import TreeSettings
from azero.settings import Config

FORMS = '"leela:FILE?visits=400&search=engine", "onnx:FILE?visits=400&backend=openvino"'


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How a network searches as a player: what its name may say."""

    visits: int | None = None
    """Simulations per move; 0 is the raw policy, None the number of the run's matches (in those of
    networks of Leela Zero 1,600, AGZ)."""
    search: str | None = None
    """One of SEARCHES, or the name of the run's own search (`with_search`); None is TRAINED in
    matches and ENGINE in engines."""
    constants: Constants = ()
    """Settings of the search other than its own."""
    symmetries: Symmetries | None = None
    """How positions are evaluated (`with_symmetries`); None is as in the run's matches."""

    def named(self, *words: str) -> str:
        """Return the name of a player: `words`, then the options of the search; with 0 visits there
        is no search."""
        found = [*words, *visit_words(self.visits)]
        found += [] if self.symmetries is None else [f"symmetries {self.symmetries}"]
        if self.visits != 0:
            found += [] if self.search is None else [self.search]
            found += [f"{name.replace('_', '-')} {value:g}" for name, value in self.constants]
        return ", ".join(found)


@dataclass(frozen=True)
class LeelaSpec(SearchOptions):
    """A network of Leela Zero as a player (`azero.interop.leela`)."""

    file: Path

    @property
    def name(self) -> str:
        """Its name in results."""
        return self.named(f"leela {self.file.name.removesuffix('.gz').removesuffix('.txt')}")


@dataclass(frozen=True)
class OnnxSpec:
    """An ONNX file that azero wrote as a player, evaluated by ONNX Runtime or OpenVINO
    (`azero.interop.onnx_file`). It has one search, the engine's."""

    file: Path
    visits: int | None = None
    """Visits of a move; None is the player's default."""
    backend: Backend = "onnxruntime"
    """The library that evaluates the network."""

    @property
    def name(self) -> str:
        """Its name in results."""
        how = [] if self.backend == "onnxruntime" else [self.backend]
        return SearchOptions(visits=self.visits).named(f"onnx {self.file.stem}", *how)


def make_game(name: str, config: Config, rules: GameConfig | None) -> Game:
    """Return the game that a network plays.

    Args:
      name: the player's, for the error.
      config: the settings that the network was made with.
      rules: what is played; None is the training's.

    Raises:
      ValueError: `rules` is of another game, or of a board that the network does not know.
    """
    trained = config.game.build()
    if rules is None:
        return trained
    game = rules.seen_as(config.game).build()
    if not can_play(trained, game, config.network.FITS_ANY_BOARD):
        raise ValueError(
            f"{name} knows {describe_board(trained)} and cannot play {describe_board(game)}: "
            "its network has one output per move"
        )
    return game


def load_onnx(
    spec: OnnxSpec, rules: GameConfig | None, tree: TreeSettings | None, style: PlayStyle, seed: int
) -> TreePlayer:
    """Load an ONNX file as a player with one tree for its game, by default with the engine search;
    `rules` are what is played, on the board that the network knows, by default as in training.
    Visits in its name are the limit of every move.

    Raises:
      ValueError: there is no such file, `azero checkpoint --export-onnx` did not write it, the
        backend is not installed, or `rules` is of another game or board.
    """
    network = OnnxNetwork(spec.file, spec.backend)
    config = network.config
    game = make_game(spec.name, config, rules)
    tree = tree or TreeSettings(symmetry=symmetry_of(config))
    leaf = with_eyes_last(config, game, external_leaf(game))
    evaluator = tree.make_evaluator(game, leaf, (), seed, network=network)
    if spec.visits is not None:
        style = style.with_visits(max(1, spec.visits))
    return TreePlayer(
        game,
        evaluator,
        settings=tree,
        style=style,
        name=spec.name,
        seed=seed,
        heads=Heads(config.network.build(game).heads, network.outputs).learned_with(config.learner),
    )
