"""Frozen, typed, validated settings; TOML overlays; dump, load and hash.

Every field says its unit and its source in the string below it; `--help` prints those strings. The defaults are AlphaGo Zero's where the paper gives one.
Sources: AGZ = Silver et al. 2017 (Nature 550); AZ = Silver et al. 2018 (Science 362) and its pseudocode; GUM = Danihelka et al. 2022 (ICLR); KG = Wu 2019.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import math
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

C = TypeVar("C")
"""A frozen dataclass of settings: `Config`, or that of another kind of experiment."""


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def check_range(settings: Any, table: str, names: str, low: float, high: float = math.inf, above: bool = False) -> None:
    """Check that the settings `names` of a table, those that are not None, lie in [low, high], with `above` in (low, high]; NaN lies nowhere.

    Raises:
      ValueError: one does not; it is named with its value and what is allowed.
    """
    for name in names.split():
        value = getattr(settings, name)
        if value is None or (low <= value <= high and not (above and value == low) and abs(value) < math.inf):
            continue
        allowed = f"above {low}" if above else f"at least {low}"
        allowed = allowed if high == math.inf else f"from {low} to {high}"
        raise ValueError(f"{table}.{name.replace('_', '-')} is {allowed}, not {value}")


Search = Literal["trained", "engine", "alphago_zero", "alphazero", "gumbel"]
"""Searches that the name of a network's player may say: that of its run's own matches, the tuned one of engines, or a rule, which has the run's constants."""


