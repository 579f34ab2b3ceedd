"""Rules of Go as KataGo's protocols write them: JSON or a shorthand. Sources: KataGo's
docs/GTP_Extensions.md, `kata-get-rules` and `kata-set-rules`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from azero.games.go.state import Superko

Bonus = Literal["0", "N", "N-1"]


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


_AREA_ONLY = "this engine counts area, without tax and without button"


@dataclass(frozen=True)
class RequestedRules:
    """Rules as requested: the nearest rules of this engine, and the parts that it does not
    support."""

    rules: Rules
    missing: tuple[str, ...] = ()
    """Such as "scoring TERRITORY"."""


SHORTHANDS = {
    "tromp-taylor": RequestedRules(Rules("positional", True)),
    "chinese": RequestedRules(Rules("simple", False, "N")),
    "chinese-ogs": RequestedRules(Rules("positional", False, "N")),
    "chinese-kgs": RequestedRules(Rules("positional", False, "N")),
    "aga": RequestedRules(Rules("situational", False, "N-1")),
    "bga": RequestedRules(Rules("situational", False, "N-1")),
    "french": RequestedRules(Rules("situational", False, "N-1")),
    "new-zealand": RequestedRules(Rules("situational", True)),
    "nz": RequestedRules(Rules("situational", True)),
    "goe": RequestedRules(Rules("positional", True)),
    "ing": RequestedRules(Rules("positional", True)),
    "aga-button": RequestedRules(Rules("situational", False, "N-1"), ("hasButton true",)),
    "stone-scoring": RequestedRules(Rules("simple", False), ("tax ALL",)),
    "ancient-area": RequestedRules(Rules("simple", False), ("tax ALL",)),
    "ancient-chinese": RequestedRules(Rules("simple", False), ("tax ALL",)),
    "ancient-territory": RequestedRules(Rules("simple", False), ("scoring TERRITORY", "tax ALL")),
    "japanese": RequestedRules(Rules("simple", False), ("scoring TERRITORY", "tax SEKI")),
    "korean": RequestedRules(Rules("simple", False), ("scoring TERRITORY", "tax SEKI")),
}
"""KataGo's names (rules.cpp, parseRules); blanks, hyphens, underscores and case do not matter."""
_SHORT_NAMES = {name.replace("-", ""): requested for name, requested in SHORTHANDS.items()}
_PLAYABLE = ", ".join(name for name, requested in SHORTHANDS.items() if not requested.missing)
_FIELDS = {
    "koRule": "ko",
    "scoringRule": "scoring",
    "score": "scoring",
    "taxRule": "tax",
    "sui": "suicide",
    "multiStoneSuicideLegal": "suicide",
    "button": "hasButton",
    "whb": "whiteHandicapBonus",
    "fpok": "friendlyPassOk",
}
"""Other names of the fields of KataGo's JSON, and those of its one-word form."""
_WORD = re.compile(
    r"(ko|scoring|score|tax|suicide|sui|button|whb|fpok)(SIMPLE|POSITIONAL|SITUATIONAL|SPIGHT|AREA|TERRITORY|NONE|SEKI|ALL|N-1|N|0|1)",
    re.IGNORECASE,
)
"""A part of KataGo's one-word form of rules, such as koPOSITIONALscoreAREAtaxNONEsui0whbN."""
_UNSUPPORTED = {
    "ko": ("SPIGHT",),
    "scoring": ("TERRITORY",),
    "tax": ("SEKI", "ALL"),
    "hasButton": ("TRUE", "1"),
}
"""Values that KataGo supports and this engine does not."""


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
    """Return the rules given by a name, JSON text, KataGo's one-word form or a JSON object; fields
    that are left out are those of `current`.

    Raises:
      ValueError: it is not understood or not supported; the text is quoted and the choices are
        named.
    """
    requested = read_rules(given, current)
    if requested.missing:
        quoted = given.strip()[:80] if isinstance(given, str) else json.dumps(given)[:80]
        raise ValueError(
            f"rules {quoted} are not supported ({', '.join(requested.missing)}): "
            f"{_AREA_ONLY}; it plays {_PLAYABLE}"
        )
    return requested.rules


def read_rules(given: str | dict[str, Any], current: Rules) -> RequestedRules:
    """Return the requested rules; see `parse_rules`.

    Raises:
      ValueError: it is not understood.
    """
    if isinstance(given, str) and not given.strip().startswith("{"):
        known = _SHORT_NAMES.get(re.sub(r"[-_\s]", "", given.lower()))
        if known is not None:
            return known
        if not re.fullmatch(f"({_WORD.pattern})+", given.strip(), re.IGNORECASE):
            raise ValueError(
                f"unknown rules {given.strip()[:80]!r}; the rules are: {', '.join(SHORTHANDS)}"
            )
        fields: dict[str, Any] = {name.lower(): value for name, value in _WORD.findall(given)}
    else:
        try:
            fields = json.loads(given) if isinstance(given, str) else given
        except (ValueError, RecursionError) as error:
            quoted = str(given).strip()[:80]
            raise ValueError(f"rules {quoted} are not a JSON object: {error}") from None
    missing = []
    for name, value in fields.items():
        field, text = _FIELDS.get(name, name), str(value).strip().upper()
        if text in _UNSUPPORTED.get(field, ()):
            missing.append(f"{field} {'true' if field == 'hasButton' else text}")
            current = replace(current, superko="situational") if field == "ko" else current
        else:
            current = with_rule(current, name, value)
    return RequestedRules(current, tuple(missing))


def with_rule(rules: Rules, name: str, value: Any) -> Rules:
    """Return `rules` with one field changed, named as in KataGo's JSON; `value` may be its JSON
    value or text.

    Raises:
      ValueError: there is no such field or value.
    """
    field, text = _FIELDS.get(name, name), str(value).strip().upper()
    flag = {"TRUE": True, "1": True, "FALSE": False, "0": False}.get(text)
    if field == "ko" and text in ("SIMPLE", "POSITIONAL", "SITUATIONAL"):
        return replace(rules, superko=text.lower())  # type: ignore[arg-type]
    if field == "suicide" and flag is not None:
        return replace(rules, suicide=flag)
    if field == "whiteHandicapBonus" and text in ("0", "N", "N-1"):
        return replace(rules, white_handicap_bonus=text)  # type: ignore[arg-type]
    if field == "friendlyPassOk" and flag is not None:
        return rules  # concerns how players should pass, not what is legal
    if (field, text) in (("scoring", "AREA"), ("tax", "NONE")) or (
        field == "hasButton" and flag is False
    ):
        return rules
    allowed = (
        "ko SIMPLE, POSITIONAL or SITUATIONAL; suicide; whiteHandicapBonus 0, N or N-1; scoring "
        "AREA; tax NONE; hasButton false"
    )
    raise ValueError(
        f"rule {name[:40]} = {str(value).strip()[:40]} is not supported; supported are {allowed}"
    )
