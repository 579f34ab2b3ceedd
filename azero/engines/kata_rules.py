"""Rules of Go as KataGo's protocols write them: JSON or a shorthand. Sources: KataGo's docs/GTP_Extensions.md, `kata-get-rules` and `kata-set-rules`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from azero.games.go.rules import Superko

Bonus = Literal["0", "N", "N-1"]
_AREA = {"scoring": "AREA", "tax": "NONE", "hasButton": False}
"""What this engine counts, and all that it counts."""


@dataclass(frozen=True)
class Rules:
    """Rules of Go apart from board and komi. Scoring is always by area."""

    superko: Superko = "positional"
    suicide: bool = False
    white_handicap_bonus: Bonus = "0"
    """Points for White in a game with N handicap stones."""

    def bonus(self, num_handicap: int) -> int:
        """Return White's extra points for `num_handicap` stones."""
        if num_handicap < 2:
            return 0
        return {"0": 0, "N": num_handicap, "N-1": num_handicap - 1}[self.white_handicap_bonus]


SHORTHANDS = {
    "tromp-taylor": Rules("positional", True),
    "chinese": Rules("simple", False, "N"),
    "chinese-ogs": Rules("positional", False, "N"),
    "chinese-kgs": Rules("positional", False, "N"),
    "aga": Rules("situational", False, "N-1"),
    "bga": Rules("situational", False, "N-1"),
    "new-zealand": Rules("situational", True),
}
TERRITORY = ("japanese", "korean", "stone-scoring", "aga-button")
"""Shorthands whose way of counting this engine does not have."""


def format_rules(rules: Rules) -> str:
    """Return the rules as one line of JSON, keys in KataGo's order."""
    fields = {
        "friendlyPassOk": False,
        "hasButton": False,
        "ko": rules.superko.upper(),
        "scoring": "AREA",
        "suicide": rules.suicide,
        "tax": "NONE",
        "whiteHandicapBonus": rules.white_handicap_bonus,
    }
    return json.dumps(fields, separators=(",", ":"))


def parse_rules(given: str | dict[str, Any], current: Rules) -> Rules:
    """Return the rules that a shorthand, JSON text or a JSON object names; what it leaves out stays as in `current`.

    Raises:
      ValueError: it is not understood, or asks for what this engine has not; the text is quoted and the choices are named.
    """
    if isinstance(given, str) and not given.strip().startswith("{"):
        name = given.strip().lower().replace("_", "-")
        if name in TERRITORY:
            raise ValueError(f"rules {name!r} are not supported: this engine counts area only ({', '.join(SHORTHANDS)})")
        if name not in SHORTHANDS:
            raise ValueError(f"unknown rules {given.strip()[:80]!r}; the rules are: {', '.join(SHORTHANDS)}")
        return SHORTHANDS[name]
    try:
        fields = json.loads(given) if isinstance(given, str) else given
    except RecursionError:
        raise ValueError("rules are one JSON object, not so many in each other") from None
    for name, value in fields.items():
        current = with_rule(current, name, value)
    return current


def with_rule(rules: Rules, name: str, value: Any) -> Rules:
    """Return `rules` with one field changed, named as in KataGo's JSON; `value` may be its JSON value or text.

    Raises:
      ValueError: there is no such field or value.
    """
    text = str(value).strip()
    if name in ("ko", "koRule") and text.lower() in ("simple", "positional", "situational"):
        return replace(rules, superko=text.lower())  # type: ignore[arg-type]
    if name in ("suicide", "multiStoneSuicideLegal") and text.lower() in ("true", "false"):
        return replace(rules, suicide=text.lower() == "true")
    if name == "whiteHandicapBonus" and text in ("0", "N", "N-1"):
        return replace(rules, white_handicap_bonus=text)  # type: ignore[arg-type]
    if name == "friendlyPassOk" and text.lower() in ("true", "false"):
        return rules  # says how players should pass, not what is legal
    names = {"scoringRule": "scoring", "taxRule": "tax"}
    field = names.get(name, name)
    if field in _AREA and text.upper() == str(_AREA[field]).upper():
        return rules
    allowed = "ko SIMPLE, POSITIONAL or SITUATIONAL; suicide; whiteHandicapBonus 0, N or N-1; scoring AREA; tax NONE; hasButton false"
    raise ValueError(f"rule {name[:40]} = {text[:40]} is not supported; supported are {allowed}")