@dataclass(frozen=True)
class GameConfig:
    """Which game, and its rules."""

    name: str = "go"
    """Name in the table of games: animal_shogi, chess, go, minichess, shogi, tictactoe."""
    size: tuple[int, ...] = (19,)
    """Go: points per side; two numbers for a rectangular board (rows columns)."""
    komi: float = 7.5
    """Go: points added to White's area, a multiple of 0.5; a whole number makes draws (AGZ: 7.5)."""
    superko: Literal["positional", "situational", "simple"] = "positional"
    """Go: which repetitions are illegal (AGZ methods: no repetition of a position of the game)."""
    suicide: bool = False
    """Go: several stones may capture themselves, as in Tromp-Taylor."""
    max_moves: int | None = None
    """Moves after which the game is scored or drawn; None is the game's own number (Go: 2 x points, AGZ: 722; chess and shogi: 512, AZ; their small relatives: 256)."""
    entering_king: bool = True
    """Shogi: the side to move wins as soon as it could declare an entering king by the 27-point rule, as in play between programs today. AlphaZero's matches had no such
    rule (AZ: Elmo's EnteringKingRule was NoEnteringKing)."""
    repetition_moves: int | None = None
    """Shogi: a position that comes back is a repetition if it was there at most so many moves ago; each one costs a state four bytes. None is 192; max-moves is the
    whole game, as the rules have it."""
    start_positions: str | None = None
    """File of positions, one a line (FEN, SFEN), one of which is drawn for every game of self-play; None is the game's own beginning.
    Chess, minichess, shogi, animal shogi."""
    margin_weight: float = 0.0
    """Go: share of the reward of self-play and search that is the margin in points over the points of the board; the rest is the result. The papers have 0. Who wins a
    match is counted without it."""
    planes: int = 17
    """Go: what the network sees. 17 is AlphaGo Zero's input; 4, 12, 20, 48 or 49 are the first so many planes of AlphaGo's of 2016, 6 and 10 what
    its rollout and its tree policy see."""

    def for_matches(self) -> GameConfig:
        """Return the same game with rewards that say who won and nothing else."""
        return dataclasses.replace(self, margin_weight=0.0)

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of `azero.games.make` for this game."""
        if self.name in ("animal_shogi", "chess", "minichess", "shogi"):
            limits = {"max_moves": self.max_moves} | ({"repetition_moves": self.repetition_moves} if self.name == "shogi" else {})
            chosen: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
            return chosen | ({"entering_king": self.entering_king} if self.name == "shogi" else {})
        if self.name != "go":
            return {}
        size = self.size[0] if len(self.size) == 1 else tuple(self.size)
        rules = {"size": size, "komi": self.komi, "superko": self.superko, "suicide": self.suicide, "max_moves": self.max_moves}
        return {**rules, "num_planes": self.planes, "margin_weight": self.margin_weight}

    def __post_init__(self) -> None:
        _check(len(self.size) in (1, 2), f"game.size is one or two numbers, not {self.size}")
        check_range(self, "game", "max_moves", 1)


@dataclass(frozen=True)
class NetworkConfig:
    """The tower and its heads (AGZ methods, 'Neural network architecture')."""

    name: Literal["alphago_zero", "policy2016", "value2016", "rollout2016", "tree2016"] = "alphago_zero"
    """Which network: AlphaGo Zero's; the policy or the value network of AlphaGo in 2016, which read only blocks (AG16: 12), filters (192) and value-hidden (256);
    or its linear rollout or tree policy, which read only pattern-bits."""
    blocks: int = 20
    """Blocks of the tower; the first one is a single convolution, so "20 blocks" has 19 residual blocks, 39 convolutions (AGZ)."""
    filters: int = 256
    """Filters of every 3x3 convolution (AGZ: 256)."""
    tower: Literal["res", "conv", "plain"] = "res"
    """res: residual blocks of two convolutions (AGZ). conv: the same without their skip connections. plain: a convolution a block; the networks without
    residual blocks of AGZ Figure 4 have 12 of them."""
    heads: Literal["dual", "sep"] = "dual"
    """One tower for both heads, or a tower each (AGZ Figure 4)."""
    policy_head: Literal["linear", "planes"] = "linear"
    """linear: a 1x1 convolution and a linear layer over all moves (AGZ; AZ in Go). planes: a 3x3 convolution and then one logit for each square and plane of
    the code of moves (AZ: 73 planes in chess, 139 in shogi), for games whose moves are coded so."""
    policy_filters: int = 2
    """Filters of the policy head's convolution (AGZ: 2; AZ in chess and shogi: those of the tower, 256)."""
    policy_init: Literal["random", "identity"] = "random"
    """Initial weights of the policy head's linear layer (the paper gives none): random, or every point's move from that point's own features alone, which
    learns faster from few positions."""
    value_filters: int = 1
    """Filters of the value head's 1x1 convolution (AGZ: 1)."""
    value_hidden: int = 256
    """Units of the value head's hidden layer (AGZ: 256)."""
    train_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Compute type of the tower in training; parameters, statistics and heads stay float32."""
    inference_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Compute type of the tower in self-play and evaluation."""
    convolution: Literal["auto", "xla", "dots", "winograd"] = "auto"
    """How 3x3 convolutions are computed: XLA's own, matrix products over rows (CPUs with bf16 units), minimal filtering (other CPUs), or by shape and kind of
    processor. A run keeps what it began with."""
    pattern_bits: int = 16
    """rollout2016, tree2016: a table of patterns has 2 to this power weights (AG16: 69,338 and 32,207 weights)."""
    batch_norm_momentum: float = 0.95
    """Share of the old running statistics kept at each training step (the paper gives none)."""
    batch_norm_epsilon: float = 1e-5
    """Added to the variance (the paper gives none)."""

    def __post_init__(self) -> None:
        check_range(self, "network", "blocks filters policy_filters value_filters value_hidden", 1)
        check_range(self, "network", "pattern_bits", 4, 24)
        check_range(self, "network", "batch_norm_momentum", 0, 1)
        check_range(self, "network", "batch_norm_epsilon", 0, above=True)


