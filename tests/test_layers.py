"""Imports point one way: a package imports only from packages to its left."""

import ast
from pathlib import Path

import azero

ORDER = [
    "xla_flags",
    "types",
    "heartbeat",
    "console",
    "config",
    "mesh",
    "memory",
    "compiler",
    "hosts",
    "games",
    "networks",
    "search",
    "play",
    "data",
    "learn",
    "checkpoint",
    "evaluate",
    "engines",
    "report",
    "pipelines",
    "experiments",
    "bench",
    "cloud",
    "cli",
]
EQUAL = {("networks", "games"), ("games", "networks")}
ROOT = Path(azero.__file__).parent


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "azero":
            parts = node.module.split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("azero.")}
    return rooms & set(ORDER)


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_imports_point_left():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        room = room_of(path)
        if room == "__init__" or room == "__main__":
            continue
        for other in imported_rooms(path):
            if ORDER.index(other) > ORDER.index(room) or (room, other) in EQUAL:
                wrong.append(f"{path.relative_to(ROOT)} imports {other}")
    assert not wrong, "\n".join(wrong)


def test_search_never_sees_a_network_and_no_third_party_engine_enters_the_core():
    for path in sorted((ROOT / "search").rglob("*.py")):
        assert "networks" not in imported_rooms(path), path
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                assert not any(name.split(".")[0] in ("chess", "cshogi") for name in names), f"{path} imports a GPL library"
