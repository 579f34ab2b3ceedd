"""Matches of our player against another program, one game at a time, refereed by our own rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from azero.engines.external import GtpPlayer
from azero.evaluate.sgf import format_result, format_sgf
from azero.games.game import Game
from azero.play.player import Clock, Player
from azero.play.referee import PLAYED_OUT, GameRecord, play_game
from azero.play.score import MatchResult, Tally

GNU_GO = "gnugo --mode gtp --level {level} --chinese-rules --positional-superko --capture-all-dead --seed {seed}"
"""GNU Go under rules as near ours as its options allow: area scoring, no repeated position, dead stones captured before it passes."""


def gnu_go_command(level: int = 10) -> list[str]:
    """Return the words that start GNU Go; `{seed}` stays open for the number of each game."""
    return GNU_GO.replace("{level}", str(level)).split()


@dataclass(frozen=True)
class ExternalGame:
    """One game against a program."""

    index: int
    """Number of the game, which is also the program's random seed."""
    we_move_first: bool
    record: GameRecord

    @property
    def reward(self) -> float:
        """+1, 0 or -1 for our player."""
        return self.record.rewards[0 if self.we_move_first else 1]

    def row(self) -> dict[str, Any]:
        """Return the game as plain values for a JSON line."""
        record = self.record
        position = record.final
        return {
            "game": self.index,
            "first": record.names[0],
            "second": record.names[1],
            "reward": self.reward,
            "winner": None if record.winner is None else record.names[record.winner],
            "ending": record.ending,
            "failed": None if record.failed is None else record.names[record.failed],
            "moves": len(position.actions),
            "actions": list(position.actions),
            "seconds": [round(seconds, 2) for seconds in record.seconds],
        }

    def sgf(self, komi: float) -> str:
        """Return the game as SGF text, with our player's values as comments."""
        record = self.record
        reason = "" if record.ending == PLAYED_OUT else "R" if record.failed is None else "F"
        comments = [None if value is None else f"value {value:+.2f}" for value in record.values]
        shape = record.final.game.board_shape
        return format_sgf(record.final.actions, shape, komi, record.names, format_result(record.rewards, reason), comments)


def play_external(
    player: Player,
    command: Sequence[str],
    games: int,
    game: Game,
    *,
    size: int,
    komi: float,
    program_name: str | None = None,
    timeout: float = 60.0,
    first_seed: int = 1,
    on_game: Callable[[ExternalGame], None] | None = None,
) -> list[ExternalGame]:
    """Play `games` games with each colour against a GTP program: first all as the first mover, then all as the second.

    The program runs in a new process for every game, with another random seed. What our rules forbid loses, as does a crash or silence, and is named.

    Args:
      player: our player.
      command: the words that start the program; `{seed}` in a word becomes the number of the game.
      games: games with each colour.
      game: the rules of the referee, with the same komi.
      size: points per side, told to the program.
      komi: told to the program.
      program_name: what reports call the program; None is the first word of the command.
      timeout: seconds the program may take over a move.
      first_seed: number of the first game.
      on_game: called after every game.

    Raises:
      ValueError: the program does not exist or cannot be started.
    """
    played: list[ExternalGame] = []
    for index in range(2 * games):
        seed = first_seed + index
        words = [word.replace("{seed}", str(seed)) for word in command]
        program = GtpPlayer(program_name or command[0], words, size=size, komi=komi, timeout=timeout)
        we_move_first = index < games
        first, second = (player, program) if we_move_first else (program, player)
        try:
            record = play_game(game, first, second, Clock(timeout))
        finally:
            program.close()
        played.append(ExternalGame(seed, we_move_first, record))
        if on_game is not None:
            on_game(played[-1])
    return played


def external_result(games: Sequence[ExternalGame]) -> MatchResult:
    """Return wins, draws and losses of our player by colour."""

    def tally(rewards: list[float]) -> Tally:
        return Tally(sum(reward > 0 for reward in rewards), sum(reward == 0 for reward in rewards), sum(reward < 0 for reward in rewards))

    return MatchResult(tally([g.reward for g in games if g.we_move_first]), tally([g.reward for g in games if not g.we_move_first]))