@dataclass(frozen=True)
class SearchConfig:
    """The tree search of self-play."""

    name: Literal["puct", "gumbel", "mctx_puct", "mctx_gumbel"] = "puct"
    """Which search: our PUCT or Gumbel, or the same through the mctx library."""
    num_simulations: int = 1600
    """Simulations per move (AGZ: 1600; AZ: 800; GUM: 16 to 400)."""
    puct_form: Literal["alphago_zero", "alphazero"] = "alphago_zero"
    """alphago_zero: constant c_puct, unvisited moves count as a draw. alphazero: c grows with visits, unvisited moves count as a loss."""
    c_puct: float = 1.5
    """alphago_zero: the exploration constant, for values in [-1, 1] (unpublished; 1.5 as in ELF OpenGo)."""
    pb_c_base: float = 19652.0
    """alphazero: c = log((N + base + 1) / base) + init (AZ pseudocode)."""
    pb_c_init: float = 1.25
    """alphazero: see pb_c_base; for values in [0, 1] (AZ pseudocode)."""
    dirichlet_alpha: float = 0.03
    """Concentration of the root noise, over the legal moves (AGZ: 0.03 at 19x19, about 10 / moves)."""
    dirichlet_fraction: float = 0.25
    """Share of the noise in the root's prior (AGZ: 0.25; 0 is none)."""
    random_symmetry: bool = True
    """Evaluate every leaf in a random symmetry (AGZ: yes; AZ: no)."""
    max_considered: int = 16
    """gumbel: actions drawn without replacement at the root (GUM: 16)."""
    gumbel_scale: float = 1.0
    """gumbel: scale of the Gumbel noise at the root (GUM: 1 in self-play, 0 in evaluation)."""
    c_visit: float = 50.0
    """gumbel: see c_scale (GUM: 50)."""
    c_scale: float = 1.0
    """gumbel: sigma(q) = (c_visit + max N) c_scale q with q in [0, 1] (GUM: 1.0 in Go and chess)."""
    edge_width: int | None = None
    """Moves that a node of the tree has room for, those with the highest priors. None is as many as a position of the game can have, so that none is left out."""
    max_depth: int | None = None
    """Longest path from the root; None is no limit other than the number of simulations."""

    def __post_init__(self) -> None:
        check_range(self, "search", "num_simulations max_considered edge_width max_depth", 1)
        check_range(self, "search", "c_puct pb_c_init gumbel_scale c_visit c_scale", 0)
        check_range(self, "search", "pb_c_base dirichlet_alpha", 0, above=True)
        check_range(self, "search", "dirichlet_fraction", 0, 1)


@dataclass(frozen=True)
class SelfplayConfig:
    """Games played at once, and how a move is chosen."""

    num_games: int = 4096
    """Games played side by side over all devices together."""
    search_batch: int | None = None
    """Games of one device searched at once; fewer bound the memory of the trees. None is all of them."""
    moves_per_dispatch: int = 16
    """Moves of every game per compiled call; nothing leaves the devices in between."""
    dispatches_per_iteration: int = 4
    """Compiled calls per iteration of the loop."""
    temperature_moves: int = 30
    """Moves at temperature 1 from the start of a game, then 0 (AGZ: 30)."""
    random_moves: int = 0
    """Moves at the start of a game that may be drawn from all legal ones (random-share), so that self-play meets positions that it would avoid (the papers have none)."""
    random_share: float = 0.1
    """Share of those moves that are so drawn; the search's policy is what is learned there too."""
    resign: bool = True
    """Whether self-play resigns: when the root's value and the best child's are below a threshold that is calibrated as games arrive (AGZ: yes)."""
    resign_false_positives: float = 0.05
    """Share of won games that the threshold may give up (AGZ: below 5%)."""
    resign_disabled: float = 0.10
    """Share of games played to the end, from which the threshold is calibrated (AGZ: 10%)."""
    resign_min_games: int = 200
    """Games played to the end before anything resigns (none given; below it the 5% is not measurable)."""
    fast_simulations: int | None = None
    """Playout-cap randomisation (KG): simulations of the fast moves; None is off."""
    full_search_probability: float = 0.25
    """Playout-cap randomisation (KG): share of moves that get the full search and become policy targets."""

    def __post_init__(self) -> None:
        check_range(self, "selfplay", "num_games search_batch moves_per_dispatch dispatches_per_iteration resign_min_games fast_simulations", 1)
        check_range(self, "selfplay", "temperature_moves random_moves", 0)
        check_range(self, "selfplay", "random_share resign_false_positives resign_disabled full_search_probability", 0, 1)


