"""Games between two players from Python."""

import contextlib
import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from azero.api.model import Model
from azero.config import check
from azero.console.tables import count_of
from azero.games.game import Game
from azero.games.go.settings import GoConfig
from azero.games.go.text import format_score
from azero.games.position import Position
from azero.games.settings import GameConfig
from azero.games.table import side_names
from azero.match.external import Pairing, play_games
from azero.match.games import MatchGame
from azero.match.records import RECORDS, Occasion
from azero.match.referee import PLAYED_OUT
from azero.players.play_style import PlayStyle
from azero.players.player import MakePlayer, Player
from azero.players.program import find_program
from azero.players.program_specs import ProgramSpec, program_maker
from azero.players.specs import ThinkerSpec, parse_player
from azero.players.thinking import Limits
from azero.players.tree_player import TreePlayer


@dataclass(frozen=True)
class FinishedGame:
    """A game that `play` has played."""

    players: tuple[str, str]
    """Names of the first and the second player of the game: Black and White in Go."""
    moves: tuple[str, ...]
    """All moves by name, those of the opening included."""
    winner: str | None
    """The name of the player who won; None for a draw."""
    result: str
    """How it ended: "B+3.5", "White wins", "a draw", "go9 resigns", or what a player did wrong."""
    position: Position
    """The last position."""
    record: str | None
    """SGF of Go, PGN of chess, CSA of shogi, with the players' values and expected lines; other
    games have no common format."""

    def __str__(self) -> str:
        sides = zip(self.players, side_names(self.position.game.name), strict=True)
        first, second = (f"{player} ({side})" for player, side in sides)
        return f"{first} against {second}: {self.result} after {count_of(len(self.moves), 'move')}"

    def save(self, path: str | Path) -> None:
        """Write the record to a file.

        Raises:
          ValueError: the game has no common format, or the file's suffix is that of another one.
          OSError: the file cannot be written.
        """
        name = self.position.game.name
        if self.record is None:
            raise ValueError(f"there is no common file format for {name}")
        suffix = Path(path).suffix.lower()
        if suffix in {other for other, _ in RECORDS.values()} - {RECORDS[name][0]}:
            raise ValueError(f"{path}: the format of {name} is {RECORDS[name][0]}, not {suffix}")
        Path(path).write_text(self.record, encoding="utf-8")


def play(
    first: Model | str | Path,
    second: Model | str | Path,
    *,
    visits: int | None = None,
    seconds: float | None = None,
    komi: float | None = None,
    opening: str = "",
    start: str = "",
    drawn_moves: int = 0,
    timeout: float = 600.0,
    seed: int = 0,
) -> FinishedGame:
    """Play one game under azero's rules.

    Args:
      first: who moves first (Black in Go, White in chess): a model, what `load` takes, or a program
        as in `azero match`: "gtp:gnugo --mode gtp", "uci:stockfish?skill=0". At least one of the
        two is a model.
      second: the other player.
      visits: of every move of a model that searches; None is as in `Model.search`.
      seconds: of every move of a model; None for no limit.
      komi: Go: points for White; None is that of the first model's run.
      opening: moves by name that begin the game: "E5 C3".
      start: position in FEN or SFEN that it begins with; empty is the game's own.
      drawn_moves: moves at the start of the game that a model samples in proportion to the
        search's visits, so that games differ: a `Model` samples other moves in every game, a player
        given by name other moves with every `seed`.
      timeout: seconds that a player may take for a move.
      seed: seed of players given by name; it replaces {seed} in a program's command.

    Raises:
      ValueError: a player is not understood, plays another game or is not installed; a move of the
        opening is not legal; `drawn_moves` or `seed` is below 0, or `timeout` not above 0.
    """
    check(drawn_moves >= 0, f"drawn_moves is at least 0, not {drawn_moves}")
    check(seed >= 0, f"seed is at least 0, not {seed}")
    check(timeout > 0, f"timeout is above 0 seconds, not {timeout}")
    sides = [_side(first, seed)]
    sides.append(sides[0] if second == first else _side(second, seed))
    models = [side for side in sides if isinstance(side, Model)]
    if not models:
        raise ValueError("at least one player must be a network; azero match plays two programs")
    rules = _rules(models[0], komi)
    game = rules.build()
    names = _names(sides)
    pairing = Pairing(1, start=start, first_colour=0)
    opened = pairing.first_position(game).play_moves(opening)
    pairing = dataclasses.replace(pairing, opening_moves=opened.actions)
    with contextlib.ExitStack() as stack:
        thinkers = _hold(models, game, stack)
        makers: list[MakePlayer] = []
        for side, name in zip(sides, names, strict=True):
            if not isinstance(side, Model):
                if side.game != game.name:
                    raise ValueError(f"{name} plays {side.game}, not {game.name}")
                makers.append(program_maker(side, name, rules, timeout, seed - 1))
                continue
            thinker = thinkers[id(side)]
            stack.callback(setattr, thinker, "style", thinker.style)
            thinker.style = _styled(thinker.style, side.limits(visits, seconds), drawn_moves)
            makers.append(_same(thinker))
        (played,) = play_games(game, [(makers[0], makers[1])], [pairing], timeout=timeout)
    return _finished(played, pairing.first_position(game), names)


