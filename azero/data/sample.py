"""Packed samples of the replay, and how they become a training batch on the device."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.data.shard import HORIZONS
from azero.games.game import Game, Scored, SeenByMover
from azero.selfplay.targets import dense_policy, policy_room
from azero.types import Array


class Auxiliary(NamedTuple):
    """The targets of the auxiliary heads of a network."""

    root_value: Any
    """float32[B]: the root's value after the search, for the side to move."""
    later: Any
    """float32[B, 3]: means of the root values of the following moves (`azero.data.shard.HORIZONS`),
    for the side to move."""
    surprise: Any
    """float32[B]: the surprise of the search's policy, as a multiple of the mean over its game; 1
    for positions without a policy target."""
    moves_left: Any
    """float32[B]: moves until the end of the game, this one included."""
    reply: Any
    """uint32[B, S]: the words of the policy target of the next position."""
    has_reply: Any
    """bool[B]: whether there is one."""
    end: Any
    """uint32[B, F]: the frame of the game's last position, before the last move."""
    last_action: Any
    """int32[B]: that last move; -1 is resignation, or a game that a random move may have
    decided."""


class Samples(NamedTuple):
    """Packed positions as the host sends them: 2.2 KB each at 19x19, with room for every move in
    the policy target."""

    frames: Any
    """uint32[B, num_frames, F]: the position and those before it, newest first, zeros before the
    start of the game."""
    to_play: Any
    """uint8[B]: the side to move, 0 or 1."""
    policy: Any
    """uint32[B, S]: the words of the policy target (`azero.selfplay.targets`), padded with 0."""
    is_target: Any
    """bool[B]: whether there is a policy target."""
    value: Any
    """float32[B]: the result of the game for the side to move."""
    symmetry: Any
    """uint8[B]: the symmetry to apply to the position."""
    auxiliary: Auxiliary | None = None
    """None where the learner does not need it."""


class AuxiliaryTargets(NamedTuple):
    """The targets of the auxiliary heads, in the symmetry of the position."""

    root_value: Array
    """float32[B]: see `Auxiliary`."""
    later: Array
    """float32[B, 3]: see `Auxiliary`."""
    surprise: Array
    """float32[B]: see `Auxiliary`."""
    moves_left: Array
    """float32[B]: moves until the end of the game, divided by the number of points."""
    reply: Array
    """float32[B, A]: the policy target of the next position, each move on the square where the side
    to move sees it; all zero where there is none."""
    ownership: Array | None
    """float32[B, H, W]: the owner of each point at the end, 1 is the side to move; None in games
    that do not count points."""
    margin: Array | None
    """float32[B]: the points of the side to move minus the other's at the end, without komi."""
    is_scored: Array | None
    """bool[B]: whether the game ended by counting points, so that these two are known."""


class Batch(NamedTuple):
    """The input of the learner's loss."""

    planes: Array
    """bool/float32[B, H, W, C]: the input of the network."""
    weights: Array
    """float32[B, A]: the policy target; it sums to one, or is all zero where there is none."""
    value: Array
    """float32[B]: the value target in [-1, 1] for the side to move; for REINFORCE the advantage,
    the result less the expected one."""
    allowed: Array | None = None
    """bool[B, A]: the moves that the policy chose from; None where they are not needed."""
    auxiliary: AuxiliaryTargets | None = None
    """None where the learner does not need it."""


def sample_shapes(game: Game, count: int, has_auxiliary: bool) -> Samples:
    """Return the shapes of `count` samples of the replay, with `Auxiliary` or without."""
    shape = jax.ShapeDtypeStruct
    number, words = shape((count,), np.float32), shape((count, policy_room(game)), np.uint32)
    auxiliary = Auxiliary(
        root_value=number,
        later=shape((count, len(HORIZONS)), np.float32),
        surprise=number,
        moves_left=number,
        reply=words,
        has_reply=shape((count,), np.bool_),
        end=shape((count, game.frame_words), np.uint32),
        last_action=shape((count,), np.int32),
    )
    return Samples(
        frames=shape((count, game.num_frames, game.frame_words), np.uint32),
        to_play=shape((count,), np.uint8),
        policy=words,
        is_target=shape((count,), np.bool_),
        value=number,
        symmetry=shape((count,), np.uint8),
        auxiliary=auxiliary if has_auxiliary else None,
    )


@functools.partial(jax.jit, static_argnames=("game",))
def unpack(game: Game, samples: Samples) -> Batch:
    """Turn packed samples into planes, dense policy targets and values, each position in its own
    symmetry."""

    def one(sample: Samples) -> Batch:
        symmetry = sample.symmetry.astype(jnp.int32)
        planes = game.observe_frames(sample.frames, sample.to_play.astype(jnp.int32))
        weights = dense_policy(sample.policy, game.num_actions) * sample.is_target
        return Batch(
            game.transform_planes(planes, symmetry),
            game.transform_policy(weights, symmetry),
            sample.value.astype(jnp.float32),
            auxiliary=None if sample.auxiliary is None else _targets(game, sample),
        )

    return jax.vmap(one)(samples)


def _targets(game: Game, sample: Samples) -> AuxiliaryTargets:
    found, symmetry = sample.auxiliary, sample.symmetry.astype(jnp.int32)
    assert found is not None
    reply = dense_policy(found.reply, game.num_actions) * found.has_reply
    if isinstance(game, SeenByMover):
        reply = game.seen_by_other(reply)
    num_points = game.board_shape[0] * game.board_shape[1]
    ownership = margin = is_scored = None
    if isinstance(game, Scored):
        owner = game.owners(found.end).astype(jnp.float32)
        owner = jnp.where(sample.to_play == 0, owner, -owner)
        margin, is_scored = owner.sum(), game.is_scored_after(found.last_action)
        ownership = game.transform_planes(owner[..., None], symmetry)[..., 0]
    return AuxiliaryTargets(
        found.root_value,
        found.later,
        found.surprise,
        found.moves_left / num_points,
        game.transform_policy(reply, symmetry),
        ownership,
        margin,
        is_scored,
    )
