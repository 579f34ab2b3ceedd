"""Imports point one way: between rooms, between the parts of a room, and between modules. What each
room holds: docs/architecture.md."""

import ast
import functools
from pathlib import Path

import azero

ORDER = [
    "xla_flags",
    "types",
    "heartbeat",
    "config",
    "settings",
    "experiment",
    "compilation_cache",
    "cores",
    "native",
    "console",
    "mesh",
    "memory",
    "chips",
    "distributed",
    "games",
    "networks",
    "search",
    "selfplay",
    "data",
    "learn",
    "checkpoint",
    "interop",
    "models",
    "players",
    "match",
    "evaluate",
    "report",
    "train",
    "plan",
    "engines",
    "api",
    "bench",
    "cloud",
    "experiments",
    "commands",
]
SETTINGS = {"config", "settings"}
"""Where settings are: these modules, and those called `settings` of any room, import nothing else
of azero, so that settings are read before anything is loaded."""
APART = {frozenset(("networks", "games"))}
MOST_MODULES = 20
"""Side by side in one package."""
ROOT = Path(azero.__file__).parent
Graph = dict[str, set[str]]


def module_name(path: Path) -> str:
    """Return a module's name below `azero`; that of a package is its own."""
    return (
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        .removesuffix("__init__")
        .removesuffix(".")
    )


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports_of(path: Path) -> set[str]:
    """Return the modules of azero that a module imports anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "azero":
            base = node.module.removeprefix("azero").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                found.add(inner if inner in MODULES else base)
        elif isinstance(node, ast.Import):
            found |= {
                alias.name.removeprefix("azero.")
                for alias in node.names
                if alias.name.startswith("azero.")
            }
    return found - {"", module_name(path)}


@functools.cache
def imports() -> Graph:
    """Return the modules that each module imports; every worker collects this file, and one runs
    it."""
    return {
        name: imports_of(path) for name, path in MODULES.items() if name not in ("", "__main__")
    }


def find_cycle(graph: Graph) -> list[str]:
    """Return the nodes of one cycle; empty where there is none."""
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        cycle = next(
            (
                found
                for other in sorted(graph.get(node, ()))
                if (found := visit(other, [*path, node]))
            ),
            [],
        )
        done.add(node)
        return cycle

    return next((found for node in graph if (found := visit(node, []))), [])


def room_of(name: str) -> str:
    return (
        "settings"
        if name.endswith(".settings") and not name.startswith("bench.")
        else name.split(".")[0]
    )


def test_what_is_imported_exists():
    wrong = [
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in others
        if other not in MODULES
    ]
    assert not wrong, "\n".join(wrong)


def test_settings_import_nothing_but_settings():
    for name in imports():
        if room_of(name) in SETTINGS:
            assert {room_of(other) for other in imports()[name]} <= SETTINGS, name


def test_imports_point_left():
    rooms = {name: room_of(name) for name in MODULES}
    assert {rooms[name] for name in imports()} == set(ORDER)
    wrong = [
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in others
        if ORDER.index(rooms[other]) > ORDER.index(rooms[name])
        or frozenset((rooms[name], rooms[other])) in APART
    ]
    assert not wrong, "\n".join(wrong)


def test_no_two_modules_import_each_other():
    # What a package itself exports (its __init__) is no module of its own here: it only names what
    # its modules have.
    modules = {
        name: others for name, others in imports().items() if MODULES[name].name != "__init__.py"
    }
    assert not find_cycle(modules)


def test_the_parts_of_a_room_import_each_other_one_way():
    parts: dict[str, Graph] = {}
    for name, others in imports().items():
        if MODULES[name].name == "__init__.py":
            continue
        for other in others:
            mine, theirs = name.split("."), other.split(".")
            depth = next(
                (
                    index
                    for index, pair in enumerate(zip(mine, theirs, strict=False))
                    if pair[0] != pair[1]
                ),
                None,
            )
            if depth:
                parts.setdefault(".".join(mine[:depth]), {}).setdefault(mine[depth], set()).add(
                    theirs[depth]
                )
    cycles = {room: cycle for room, graph in parts.items() if (cycle := find_cycle(graph))}
    assert not cycles


def test_no_package_is_a_drawer():
    counts = {
        directory: len(list(directory.glob("*.py")))
        for directory in [ROOT, *(path.parent for path in ROOT.rglob("__init__.py"))]
    }
    assert {
        str(directory): count
        for directory, count in counts.items()
        if count > MOST_MODULES and directory.name != "experiments"  # a claim each, see below
    } == {}


def test_experiments_are_claims():
    claims = {
        name
        for name, path in MODULES.items()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and _names(node) == "EXPERIMENT"
    }
    assert claims and all(name.startswith("experiments.") for name in claims)


def _names(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id if isinstance(target, ast.Name) else ""


def test_search_never_sees_a_network_and_no_third_party_engine_enters_the_core():
    for name, others in imports().items():
        assert not name.startswith("search.") or not any(
            other.split(".")[0] == "networks" for other in others
        ), name
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                )
                assert not any(name.split(".")[0] in ("chess", "cshogi") for name in names), (
                    f"{path} imports a GPL library"
                )