@dataclass(frozen=True)
class ReplayConfig:
    """The window of games that the learner samples from."""

    window_games: int = 500_000
    """Games in the window, the most recent ones (AGZ: 500,000; AZ: 1,000,000)."""
    min_positions: int = 100_000
    """Positions in the window before learning begins."""
    symmetries: bool = True
    """Draw a random symmetry for every sample (AGZ: yes; AZ: no)."""
    prefetch: int = 4
    """Batches made ready ahead of the learner."""

    def __post_init__(self) -> None:
        check_range(self, "replay", "window_games prefetch", 1)
        check_range(self, "replay", "min_positions", 0)


@dataclass(frozen=True)
class LearnerConfig:
    """Equation 1 of AlphaGo Zero and its optimiser."""

    batch_size: int = 2048
    """Positions per step over all devices together (AGZ: 2048; AZ: 4096)."""
    steps_per_iteration: int = 100
    """Steps per iteration of the loop."""
    optimiser: Literal["momentum", "adamw"] = "momentum"
    """SGD with momentum (AGZ) or AdamW."""
    momentum: float = 0.9
    """Momentum of SGD (AGZ: 0.9)."""
    learning_rate: tuple[tuple[int, float], ...] = ((0, 1e-2), (400_000, 1e-3), (600_000, 1e-4))
    """Steps of the learning rate: pairs of first training step and rate (AGZ Extended Data Table 3)."""
    rate_between: Literal["steps", "linear", "cosine"] = "steps"
    """The rate between the steps that learning-rate names: that of the last one (AGZ), or on a line or half a cosine wave to the next one's."""
    warmup_steps: int = 0
    """Steps over which the rate grows linearly from zero (the papers have none)."""
    l2: float = 1e-4
    """Weight of the squared parameters in the loss; with AdamW the decoupled weight decay (AGZ: 1e-4)."""
    clip_norm: float | None = None
    """Gradients whose norm over all parameters is larger are scaled down to it, before momentum; None is off (the papers have none)."""
    value_weight: float = 1.0
    """Weight of the value loss (AGZ: 1 in reinforcement learning, 0.01 in the supervised comparison)."""
    max_samples_per_position: float | None = None
    """Upper bound on how often the learner sees a new position on average; None is no bound."""

    def __post_init__(self) -> None:
        steps = [first for first, _ in self.learning_rate]
        _check(bool(steps) and steps[0] == 0 and steps == sorted(set(steps)), "learner.learning-rate is pairs (first step, rate) from step 0 upwards")
        for _, rate in self.learning_rate:
            _check(0 <= rate < math.inf, f"a rate of learner.learning-rate is at least 0, not {rate}")
        check_range(self, "learner", "batch_size", 1)
        check_range(self, "learner", "steps_per_iteration warmup_steps l2 value_weight", 0)
        check_range(self, "learner", "momentum", 0, 1)
        check_range(self, "learner", "max_samples_per_position clip_norm", 0, above=True)


