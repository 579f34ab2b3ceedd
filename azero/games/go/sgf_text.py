"""The text layer of SGF (FF[4], red-bean.com/sgf): character sets, the games of a collection, the
nodes of a main line. Host side only."""

import codecs
import re
import string
from collections.abc import Iterator

from azero.games.archives import without_utf16

LETTERS = string.ascii_lowercase + string.ascii_uppercase
"""Coordinates from the top left, column first; the format has 52."""
VALUE = r"\[(?:[^\]\\]++|\\.)*+\]"
_START = re.compile(r"\(\s*;")
_ROOT = re.compile(r"\(\s*+;\s*+(?:GM|FF|SZ|CA|AP)\s*+\[[^\]\\]{0,200}+\]")
"""The start of a game that cannot be the start of a variation: these properties occur in root nodes
only, with a number or the name of a character set or program. It cannot be in a comment either,
where the bracket would be escaped."""
_GAME_WITHOUT_VARIATIONS = re.compile(rf"\((?:[^\[\]()]++|{VALUE})*+\)", re.DOTALL)
_BRACKET = re.compile(rf"{VALUE}|[()\[]", re.DOTALL)
_PROPERTIES = rf"(?:\s*+[A-Za-z]++(?:\s*+{VALUE})++)*+"
_ROOT_NODE = re.compile(rf"\s*+\(\s*+;({_PROPERTIES})\s*+", re.DOTALL)
_PLAIN_MOVES = re.compile(r"(?:;\s*+[BW]\s*+\[[A-Za-z]{0,2}\]\s*+)*+\)")
_PLAIN_MOVE = re.compile(r"([BW])\s*\[([A-Za-z]*)\]")
_TOKEN = re.compile(rf"\s*+(?:([;()])|([A-Za-z]++)((?:\s*+{VALUE})++))", re.DOTALL)
_PROPERTY = re.compile(rf"([A-Za-z]++)((?:\s*+{VALUE})++)", re.DOTALL)
_ONE_VALUE = re.compile(VALUE, re.DOTALL)
_DECLARED = re.compile(rb"CA\s*\[\s*([A-Za-z0-9_.:-]{2,20})\s*\]")
_OTHER_NAMES = {
    "cp31j": "cp932",
    "shift.jis": "shift_jis",
    **dict.fromkeys(("gb", "gb_2312", "gb_2312-80", "csgb2312", "gb-18030"), "gb18030"),
    **dict.fromkeys(("big-5", "cn-big5", "big5-eten"), "big5"),
    **dict.fromkeys(("ks_c_5601-1989", "ksc_5601"), "euc_kr"),
}
"""Names of character sets that Python lacks: most are labels of the Encoding Standard (WHATWG)."""
_WIDER = {"big5": "cp950", "shift_jis": "cp932", "euc_kr": "cp949", "gb2312": "gb18030"}
"""The character sets of Windows that programs write under the names of smaller ones: 碁 is not in
Big5, ① not in Shift_JIS."""
_UTF8_PER_WRONG = 5
"""One in so many characters beyond ASCII may be invalid in a text in UTF-8. Words in other
character sets have more: all but 4 of 600,000 drawn at random that are not valid UTF-8."""
_GAME_LINE = re.compile(rb"\r?\n(?=\(\s*;)")

Node = dict[str, list[str]]
"""The properties of a node, with raw values, that is, with escapes."""


def decode(content: bytes) -> str:
    """Return the text of SGF bytes in any character set.

    UTF-8 is decoded as such, whatever the CA property says, also with a few wrong bytes, as where a
    server cut a name in a character; else the character set of CA, if it fits, with the characters
    that Windows adds to it; else GB18030, as Chinese servers write, if non-ASCII characters come in
    pairs; else Latin-1, the standard's default. Games in different character sets in one file are
    distinguished line by line. The text is decoded before it is parsed, because a Chinese character
    may contain the byte of a closing bracket.
    """
    content = without_utf16(content)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "\n".join(map(_decode_chunk, _GAME_LINE.split(content)))


