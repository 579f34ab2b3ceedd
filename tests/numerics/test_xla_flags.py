"""What `import azero` does about XLA's fusions by YNNPACK."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import azero
from azero import xla_flags
from azero.xla_flags import FLAG, limit_ynnpack


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing had happened yet in this process, with a jaxlib that knows the flag, on a CPU
    without matrix units."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(xla_flags, "_jax_has_started", lambda: False)
    monkeypatch.setattr(xla_flags, "jaxlib_contains", lambda text: True)
    monkeypatch.setattr(xla_flags, "cpu_flags", lambda: frozenset({"fma", "avx512_bf16"}))


def test_the_flag_is_set_once_beside_the_users_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limit_ynnpack() == f"off: azero set {FLAG}"
    assert os.environ["XLA_FLAGS"] == FLAG
    assert limit_ynnpack() == f"as XLA_FLAGS says: {FLAG}"
    monkeypatch.setenv("XLA_FLAGS", " --xla_dump_to=/tmp/x  --xla_cpu_max_isa=AVX2 ")
    limit_ynnpack()
    assert os.environ["XLA_FLAGS"].split() == [
        "--xla_dump_to=/tmp/x",
        "--xla_cpu_max_isa=AVX2",
        FLAG,
    ]


def test_the_users_own_setting_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    own = f"--xla_cpu_max_isa=AVX2 {FLAG}individual_dot"
    monkeypatch.setenv("XLA_FLAGS", own)
    monkeypatch.setattr(xla_flags, "_jax_has_started", lambda: True)  # nothing to warn of
    assert limit_ynnpack() == f"as XLA_FLAGS says: {FLAG}individual_dot"
    assert os.environ["XLA_FLAGS"] == own


@pytest.mark.parametrize("known", [True, False])
def test_matrix_units_compute_single_products(monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    monkeypatch.setattr(xla_flags, "cpu_flags", lambda: frozenset({"amx_bf16"}))
    monkeypatch.setattr(
        xla_flags, "jaxlib_contains", lambda text: known or "INDIVIDUAL_DOT" not in text
    )
    assert limit_ynnpack() == (
        f"off but for single products: azero set {FLAG}individual_dot"
        if known
        else f"off: azero set {FLAG}"
    )


def test_flags_in_a_file_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "flags").write_text("--xla_cpu_max_isa=AVX2\n")
    monkeypatch.setenv("XLA_FLAGS", str(tmp_path / "flags"))
    limit_ynnpack()
    assert os.environ["XLA_FLAGS"].split() == ["--xla_cpu_max_isa=AVX2", FLAG]


def test_a_jaxlib_without_the_flag_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xla_flags, "jaxlib_contains", lambda text: False)
    assert limit_ynnpack() == "this jaxlib has no such setting"
    assert "XLA_FLAGS" not in os.environ


@pytest.mark.parametrize(
    ("content", "known"),
    [
        (b"\x7fELF\0xla_cpu_experimental_ynn_fusion_type\0", True),
        (b"\0$xla_cpu_experimental_ynn_fusion_type\0", False),
    ],
)
def test_the_flags_name_is_looked_for_in_the_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes, known: bool
) -> None:
    monkeypatch.undo()
    (tmp_path / "jaxlib").mkdir()
    (tmp_path / "jaxlib" / "__init__.py").write_text("raise AssertionError('jaxlib is imported')")
    (tmp_path / "jaxlib" / "libjax_common.so").write_bytes(content)
    for name in [name for name in sys.modules if name.split(".")[0] == "jaxlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert xla_flags.jaxlib_contains(f"\0{xla_flags.NAME}\0") is known


def test_too_late_is_said_once_where_azero_is_imported() -> None:
    program = "import jax; jax.devices()\nimport azero, azero.config\nprint(azero.YNN_FUSIONS)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "XLA_FLAGS": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    if azero.YNN_FUSIONS == "this jaxlib has no such setting":
        return
    assert done.stdout.startswith("on, and numbers may be wrong"), done.stdout
    assert done.stderr.count("RuntimeWarning: JAX had started before azero was imported") == 1, (
        done.stderr
    )
    assert "<string>:2" in done.stderr


def test_in_time_nothing_is_said_and_jax_is_not_imported() -> None:
    program = (
        "import azero, sys; assert not {'jax', 'jaxlib'} & set(sys.modules); import jax; "
        "jax.devices()"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "XLA_FLAGS": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_these_tests_run_without_the_fusions() -> None:
    assert (
        azero.YNN_FUSIONS.endswith((FLAG, f"{FLAG}individual_dot"))
        or azero.YNN_FUSIONS == "this jaxlib has no such setting"
    )
