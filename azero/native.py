"""Functions compiled by Numba for the host, kept on disk until one of their sources changes.

Numba by itself looks only at the file and the bytecode of a function, not at the functions and
constants of other files that are compiled into it.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache

F = TypeVar("F", bound=Callable[..., Any])


def compiler(sources: Iterable[str | Path], **options: Any) -> Callable[[F], F]:
    """Return a decorator that compiles a function at its first call and keeps the result on disk;
    where nothing can be written, it is compiled in every process.

    `sources` are the files whose code or constants the function contains: when one changes, the
    function is compiled again. `options` are those of `numba.njit`.
    """
    digest = hashlib.sha256(b"\0".join(Path(path).read_bytes() for path in sources)).hexdigest()

    class _Cache(FunctionCache):
        def _index_key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
            return (*super()._index_key(signature, codegen), digest)

    def decorate(function: F) -> F:
        dispatcher = njit(function, nogil=True, **options)
        with contextlib.suppress(RuntimeError):  # no directory that Numba tries can be written
            dispatcher._cache = _Cache(function)  # type: ignore[attr-defined]
        return cast(F, dispatcher)

    return decorate
