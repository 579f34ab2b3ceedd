"""Three implementations of a 3x3 convolution: XLA's own, matrix products over unrolled rows, and
minimal filtering (Winograd: `azero.networks.minimal_filtering`).

On GPUs and TPUs XLA's is the fastest. On CPUs it reaches the speed of the vector units at best, and
its gradient much less: bf16 matrix units are used only by matrix products ("dots"), and without
such units float32 gains from fewer multiplications ("winograd"). All three map [B, H, W, C] to [B,
H, W, F], stride 1, zero padding, no bias.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from azero.networks.minimal_filtering import apply_tiles, gradient_tiles, prepare_tiles
from azero.types import Array

PART_BYTES = 256 << 10
"""Size of the inputs that each CPU device convolves at once in training, so that what is computed
from them fits its cache (measured: docs/speed-changes.md)."""


class Convolution(NamedTuple):
    """An implementation in parts, so that self-play prepares its kernels once."""

    prepare: Callable[[Array, int], Array]
    """(kernel [..., 3, 3, C, F], board width) -> weights [..., *]"""
    apply: Callable[[Array, Array], Array]
    """(x [B, H, W, C], weights of that width) -> [B, H, W, F] in the type of x"""
    gradient: Callable[[Array, Array], Array]
    """(x [B, H, W, C], gradient of the output [B, H, W, F]) -> gradient of the weights"""


def _apply_xla(x: Array, weights: Array) -> Array:
    return lax.conv_general_dilated(
        x, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def _gradient_xla(x: Array, gradient: Array) -> Array:
    weights = jax.ShapeDtypeStruct((3, 3, x.shape[-1], gradient.shape[-1]), x.dtype)
    return jax.linear_transpose(lambda weights: _apply_xla(x, weights), weights)(gradient)[0]


def _prepare_dots(kernel: Array, width: int) -> Array:
    """Return [..., 3, 3C, F]: one matrix per kernel row."""
    *stack, rows, columns, channels, filters = kernel.shape
    return kernel.reshape(*stack, rows, columns * channels, filters)


def _apply_dots(x: Array, weights: Array) -> Array:
    """Sum three products, one per kernel row. The float32 sum is what makes XLA reach a CPU's bf16
    matrix units: a plain bf16 product is five times slower."""
    first, second, third = (
        lax.dot(row, weight, preferred_element_type=jnp.float32)
        for row, weight in zip(_unroll(x), weights, strict=True)
    )
    return (first + second + third).astype(x.dtype).reshape(*x.shape[:3], weights.shape[-1])


def _gradient_dots(x: Array, gradient: Array) -> Array:
    flat = gradient.reshape(-1, gradient.shape[-1])
    along_positions = (((0,), (0,)), ((), ()))
    return jnp.stack(
        [
            lax.dot_general(row, flat, along_positions, preferred_element_type=jnp.float32).astype(
                x.dtype
            )
            for row in _unroll(x)
        ]
    )


def _unroll(x: Array) -> list[Array]:
    """Return [B H W, 3C] for each kernel row: every point's row above, its own and the one below,
    each with the left and right neighbours."""
    height, width, channels = x.shape[1:]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    unrolled = jnp.concatenate([padded[:, :, shift : shift + width] for shift in range(3)], axis=-1)
    return [unrolled[:, row : row + height].reshape(-1, 3 * channels) for row in range(3)]


CONVOLUTIONS: dict[str, Convolution] = {
    "xla": Convolution(lambda kernel, width: kernel, _apply_xla, _gradient_xla),
    "dots": Convolution(_prepare_dots, _apply_dots, _gradient_dots),
    "winograd": Convolution(prepare_tiles, apply_tiles, gradient_tiles),
}


def _apply(name: str, x: Array, weights: Array) -> Array:
    """Return the convolution, computed part by part."""
    if (count := _num_parts(name, x)) == 1:
        return CONVOLUTIONS[name].apply(x, weights)

    def apply(part: Array) -> Array:
        positions = part.reshape(-1, *x.shape[1:])
        return CONVOLUTIONS[name].apply(positions, weights).reshape(*part.shape[:-1], -1)

    return lax.map(apply, _divide(x, count)).swapaxes(0, 1).reshape(*x.shape[:-1], -1)


def _gradient(name: str, x: Array, gradient: Array) -> Array:
    """Return the gradient of the weights, computed part by part.

    Every device sums its own parts, and the sums are added after the last one. Otherwise XLA adds
    them in every step of the loop; and two such loops, which the threads of CPU devices may run in
    different order, deadlock.
    """
    part_of = CONVOLUTIONS[name].gradient
    if (count := _num_parts(name, x)) == 1:
        return part_of(x, gradient)
    both = _divide(x, count), _divide(gradient, count)
    part_of = jax.vmap(part_of)
    zeros = jax.tree.map(jnp.zeros_like, jax.eval_shape(part_of, *(part[0] for part in both)))
    sums, _ = lax.scan(lambda total, part: (total + part_of(*part), None), zeros, both)
    return sums.sum(axis=0)


def _num_parts(name: str, x: Array) -> int:
    """Return the number of equal parts in which x [B, ...] is convolved: the fewest of at most
    PART_BYTES for each device."""
    size, devices = x.shape[0], jax.device_count()
    if name == "xla" or size % devices:
        return 1
    room = max(1, PART_BYTES // (math.prod(x.shape[1:]) * x.dtype.itemsize))
    return next(
        n for n in range(1, size + 1) if size // devices % n == 0 and size // n <= room * devices
    )


def _divide(x: Array, count: int) -> Array:
    """Return x [B, ...] as N = `count` parts [N, D, B / N D, ...], each with as many positions of
    each of D devices. What a device holds stays in its order, so nothing is copied."""
    return x.reshape(jax.device_count(), count, -1, *x.shape[1:]).swapaxes(0, 1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def convolve(name: str, x: Array, kernel: Array) -> Array:
    """Convolve x [B, H, W, C] with kernel [3, 3, C, F] by `CONVOLUTIONS[name]`, for training.

    The gradients are given explicitly, because autodiff's transposed slices and concatenations are
    slow on CPUs: that of the input is a convolution with the flipped kernel.
    """
    return _apply(name, x, CONVOLUTIONS[name].prepare(kernel, x.shape[2]))


def _convolve_forward(name: str, x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return convolve(name, x, kernel), (x, kernel)


def _convolve_backward(
    name: str, saved: tuple[Array, Array], gradient: Array
) -> tuple[Array, Array]:
    x, kernel = saved
    convolution, width = CONVOLUTIONS[name], x.shape[2]
    flipped = kernel[::-1, ::-1].swapaxes(2, 3)
    by_x = _apply(name, gradient, convolution.prepare(flipped, width))
    by_weights = _gradient(name, x, gradient)
    return by_x, jax.linear_transpose(lambda kernel: convolution.prepare(kernel, width), kernel)(
        by_weights
    )[0]


convolve.defvjp(_convolve_forward, _convolve_backward)