@dataclass(frozen=True)
class EvaluationConfig:
    """Matches against former checkpoints, and the gate."""

    gate: bool = True
    """Self-play uses the best player so far, which a new one must beat (AGZ: yes); without it always the newest (AZ)."""
    gate_games: int = 400
    """Games of the gate's match (AGZ: 400)."""
    gate_win_rate: float = 0.55
    """The new player replaces the best one above this share of wins (AGZ: 55%)."""
    every: int = 10
    """Iterations between evaluations (AGZ: one per 1,000 training steps); 0 is never."""
    validation_positions: int = 10_000
    """Learning from records: positions of the validation split looked at in an evaluation."""
    games: int = 0
    """Games against the checkpoint of the previous evaluation, for the Elo curve; 0 is none (with the gate, the gate's match counts)."""
    num_simulations: int | None = None
    """Simulations per move in matches; None is as in self-play (AGZ: 1600)."""
    average_symmetries: bool = False
    """Evaluate a position as the mean over all its symmetries: much stronger where the network is small, and eight times the work (AGZ: no, a random one)."""
    temperature_moves: int = 0
    """Moves at the start of a match game that are drawn in proportion to the search's weights, for variety (AGZ: 0, its random symmetries vary the games)."""
    sensible_moves: bool = False
    """Go: nobody fills an own eye while any other move is left, a pass included (AG16's sensible moves). Networks that have learned from recorded games want it:
    there one side resigns or the record ends before the passes, and so they play on for as long as there is a point."""

    def __post_init__(self) -> None:
        check_range(self, "evaluation", "gate_games validation_positions num_simulations", 1)
        check_range(self, "evaluation", "every games temperature_moves", 0)
        check_range(self, "evaluation", "gate_win_rate", 0, 1)


@dataclass(frozen=True)
class CheckpointConfig:
    """What is kept on disk."""

    every: int = 10
    """Iterations between checkpoints."""
    keep: int = 3
    """Most recent checkpoints kept."""
    keep_every: int | None = None
    """Checkpoints of every so many iterations are kept for good (players of the Elo curve)."""

    def __post_init__(self) -> None:
        check_range(self, "checkpoint", "every keep keep_every", 1)


@dataclass(frozen=True)
class RunConfig:
    """Length, seed and machines of a run."""

    iterations: int = 7000
    """The run ends after so many iterations in all."""
    seed: int = 0
    """Seed of every random draw."""
    distributed: Literal["auto", "on", "off"] = "auto"
    """Several hosts: found from the cluster (auto), required (on), or not looked for (off)."""
    coordinator: str | None = None
    """Several hosts that JAX does not find by itself: HOST:PORT of process 0, a free port of it."""
    coordinator_bind: str | None = None
    """Address that process 0 listens on where it is not HOST, as behind a router that changes addresses; never more than what is named."""
    num_processes: int | None = None
    """With coordinator: how many processes there are; None is what Slurm or Open MPI says."""
    process_id: int | None = None
    """With coordinator: which one this is, from 0; None is what Slurm or Open MPI says."""
    join_seconds: int = 300
    """How long a process waits for the others at the start."""
    profile_iteration: int | None = None
    """Write a profiler trace of this iteration into the working directory."""

    def __post_init__(self) -> None:
        check_range(self, "run", "iterations process_id", 0)
        check_range(self, "run", "seed", 0, 2**32 - 1)
        check_range(self, "run", "num_processes join_seconds profile_iteration", 1)


