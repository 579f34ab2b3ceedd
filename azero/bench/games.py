"""Speed of the rules: random play with the legal mask at every step and automatic restart, beside other engines in the same run."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from rich.console import Console
from rich.table import Table

import azero.games
from azero.types import Array, PyTree

BATCHES = {"azero": (256, 1024), "pgx": (64, 512)}
"""Games at a time; the best of an engine's batches counts (19x19 Pgx is fastest at 64, 9x9 Pgx at 512)."""


@dataclass(frozen=True)
class Engine:
    """What the benchmark needs of an engine, for one game under `vmap`."""

    name: str
    init: Callable[[Array], PyTree]
    """key -> state"""
    advance: Callable[[PyTree, Array], tuple[PyTree, Array, Array, Array]]
    """(state, action) -> (state, legal mask bool[A], over bool[], rewards float32[2])"""
    mask: Callable[[PyTree], Array]


def azero_engine(size: int) -> Engine:
    """Return our Go: the exact state of a real game."""
    game = azero.games.make("go", size=size)

    def advance(state: PyTree, action: Array) -> tuple[PyTree, Array, Array, Array]:
        state = game.step(state, action)
        return state, game.legal_action_mask(state), game.is_terminal(state), game.rewards(state)

    return Engine("azero", lambda key: game.init(), advance, game.legal_action_mask)


def pgx_engine(size: int) -> Engine:
    """Return Pgx's Go. The planes, which its step also makes, are thrown away, so that the compiler drops them.

    Raises:
      ValueError: Pgx is not installed or has no such board.
    """
    try:
        import pgx
    except ImportError as error:
        raise ValueError("Pgx is not installed: pip install 'azero[peers]'") from error
    if size not in (9, 19):
        raise ValueError(f"Pgx has Go on 9x9 and 19x19, not {size}x{size}")
    env: Any = pgx.make(f"go_{size}x{size}")

    def forget(state: Any) -> Any:
        return state.replace(observation=jnp.zeros_like(state.observation))

    def advance(state: Any, action: Array) -> tuple[PyTree, Array, Array, Array]:
        state = forget(env.step(state, action))
        return state, state.legal_action_mask, state.terminated, state.rewards

    return Engine("pgx", lambda key: forget(env.init(key)), advance, lambda state: state.legal_action_mask)


def draw(mask: Array, word: Array) -> Array:
    """Return a random legal action int32[] of mask bool[A]: the one with the largest hash of itself and the random `word` uint32[]."""
    action = jnp.arange(mask.shape[0], dtype=jnp.uint32)
    score = (action ^ word) * jnp.uint32(0x9E3779B1)
    score = (score ^ (score >> 15)) * jnp.uint32(0x85EBCA6B)
    return jnp.argmax(jnp.where(mask, (score >> 1) | jnp.uint32(0x80000000), score >> 1)).astype(jnp.int32)


def measure(engine: Engine, batch: int, warm_moves: int, seconds: float = 8.0) -> dict[str, Any]:
    """Return steps per second of `batch` games after `warm_moves` moves, the bytes of a state, and the seconds to compile."""
    chunk = 25

    def move(carry: PyTree, key: Array) -> tuple[PyTree, Array]:
        state, mask, fresh = carry
        action = jax.vmap(draw)(mask, jax.random.bits(key, (batch,)))
        state, mask, over, rewards = jax.vmap(engine.advance)(state, action)

        def restart(old: Array, new: Array) -> Array:
            return jnp.where(over.reshape(batch, *(1,) * (old.ndim - 1)), new, old)

        state = jax.tree.map(restart, state, jax.tree.map(lambda a: jnp.broadcast_to(a[None], (batch, *a.shape)), fresh[0]))
        return (state, restart(mask, jnp.broadcast_to(fresh[1][None], mask.shape)), fresh), rewards.sum()

    @functools.partial(jax.jit, donate_argnums=0)
    def play(state: PyTree, mask: Array, fresh: PyTree, key: Array) -> tuple[PyTree, Array, Array]:
        (state, mask, _), rewards = jax.lax.scan(move, (state, mask, fresh), jax.random.split(key, chunk))
        return state, mask, rewards.sum()

    first = engine.init(jax.random.key(0))
    fresh = (first, engine.mask(first))
    state, mask = jax.jit(lambda: jax.tree.map(lambda a: jnp.broadcast_to(a[None], (batch, *a.shape)) + jnp.zeros((), a.dtype) if a.dtype != bool else jnp.broadcast_to(a[None], (batch, *a.shape)), fresh))()
    started = time.perf_counter()
    compiled = play.lower(state, mask, fresh, jax.random.key(1)).compile()
    compile_seconds = time.perf_counter() - started
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(first))
    for index in range(-(-warm_moves // chunk)):
        state, mask, total = compiled(state, mask, fresh, jax.random.key(index))
    total.block_until_ready()
    moves, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        state, mask, total = compiled(state, mask, fresh, jax.random.key(1000 + moves))
        total.block_until_ready()
        moves += chunk
    rate = moves * batch / (time.perf_counter() - started)
    return {"engine": engine.name, "batch": batch, "steps_per_second": rate, "bytes": size, "compile_seconds": compile_seconds}
