"""Run tests/numerics/programs.py on each Python that azero supports, with the newest jax that its
package index has: `python tests/numerics/run_on_pythons.py [--venvs DIR]`.

Every Python gets a virtual environment with jax alone, made anew or brought up to date. Prints
versions and what was wrong; the status is the number of Pythons on which a program was wrong, or
that could not be tried.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

PYTHONS = ("3.11", "3.12", "3.13")
ROOT = Path(__file__).parents[2]
VERSIONS = (
    "import platform, jax, jaxlib, azero; print(f'Python {platform.python_version()}, jax "
    "{jax.__version__}, jaxlib {jaxlib.__version__}; fusions {azero.YNN_FUSIONS}')"
)


def find_python(version: str) -> str | None:
    """Return the interpreter of that version: on the path (where it must start: pyenv leaves names
    there that do not), or one of pyenv's."""
    named = shutil.which(f"python{version}")
    pyenv = sorted(
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(
            f"versions/{version}.*/bin/python"
        )
    )
    for candidate in ([named] if named else []) + [str(path) for path in reversed(pyenv)]:
        if subprocess.run([candidate, "-c", "import venv"], capture_output=True).returncode == 0:
            return candidate
    return None


def try_on(version: str, venvs: Path) -> str:
    """Run the programs on one Python; return what is wrong, or ""."""
    interpreter = find_python(version)
    if interpreter is None:
        return "not installed here"
    venv = venvs / f"python{version}"
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([interpreter, "-m", "venv", str(venv)], check=True)
    subprocess.run(
        [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--upgrade",
            "jax",
        ],
        check=True,
    )
    # No flags of the caller: his may be unknown to another jaxlib, which would end the process.
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "PYTHONPATH": str(ROOT)}
    print(
        subprocess.run(
            [str(python), "-c", VERSIONS],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip(),
        flush=True,
    )
    done = subprocess.run(
        [str(python), str(ROOT / "tests" / "numerics" / "programs.py")],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [f"{name}: {what}" for name, what in results if what]
    if done.returncode:
        wrong.append(
            f"the process ended with status {done.returncode} after {len(results)} programs"
        )
    print(f"  {len(results)} programs, {len(wrong)} wrong", flush=True)
    return "; ".join(wrong)


def main() -> int:
    """Try all Pythons; return the number of those with something wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--venvs",
        type=Path,
        default=ROOT / ".venvs",
        help="where the virtual environments are kept",
    )
    venvs = parser.parse_args().venvs
    wrong = {version: found for version in PYTHONS if (found := try_on(version, venvs))}
    for version, found in wrong.items():
        print(f"Python {version}: {found}")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
