"""GTP extensions of KataGo and KGS about rules and parameters."""

import json

from azero.engines.gtp.command import Call, Command, CommandError
from azero.engines.limits import PARAMETERS
from azero.games.go.rule_names import format_rules, parse_rules, with_rule


def set_rules(call: Call) -> str:
    """kata-set-rules RULES: a shorthand or JSON; the position stays."""
    call.need(1, "rules")
    try:
        rules = parse_rules(" ".join(call.words), call.game.rules)
    except json.JSONDecodeError as error:
        raise CommandError(f"syntax error: not a JSON object: {error.msg}") from error
    call.game.set_rules(rules)
    return ""


def set_rule(call: Call) -> str:
    """kata-set-rule RULE VALUE."""
    call.need(2, "a rule and its value")
    call.game.set_rules(with_rule(call.game.rules, call.words[0], call.words[1]))
    return ""


def kgs_rules(call: Call) -> str:
    """kgs-rules RULES: chinese is KGS's, with positional superko."""
    call.need(1, "rules")
    name = "chinese-kgs" if call.words[0].lower() == "chinese" else call.words[0]
    call.game.set_rules(parse_rules(name, call.game.rules))
    return ""


def get_param(call: Call) -> str:
    """kata-get-param NAME."""
    call.need(1, "a parameter")
    return call.settings.get_param(call.words[0])


def set_param(call: Call) -> str:
    """kata-set-param NAME VALUE."""
    call.need(2, "a parameter and its value")
    call.settings.set_param(call.words[0], call.words[1])
    return ""


def clear_cache(call: Call) -> str:
    """clear_cache (Leela Zero, KataGo): clear the search tree."""
    call.game.session.forget()
    return ""


COMMANDS: dict[str, Command] = {
    "kata-get-rules": lambda call: format_rules(call.game.rules),
    "kata-set-rules": set_rules,
    "kata-set-rule": set_rule,
    "kgs-rules": kgs_rules,
    "kata-get-param": get_param,
    "kata-set-param": set_param,
    "kata-list-params": lambda call: " ".join(PARAMETERS),
    "clear_cache": clear_cache,
}
