"""The examples of docs/interop.md run."""

import re
from pathlib import Path

import jax
import pytest
from needs import require_module

from azero.games.go.settings import GoConfig
from azero.interop.onnx_file import write_onnx
from azero.networks.settings import ResNetConfig
from azero.settings import Config

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("onnx", "onnxruntime", "pgx"):
        require_module(package)
    monkeypatch.chdir(tmp_path)
    config = Config(GoConfig(size=(9,), planes=19), ResNetConfig(blocks=1, filters=4))
    network = config.network.build(config.game.build())
    write_onnx(Path("go9.onnx"), jax.jit(network.init)(jax.random.key(0)), config)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(examples) == 3
    for code in examples:
        exec(compile(code, str(PAGE), "exec"), {})
    shown = capsys.readouterr().out
    assert "(8, 9, 9, 17) (8, 2)" in shown and shown.count("X") == 1