def _rules(model: Model, komi: float | None) -> GameConfig:
    rules = model.config.game.for_matches()
    if komi is None:
        return rules
    if not isinstance(rules, GoConfig):
        raise ValueError(f"komi is a setting of Go, not of {rules.name}")
    return rules.replace(komi=komi)


def _hold(
    models: Sequence[Model], game: Game, stack: contextlib.ExitStack
) -> dict[int, TreePlayer]:
    """Return the player of each model, by the model's id, held until `stack` closes. They are taken
    in the order of the ids, so that two games never wait for each other's models."""
    held = {id(model): model for model in models}
    return {key: stack.enter_context(held[key].held_to_search(game)) for key in sorted(held)}


def _styled(style: PlayStyle, limits: Limits, drawn_moves: int) -> PlayStyle:
    """Return how a network plays one game. One that does not search (visits=0) keeps its limits;
    for one whose search counts new visits alone, `limits` count those too."""
    if 0 in (style.limits.visits, style.limits.playouts):
        limits = style.limits
    elif style.limits.playouts is not None:
        limits = dataclasses.replace(limits, visits=None, playouts=limits.visits)
    return dataclasses.replace(
        style, limits=limits, temperature_moves=max(drawn_moves, style.temperature_moves)
    )


def _side(player: Model | str | Path, seed: int) -> Model | ProgramSpec:
    if isinstance(player, Model):
        return player
    spec = parse_player(str(player))
    if isinstance(spec, ThinkerSpec):
        return Model(spec, seed)
    find_program(spec.command[0])
    return spec


def _names(sides: Sequence[Model | ProgramSpec]) -> tuple[str, str]:
    """Return names that tell the players apart."""
    first, second = (side.name for side in sides)
    return first, f"{second} (2)" if second == first else second


def _same(player: Player) -> MakePlayer:
    return lambda number: player


def _finished(game: MatchGame, position: Position, names: tuple[str, str]) -> FinishedGame:
    """Return the finished game with names for its moves; `position` is its first position."""
    moves = []
    board = position.game
    for action in game.actions:
        moves.append(position.action_name(action))
        position = position.play(action)
    drawn = game.reward == 0
    winner = None if drawn else names[0 if game.reward > 0 else 1]
    if game.margin is not None:
        result = format_score(game.margin)
    elif game.ending != PLAYED_OUT:
        result = game.ending
    else:
        sides = side_names(board.name)
        result = "a draw" if drawn else f"{sides[0 if game.reward > 0 else 1]} wins"
    record = None
    if board.name in RECORDS:
        _, write = RECORDS[board.name]
        record = write(game, board, names, Occasion(date=time.strftime("%Y-%m-%d")))
    return FinishedGame(names, tuple(moves), winner, result, position, record)