@dataclass(frozen=True)
class Config:
    """All settings of one experiment."""

    game: GameConfig = field(default_factory=GameConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    selfplay: SelfplayConfig = field(default_factory=SelfplayConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    run: RunConfig = field(default_factory=RunConfig)


def to_dict(config: Any) -> dict[str, Any]:
    """Return the settings as plain dictionaries, lists and scalars."""
    return typing.cast(dict[str, Any], json.loads(json.dumps(dataclasses.asdict(config))))


@overload
def from_dict(data: dict[str, Any], base: None = None, source: str = "settings") -> Config: ...
@overload
def from_dict(data: dict[str, Any], base: C, source: str = "settings") -> C: ...
def from_dict(data: dict[str, Any], base: Any = None, source: str = "settings") -> Any:
    """Return `base` (or the defaults of `Config`) with the keys of `data` replaced; settings that are no more, as runs of before have them, are left out.

    Raises:
      ValueError: a key is unknown (the nearest one is named) or a value has the wrong type; `source` and the key are quoted.
    """
    return _overlay(base if base is not None else Config(), _without_retired(data), "", source)


def load_overlay(path: Path, base: C) -> C:
    """Return `base` with the keys of the TOML file at `path` replaced; its table [about] is for people and for `overlay_experiments`.

    Raises:
      ValueError: the file cannot be read, is not TOML, or names a key that does not exist.
    """
    data = _read_toml(path)
    data.pop("about", None)
    return typing.cast(C, _overlay(base, data, "", str(path)))


LARGEST_OVERLAY = 64 << 10
"""Bytes; those of configs/ have up to 2,000, and tomllib takes quadratic time over dotted keys."""


def overlay_experiments(path: Path) -> list[str]:
    """Return the names of the experiments that the overlay at `path` is made for.

    Raises:
      ValueError: the file cannot be read or is not TOML.
    """
    return list(_read_toml(path).get("about", {}).get("experiments", []))


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_OVERLAY:
            raise ValueError(f"it has more than {LARGEST_OVERLAY >> 10} KiB, which no settings need")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"cannot read the overlay {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, or tables in tables without an end
        raise ValueError(f"{path} is not valid TOML: {' '.join(str(error).split())[:300]}") from error


def config_hash(config: Any) -> str:
    """Return 12 hexadecimal digits that differ when any setting differs."""
    return hashlib.sha256(json.dumps(to_dict(config), sort_keys=True).encode()).hexdigest()[:12]


_RETIRED = {"selfplay.policy_slots": "policy targets hold every move that the search visits"}
"""Settings that are no more, and why."""


def _without_retired(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    kept = {key: value for key, value in data.items() if f"{prefix}{key}" not in _RETIRED}
    return {key: _without_retired(value, f"{prefix}{key}.") if isinstance(value, dict) else value for key, value in kept.items()}


def _overlay(base: Any, data: dict[str, Any], prefix: str, source: str) -> Any:
    hints = typing.get_type_hints(type(base))
    changes: dict[str, Any] = {}
    for key, value in data.items():
        name = key.replace("-", "_")
        if name not in hints and f"{prefix}{name}" in _RETIRED:
            raise ValueError(f"{source}: there is no setting {prefix}{key} any more, for {_RETIRED[f'{prefix}{name}']}; take the line out")
        if name not in hints:
            nearest = difflib.get_close_matches(name, hints, n=1, cutoff=0.0)[0]
            raise ValueError(f"{source}: unknown key {prefix}{key}; the nearest one is {prefix}{nearest}")
        current = getattr(base, name)
        if dataclasses.is_dataclass(current):
            if not isinstance(value, dict):
                raise ValueError(f"{source}: {prefix}{key} is a table of settings, not {value!r}")
            changes[name] = _overlay(current, value, f"{prefix}{key}.", source)
        else:
            changes[name] = _convert(value, hints[name], f"{prefix}{key}", source)
    try:
        return dataclasses.replace(base, **changes)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def _convert(value: Any, hint: Any, key: str, source: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _convert(value, next(a for a in arguments if a is not type(None)), key, source)
    if origin is Literal:
        if value in arguments:
            return value
        raise ValueError(f"{source}: {key} is one of {', '.join(map(str, arguments))}, not {value!r}")
    if origin is tuple and isinstance(value, list | tuple):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_convert(item, arguments[0], key, source) for item in value)
        if len(arguments) == len(value):
            return tuple(_convert(item, a, key, source) for item, a in zip(value, arguments, strict=True))
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(hint, type) and isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
        return value
    raise ValueError(f"{source}: {key} is of type {getattr(hint, '__name__', hint)}, not {value!r}")
