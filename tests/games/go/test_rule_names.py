"""Rules as KataGo's protocols write them: every name and form that KataGo reads, and the names that
others read in our records."""

import json
import re

import pytest

from azero.games.go.rule_names import SHORTHANDS, Rules, format_rules, parse_rules, read_rules
from azero.games.go.sgf_write import rules_name

PLAYED = {
    "new zealand": Rules("situational", True),
    "New_Zealand": Rules("situational", True),
    "nz": Rules("situational", True),
    "newzealand": Rules("situational", True),
    "tromptaylor": Rules("positional", True),
    "TROMP TAYLOR": Rules("positional", True),
    "goe": Rules("positional", True),
    "ing": Rules("positional", True),
    "french": Rules("situational", False, "N-1"),
    "bga": Rules("situational", False, "N-1"),
    "chinese_kgs": Rules("positional", False, "N"),
    "koPOSITIONALscoreAREAtaxNONEsui0whbN": Rules("positional", False, "N"),
    "kosimplescoreareataxnonesui1": Rules("simple", True),
    '{"koRule":"SITUATIONAL","scoringRule":"AREA","taxRule":"NONE","multiStoneSuicideLegal":true,"hasButton":false,"friendlyPassOk":true}': Rules(
        "situational", True
    ),
}


@pytest.mark.parametrize("given", PLAYED)
def test_names_that_katago_reads_are_read(given: str) -> None:
    assert parse_rules(given, Rules()) == PLAYED[given]


@pytest.mark.parametrize(
    "given",
    [
        "japanese",
        "korean",
        "stone_scoring",
        "stone scoring",
        "ancient-area",
        "ancient territory",
        "aga_button",
    ],
)
def test_names_of_rules_that_are_not_played_say_what_is_missing(given: str) -> None:
    assert read_rules(given, Rules()).missing
    with pytest.raises(
        ValueError, match=f"rules {given} are not supported .*; it plays tromp-taylor, chinese"
    ):
        parse_rules(given, Rules())


@pytest.mark.parametrize("given", ["{bad", '{"ko":', '{"ko": "SIMPLE"}}', '{"a":' * 9999])
def test_rules_that_are_not_json_are_quoted(given: str) -> None:
    with pytest.raises(ValueError, match=f"rules {re.escape(given[:80])} are not a JSON object: "):
        parse_rules(given, Rules())


def test_what_is_written_is_read_again() -> None:
    for wanted in SHORTHANDS.values():
        assert parse_rules(json.loads(format_rules(wanted.rules)), Rules()) == wanted.rules


@pytest.mark.parametrize("superko", ["positional", "situational", "simple"])
@pytest.mark.parametrize("suicide", [True, False])
def test_the_rules_of_a_record_are_a_name_that_others_know(superko: str, suicide: bool) -> None:
    """KaTrain knows these four among others; KataGo too; a record of our default rules was once
    read as Japanese."""
    name = rules_name(superko, suicide)
    assert (
        name in ("Chinese", "AGA", "NZ", "Tromp-Taylor")
        and parse_rules(name, Rules()).suicide == suicide
    )
