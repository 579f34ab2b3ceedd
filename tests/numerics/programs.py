"""Programs of products and reductions, which XLA may hand to YNNPACK on a CPU, beside numpy:
`python tests/numerics/programs.py [NAME ...]` prints a line for each.

They run with the settings that `import azero` makes, or with --without-azero as XLA does by itself.
All values are positive and small, so nothing cancels and a relative tolerance holds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

if "--without-azero" not in sys.argv:
    import azero  # noqa: F401

import jax
import jax.numpy as jnp
import numpy as np

Function = Callable[..., Any]
TOLERANCE = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""Of a result, relative: some units in the last place of the type, in which a product may be
rounded before it is summed."""


class Program(NamedTuple):
    """A function, the same in numpy, and the shapes of its arguments."""

    function: Function
    reference: Function
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "float32"


def programs() -> dict[str, Program]:
    """Return all programs by name."""
    return {**vmapped_products(), **products(), **multiplied(), **of_networks(), **of_searches()}


def vmapped_products() -> dict[str, Program]:
    """A matrix times every row, then a reduction over rows, over results, or over both; the matrix
    is an argument, or made in the program from one number."""
    found = {}
    for rows, width, dtype, made in [
        (65536, 64, "float32", True),
        (1024, 64, "float32", False),
        (100, 64, "bfloat16", True),
        (512, 16, "float16", True),
        (512, 16, "bfloat16", False),
    ]:
        for reduction, axis in [("sum", None), ("sum", 0), ("sum", 1), ("max", None), ("min", 1)]:

            def function(
                x: Any,
                w: Any,
                reduction: str = reduction,
                axis: int | None = axis,
                made: bool = made,
            ) -> Any:
                matrix = jnp.ones(w.shape, w.dtype) if made else w
                return getattr(jnp, reduction)(jax.vmap(lambda row: matrix @ row)(x), axis=axis)

            def reference(
                x: Any,
                w: Any,
                reduction: str = reduction,
                axis: int | None = axis,
                made: bool = made,
            ) -> Any:
                return getattr(np, reduction)(x @ (np.ones(w.shape) if made else w).T, axis=axis)

            if (dtype, reduction, axis) != ("float16", "sum", None):  # beyond the largest float16
                name = (
                    f"vmapped {rows}x{width} {dtype} {'ones' if made else 'matrix'} {reduction} "
                    f"{axis}"
                )
                found[name] = Program(function, reference, ((rows, width), (width, width)), dtype)

    def squares(x: Any) -> Any:
        return jax.vmap(lambda row: jnp.sum((jnp.eye(3) @ row) ** 2))(x)

    found["vmapped squares"] = Program(squares, lambda x: (x**2).sum(1), ((32769, 3),))
    found["vmapped squares, matrix"] = Program(
        lambda x, w: jax.vmap(lambda row: jnp.sum((w @ row) ** 2))(x),
        lambda x, w: ((x @ w.T) ** 2).sum(1),
        ((32769, 3), (3, 3)),
    )
    return found


def products() -> dict[str, Program]:
    """Products of ranks 2 to 6, then a reduction over each set of axes; the second factor is an
    argument, or made in the program from one number."""
    found = {}
    for formula, shapes in [
        ("nk,km->nm", ((512, 64), (64, 32))),
        ("bnk,bkm->bnm", ((64, 48, 32), (64, 32, 24))),
        ("bhwc,cf->bhwf", ((16, 9, 9, 32), (32, 32))),
        ("pqbtc,pqcf->pqbtf", ((6, 6, 16, 4, 24), (6, 6, 24, 32))),
        ("abcdek,abckf->abcdef", ((3, 2, 4, 5, 8, 16), (3, 2, 4, 16, 8))),
    ]:
        rank = len(formula.split(">")[1])
        for made, reduction, axes in [
            (False, "sum", (rank - 1,)),
            (False, "sum", tuple(range(rank))),
            (False, "max", (0,)),
            (True, "sum", tuple(range(rank - 1))),
            (True, "min", (0,)),
        ]:

            def function(
                x: Any,
                y: Any,
                formula: str = formula,
                made: bool = made,
                reduction: str = reduction,
                axes: tuple[int, ...] = axes,
            ) -> Any:
                return getattr(jnp, reduction)(
                    jnp.einsum(formula, x, jnp.ones(y.shape) if made else y), axis=axes
                )

            def reference(
                x: Any,
                y: Any,
                formula: str = formula,
                made: bool = made,
                reduction: str = reduction,
                axes: tuple[int, ...] = axes,
            ) -> Any:
                return getattr(np, reduction)(
                    np.einsum(formula, x, np.ones(y.shape) if made else y, optimize=True), axis=axes
                )

            found[
                f"{formula} {'ones' if made else 'matrix'} {reduction} {','.join(map(str, axes))}"
            ] = Program(function, reference, shapes)
    return found