def _decode_chunk(chunk: bytes) -> str:
    text = chunk.decode("utf-8-sig", errors="replace")
    wrong = text.count("\ufffd") - chunk.count("\ufffd".encode())
    if wrong * _UTF8_PER_WRONG <= len(text) - len(text.encode("ascii", errors="ignore")):
        return text
    declared = _DECLARED.search(chunk)
    runs = re.findall(rb"[\x80-\xff]+", chunk)
    # In GB18030 non-ASCII bytes have non-ASCII neighbours; in Latin-1 an accented letter is between
    # plain ones.
    in_pairs, alone = (
        sum(len(run) for run in runs if len(run) > 1),
        sum(len(run) == 1 for run in runs),
    )
    chinese = ["gb18030"] if in_pairs >= alone else []
    for name in [*([declared.group(1).decode()] if declared else []), *chinese]:
        try:
            return chunk.decode(_codec(name))
        except (UnicodeError, LookupError):  # the codec "undefined" raises the former
            continue
    return chunk.decode("latin-1")


def _codec(name: str) -> str:
    """Return Python's name of the character set that a record declares.

    Raises:
      LookupError: there is no such character set.
    """
    name = re.sub(r"^(?:x-)+", "", name.lower())
    name = re.sub(r"^(?:windows|ms)-(?=\d)", "cp", name)
    known = codecs.lookup(_OTHER_NAMES.get(name, name)).name
    return _WIDER.get(known, known)


def split_games(text: str) -> Iterator[tuple[str, str]]:
    """Yield every game of a collection as (its text, what is wrong with it or ""). Anything between
    the games is skipped.

    A game whose brackets do not close ends where the next game's root node begins.
    """
    position = 0
    root = _ROOT.search(text)
    while start := _START.search(text, position):
        begin = start.start()
        while root and root.start() <= begin:
            root = _ROOT.search(text, root.start() + 1)
        # Nothing after the next root is read, so no character is read for more than one game.
        limit = root.start() if root else len(text)
        simple = _GAME_WITHOUT_VARIATIONS.match(text, begin, limit)
        end = simple.end() if simple else _closing(text, begin, limit)
        yield (
            text[begin : end or limit],
            "" if end else "the game is cut off: its brackets do not close",
        )
        position = end or limit


def _closing(text: str, begin: int, limit: int) -> int | None:
    """Return the end of the game that begins at `begin`; None if it does not close before
    `limit`."""
    depth = 0
    for bracket in _BRACKET.finditer(text, begin, limit):
        character = bracket.group()
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if not depth:
                return bracket.end()
        elif character == "[":
            return None
    return None


def plain_game(game: str) -> tuple[Node, list[tuple[str, str]]] | None:
    """Return the root node and the moves (colour, point) of a game whose other nodes have one move
    and nothing else; None for any other game."""
    root = _ROOT_NODE.match(game)
    if root is None or not _PLAIN_MOVES.fullmatch(game, root.end()):
        return None
    node: Node = {}
    for name, values in _PROPERTY.findall(root.group(1)):
        name = name if name.isupper() else _upper(name)
        node[name] = node.get(name, []) + [value[1:-1] for value in _ONE_VALUE.findall(values)]
    return node, _PLAIN_MOVE.findall(game, root.end())


def main_line(game: str) -> list[Node]:
    """Return the nodes of a game's main line: at every branch the first one. It ends where the
    first bracket closes.

    Raises:
      ValueError: the text is not valid SGF up to there; it is quoted.
    """
    nodes: list[Node] = []
    position = 0
    while token := _TOKEN.match(game, position):
        position = token.end()
        mark, name, values = token.groups()
        if mark == ")":
            return nodes
        if mark == ";":
            nodes.append({})
        elif name and not nodes:
            raise ValueError(f"property {name} stands before the first node")
        elif name:
            found = [value[1:-1] for value in _ONE_VALUE.findall(values)]
            nodes[-1].setdefault(_upper(name), []).extend(found)
    raise ValueError(
        f"{game[position : position + 20].strip()!r} (at character {position + 1} of the "
        f"game) is not SGF"
    )


def _upper(name: str) -> str:
    """Drop the lower-case letters that versions before FF[4] allowed: AddBlack is AB.

    Raises:
      ValueError: there are only lower-case letters.
    """
    if name.islower():
        raise ValueError(f"property {name[:20]} has no upper-case letters")
    return "".join(letter for letter in name if letter.isupper())


def escape(text: str) -> str:
    """Return a text escaped as a property value."""
    return text.replace("\\", "\\\\").replace("]", "\\]")


def unescape(value: str) -> str:
    """Return the text of a raw property value: an escaped line break is removed, any other escaped
    character stands for itself."""
    if "\\" in value:
        value = re.sub(
            r"\\(\r\n|\n\r|.)",
            lambda found: "" if found.group(1)[0] in "\r\n" else found.group(1),
            value,
            flags=re.DOTALL,
        )
    return value.replace("\r\n", "\n")
