"""The arguments that name a player, the same for every command that plays or analyses."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import Positional

from azero.models.naming import check_directory
from azero.search.settings import Search

if TYPE_CHECKING:
    from azero.players.specs import ThinkerSpec

DEFAULTS = {"go": "go9", "chess": "chess", "shogi": "shogi"}
"""The network that plays a game where no player is named."""


@dataclass(frozen=True)
class Source:
    """The player of a command."""

    who: Annotated[Positional[str | None], tyro.conf.arg(metavar="[PLAYER]")] = None
    """A network that ships (go9; azero models lists them), the directory of a run or of an exported
    network, or a player of ours as azero match has them ("model:go9?visits=100",
    "apv:POLICY_DIR?value=DIR&rollout=DIR&tree=DIR"). Default: a network that ships."""
    checkpoint: str | None = None
    """The same as PLAYER; a word without a colon is a directory."""
    random_net: str | None = None
    """Instead of PLAYER: the untrained network of an experiment, to try a program out: go9,
    tictactoe; "chess?blocks=2&filters=32" is a small one."""
    player: str | None = None
    """The same as PLAYER."""
    iteration: int | None = None
    """Checkpoint of a run; default the newest."""
    search: Search | None = None
    """engine (tuned for one game, the default), trained (the search that the run's own matches
    have), or alphago_zero, alphazero or gumbel by name."""

    def text(self, game: str) -> str:
        """Return the player's name, that of the default for `game` where none is given.

        Raises:
          ValueError: more than one is given.
        """
        given = [text for text in (self.who, self.player) if text is not None]
        if self.checkpoint is not None:
            is_directory = ":" not in self.checkpoint
            given += [f"checkpoint:{self.checkpoint}" if is_directory else self.checkpoint]
        given += [] if self.random_net is None else [f"random-net:{self.random_net}"]
        if len(given) > 1:
            raise ValueError(f"give one player, not {len(given)}: {', '.join(given)}")
        if given:
            return given[0]
        return f"model:{DEFAULTS[game]}"

    @property
    def is_default(self) -> bool:
        """Whether no player is named."""
        return not any((self.who, self.player, self.checkpoint, self.random_net))

    def spec(self, game: str = "go") -> ThinkerSpec:
        """Return the player among those of `azero.players.specs`; see `text`.

        Raises:
          ValueError: it is not understood, there is no such directory, or it is a program.
        """
        from azero.players.specs import CheckpointSpec, NetworkSpec, parse_thinker

        text = self.text(game)
        spec = parse_thinker(text)
        if isinstance(spec, CheckpointSpec):
            check_directory(spec.workdir)
            if self.iteration is not None:
                spec = dataclasses.replace(spec, iteration=self.iteration)
        elif self.iteration is not None:
            raise ValueError(f"--iteration is for the checkpoints of a run; {text!r} has none")
        if self.search is None:
            return spec
        if not isinstance(spec, NetworkSpec):
            raise ValueError(f"--search is for a single network; {text!r} has its own search")
        return dataclasses.replace(spec, search=self.search)