def multiplied() -> dict[str, Program]:
    """Elementwise products of ranks up to 8 with axes of size 1, then a sum over one axis."""
    found = {}
    for shape, axis in [
        ((3, 1, 2, 2, 8, 8, 8), 3),
        ((1, 3, 2, 2, 8, 8, 8), 3),
        ((2, 3, 4, 1, 5, 6, 7), 2),
        ((64, 1, 9, 9, 1, 32), 2),
        ((512, 81, 33), 1),
    ]:
        name = f"multiplied {'x'.join(map(str, shape))} sum {axis}"
        found[name] = Program(
            lambda x, y, axis=axis: jnp.sum(x * y, axis=axis),
            lambda x, y, axis=axis: (x * y).sum(axis),
            (shape, shape),
        )
    found["broadcast to rank 8"] = Program(
        lambda x, y: jnp.log(jnp.sum(x[..., None, None, None, None, None] * y, axis=2)),
        lambda x, y: np.log((x[..., None, None, None, None, None] * y).sum(2)),
        ((10, 4, 6), (10, 4, 6, 5, 5, 5, 5, 5)),
    )
    return found


def of_networks() -> dict[str, Program]:
    """What towers, heads, batch norm and losses are made of."""

    def normalise(module: Any) -> Function:
        def function(x: Any) -> Any:
            mean = module.mean(x, axis=(0, 1, 2))
            return mean, module.mean(x * x, axis=(0, 1, 2)) + mean

        return function

    def nine_products(module: Any) -> Function:
        def function(x: Any, w: Any) -> Any:
            padded = module.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
            return sum(
                padded[:, i : i + 9, j : j + 9].reshape(-1, 24) @ w[i, j]
                for i in range(3)
                for j in range(3)
            )

        return function

    def entropy(module: Any) -> Function:
        def function(logits: Any, target: Any) -> Any:
            shifted = logits - logits.max(-1, keepdims=True)
            logarithms = shifted - module.log(module.exp(shifted).sum(-1, keepdims=True))
            return -(target * logarithms).sum(-1).mean(), module.exp(logarithms).max(-1)

        return function

    found = {}
    for batch in (16, 512):
        found[f"batch norm {batch}"] = Program(normalise(jnp), normalise(np), ((batch, 9, 9, 32),))
        found[f"nine products {batch}"] = Program(
            nine_products(jnp), nine_products(np), ((batch, 9, 9, 24), (3, 3, 24, 16))
        )
        found[f"cross entropy {batch}"] = Program(
            entropy(jnp), entropy(np), ((batch, 82), (batch, 82))
        )
        found[f"head {batch}"] = Program(
            lambda x, w: jnp.maximum(x.reshape(x.shape[0], -1) @ w, 3).sum(1),
            lambda x, w: np.maximum(x.reshape(x.shape[0], -1) @ w, 3).sum(1),
            ((batch, 9, 9, 2), (162, 82)),
        )
    found["gradient of a product"] = Program(
        jax.grad(lambda w, x: jnp.sum((x @ w) ** 2)),
        lambda w, x: 2 * x.T @ (x @ w),
        ((32, 24), (4096, 32)),
    )
    found["sum of squares"] = Program(
        lambda x: jnp.sum(x * x), lambda x: (x * x).sum(), ((20, 3, 3, 64, 64),)
    )
    return found


def of_searches() -> dict[str, Program]:
    """What trees are made of: sums of visits, means of values, the best of many scores."""

    def score(module: Any) -> Function:
        def function(prior: Any, visits: Any, value: Any) -> Any:
            mean = (visits * value).sum(-1, keepdims=True) / visits.sum(-1, keepdims=True)
            scores = value / visits + prior * module.sqrt(visits.sum(-1, keepdims=True)) / (
                1 + visits
            )
            return scores.max(-1), module.argmax(scores, -1), mean

        return function

    return {
        f"scores {games}": Program(score(jnp), score(np), ((games, 82),) * 3)
        for games in (8, 256, 4096)
    }


def check(name: str) -> str:
    """Run a program; return what is wrong, or ""."""
    program = programs()[name]
    rng = np.random.default_rng(len(name))
    arguments = [rng.integers(1, 4, shape).astype(np.float64) for shape in program.shapes]
    got = jax.jit(program.function)(
        *(jnp.asarray(argument, program.dtype) for argument in arguments)
    )
    wanted = program.reference(*arguments)
    for result, expected in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        values = np.asarray(result, np.float64)
        if values.shape != np.shape(expected):
            return f"shape {values.shape} instead of {np.shape(expected)}"
        off = ~(np.abs(values - expected) <= TOLERANCE[program.dtype] * np.abs(expected) + 1e-5)
        if off.any():
            first = np.unravel_index(np.argmax(off), off.shape)
            return (
                f"{off.sum()} of {off.size} numbers wrong, the first {values[first]:.9g} instead "
                f"of {np.asarray(expected)[first]:.9g}"
            )
    return ""


def main(names: list[str]) -> None:
    """Print [name, what is wrong] for each program, as lines of JSON."""
    for name in names or programs():
        print(json.dumps([name, check(name)]), flush=True)


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if not name.startswith("--")])
