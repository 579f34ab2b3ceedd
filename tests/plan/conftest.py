"""The profile of a plan needs the source lines of programs, without which other tests compile."""

from collections.abc import Iterator

import jax
import pytest

SETTING = "jax_traceback_in_locations_limit"


@pytest.fixture(scope="module", autouse=True)
def source_lines() -> Iterator[None]:
    limit = getattr(jax.config, SETTING)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(SETTING.upper(), raising=False)
        jax.config.update(SETTING, 100)  # JAX's default
        yield
    jax.config.update(SETTING, limit)
