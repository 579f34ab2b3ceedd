"""The arrays of a state: their paths, whole copies on the host, digests, and restoring them."""

import hashlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from azero import mesh as mesh_lib
from azero.checkpoint.record import DamagedCheckpointError
from azero.selfplay.trajectory import HostArray
from azero.types import PyTree

LOOSE = "values"
"""Item with the arrays at the top level of the state, outside its named parts."""

Flat = dict[str, dict[str, HostArray]]
"""The arrays of a state by item (top level of the state) and by path within it."""
Keys = dict[str, dict[str, str | None]]
"""Generators of the arrays of PRNG keys, None for other arrays, by item and path."""


def leaf_paths(tree: PyTree) -> list[tuple[str, str]]:
    """Return the (item, path) of every leaf of `tree`, in the order of `jax.tree.leaves`."""
    places = []
    for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]:
        first, *rest = [jax.tree_util.keystr((key,), simple=True) for key in path]
        places.append((first, "/".join(rest)) if rest else (LOOSE, first))
    return places


def leaves_by_path(tree: PyTree) -> dict[tuple[str, str], Any]:
    """Return the leaves of `tree` by (item, path)."""
    return dict(zip(leaf_paths(tree), jax.tree.leaves(tree), strict=True))


def to_host(tree: PyTree) -> tuple[Flat, Keys]:
    """Copy every leaf, whole, to this host's memory; keys as their raw data.

    The copies are copies on the CPU, too, where a plain conversion would share the buffers that the
    learner donates.

    Returns:
      (arrays, generators of PRNG keys), each by item and path.
    """
    leaves = leaves_by_path(tree)
    raw: dict[tuple[str, str], Any] = {}
    for place, leaf in leaves.items():
        raw[place] = data = jax.random.key_data(leaf) if is_key(leaf) else leaf
        if isinstance(data, jax.Array) and data.is_fully_addressable:
            data.copy_to_host_async()
    flat: Flat = {}
    keys: Keys = {}
    for (item, path), leaf in leaves.items():
        flat.setdefault(item, {})[path] = mesh_lib.fetch(raw[item, path])
        keys.setdefault(item, {})[path] = str(jax.random.key_impl(leaf)) if is_key(leaf) else None
    return flat, keys


def to_device(array: HostArray, key: str | None, leaf: Any) -> jax.Array:
    """Put a host array where `leaf` is; raw key data becomes keys of the generator `key`."""
    sharding = getattr(leaf, "sharding", None)
    if sharding is None:
        placed = jax.device_put(array)
    else:
        placed = jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])
    return placed if key is None else jax.random.wrap_key_data(placed, impl=key)


def is_key(leaf: Any) -> bool:
    """Return whether a leaf is an array of typed PRNG keys."""
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def format_entry(entry: Mapping[str, Any]) -> str:
    """Return dtype and shape of a leaf in the record, as `format_leaf` does of an array."""
    if entry["key"] is None:
        return f"{entry['dtype']}{entry['shape']}"
    return f"{jax.random.key(0, impl=entry['key']).dtype}{entry['shape'][:-1]}"


def format_leaf(leaf: Any) -> str:
    """Return dtype and shape of an array or its shape: float32[3, 4], key<fry>[16]."""
    return f"{leaf.dtype if is_key(leaf) else np.dtype(leaf.dtype).name}{list(leaf.shape)}"


def describe(array: HostArray, key: str | None) -> dict[str, Any]:
    """Return dtype, shape, SHA-256 of the bytes and, for PRNG keys, their generator."""
    content = hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "key": key,
        "sha256": content.hexdigest(),
    }


def describe_leaves(flat: Flat, keys: Keys) -> dict[str, Any]:
    """Return what the record says of every array, by item and path."""
    entries: dict[str, Any] = {}
    for item, arrays in flat.items():
        entries[item] = {path: describe(arrays[path], keys[item][path]) for path in arrays}
    return entries


def check_leaf(array: HostArray, entry: Mapping[str, Any], name: str) -> None:
    """Compare an array that was read with what the record says.

    Raises:
      DamagedCheckpointError: they differ; the leaf is named.
    """
    if describe(array, entry["key"]) != dict(entry):
        raise DamagedCheckpointError(
            f"the digest of {name} does not match: its bytes on disk have changed"
        )
