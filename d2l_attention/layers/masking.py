"""Masks, and the softmax that respects them.

A mask is boolean, True = may attend. Masks compose with `&` and end in
`masked_softmax`.
"""

from d2l_attention._checks import check_boolean
from keras import ops

# The highest score where there is no key. Finite, so that it can be subtracted
# from −inf; and above the lowest float32, as which TFLite keeps −inf.
NO_SCORE = -1e38


def padding_mask(lengths, size):
    """A query may attend to the first `lengths` of `size` keys.

        mask[b, 0, s] = s < lengths[b]
        mask[b, t, s] = s < lengths[b, t]

    Source: document 001, masked softmax.

    Args:
        lengths: Integer tensor `(B,)`, or `(B, T)` for a length per query.
        size: Int, number of keys S.

    Returns:
        Bool tensor `(B, 1, S)`, or `(B, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import padding_mask
        >>> mask = padding_mask(np.array([2, 3]), size=4)  # two sentences
        >>> np.array(mask).astype(int).tolist()
        [[[1, 1, 0, 0]], [[1, 1, 1, 0]]]
    """
    lengths = ops.convert_to_tensor(lengths)
    if len(lengths.shape) not in (1, 2) or "int" not in str(lengths.dtype):
        raise ValueError(
            "`lengths` must be an integer tensor (B,) or (B, T). Received: "
            f"shape {tuple(lengths.shape)}, dtype {lengths.dtype}."
        )
    if len(lengths.shape) == 1:
        lengths = lengths[:, None]
    positions = ops.arange(size, dtype="int32")
    return positions < ops.expand_dims(ops.cast(lengths, "int32"), 2)


def causal_mask(num_queries, num_keys=None):
    """A position may attend to itself and to what came before it.

        mask[t, s] = s <= t + (num_keys - num_queries)

    The last query sits at the last key, so a query appended to a cache of
    earlier keys sees all of them.

    Source: document 004, section 5.

    Args:
        num_queries, num_keys: Ints, T and S; S defaults to T.

    Returns:
        Bool tensor `(T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import causal_mask
        >>> np.array(causal_mask(3)).astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
        >>> np.array(causal_mask(1, 3)).astype(int).tolist()  # with a cache
        [[1, 1, 1]]
    """
    num_keys = num_queries if num_keys is None else num_keys
    return _aligned_offsets(num_queries, num_keys) <= 0


def window_mask(num_queries, num_keys, before, after):
    """Keys at most `before` positions back and `after` positions ahead.

        mask[t, s] = -before <= s - (t + num_keys - num_queries) <= after

    Both ends are included, and queries are aligned as in `causal_mask`.

    Args:
        num_queries, num_keys: Ints, T and S.
        before, after: Non-negative ints, how far back and ahead a query sees.

    Returns:
        Bool tensor `(T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import window_mask
        >>> mask = window_mask(3, 3, before=1, after=0)
        >>> np.array(mask).astype(int).tolist()
        [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    if before < 0 or after < 0:
        raise ValueError(
            "`before` and `after` must not be negative. Received: "
            f"before={before}, after={after}."
        )
    offsets = _aligned_offsets(num_queries, num_keys)
    return ops.logical_and(offsets >= -before, offsets <= after)


def _aligned_offsets(num_queries, num_keys):
    queries = last_positions(num_queries, num_keys)
    return key_offsets(queries, ops.arange(num_keys))


def last_positions(number, total):
    """The positions of the last `number` of `total` tokens, `(number,)`."""
    return ops.arange(number, dtype="int32") + (total - number)


def query_offsets(query, key, query_positions=None):
    """The positions of the queries, and `key_offsets` of all keys from them.

    `query` is `(B, T, …)` and `key` `(B, S, …)`. Without positions, the queries
    are the last of the keys.
    """
    num_keys = ops.shape(key)[1]
    if query_positions is None:
        query_positions = last_positions(ops.shape(query)[1], num_keys)
    return query_positions, key_offsets(query_positions, ops.arange(num_keys))


def key_offsets(query_positions, key_positions):
    """How far each key lies after each query, `(T, S)` or `(B, T, S)`."""
    queries = ops.expand_dims(ops.cast(query_positions, "int32"), -1)
    return ops.cast(key_positions, "int32") - queries


def masked_softmax(scores, mask=None):
    """Softmax over the last axis, among the keys that may be attended.

        weights[..., s] = mask[..., s] exp(scores[..., s]) / sum over s

    A row without any key to attend to has weights 0, not NaN and not uniform.
    The computation runs in at least float32 and the result is cast back, so
    masks work in float16 and bfloat16 as well. A score of -inf masks its key,
    which makes the additive masks of document 004, section 5, work too.

    Source: document 001, masked softmax.

    Args:
        scores: Float tensor `(..., T, S)`.
        mask: Bool tensor that broadcasts to `scores`; True = may attend. For
            scores of heads, `(B, H, T, S)`, a mask `(B, T, S)` holds for
            every head.

    Returns:
        Float tensor `(..., T, S)` of the dtype of `scores`. Rows sum to 1,
        or to 0 where nothing may be attended.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import masked_softmax
        >>> scores = np.zeros((2, 4), "float32")
        >>> mask = np.array([[True, True, False, False], [False] * 4])
        >>> np.array(masked_softmax(scores, mask)).tolist()
        [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    scores = ops.convert_to_tensor(scores)
    dtype = scores.dtype
    if ops.dtype(scores) in ("float16", "bfloat16"):
        scores = ops.cast(scores, "float32")
    if mask is not None:
        mask = check_mask(mask, scores.shape)
        scores = ops.where(mask, scores, -float("inf"))
    highest = ops.max(scores, axis=-1, keepdims=True, initial=NO_SCORE)
    exponentials = ops.exp(scores - ops.stop_gradient(highest))
    total = ops.sum(exponentials, axis=-1, keepdims=True)
    weights = exponentials / ops.where(total == 0.0, 1.0, total)
    return ops.cast(weights, dtype)


def merge_masks(attention_mask=None, *key_masks):
    """Join a mask of pairs with masks `(B, S)` of keys; None is skipped.

    The result broadcasts to `(B, T, S)`, or to `(B, H, T, S)` if the mask of
    pairs has four axes. It is None if all are None.
    """
    merged = None if attention_mask is None else _to_mask(attention_mask)
    for mask in key_masks:
        if mask is None:
            continue
        mask = ops.expand_dims(_to_mask(mask), 1)  # (B, 1, S)
        if merged is not None:
            if len(merged.shape) == 4:
                mask = ops.expand_dims(mask, 1)
            mask = ops.logical_and(merged, mask)
        merged = mask
    return merged


def token_mask(*masks):
    """The masks `(B, T)` of a sequence's tokens in one; None is skipped."""
    merged = merge_masks(None, *masks)
    return None if merged is None else merged[:, 0]


def first_tokens(mask):
    """The place of the first token in each row of a mask `(B, T)`, `(B,)`."""
    return ops.argmax(ops.cast(mask, "int32"), axis=1)


def join_masks(heads, *masks):
    """Masks of pairs in one that broadcasts to `(B, H, T, S)`; None is skipped.

    `heads` are queries `(B, T, H, K)` and keys `(B, S, G, K)`, which the masks
    must fit.
    """
    query, key = heads
    shape = (None, query.shape[2], query.shape[1], key.shape[1])
    joined, *others = (check_mask(x, shape) for x in masks if x is not None)
    for mask in others:
        joined = ops.logical_and(joined, mask)
    return joined


def join_causal_mask(mask, query, key):
    """Join a mask, or None, with the `causal_mask` of queries and keys."""
    causal = causal_mask(ops.shape(query)[1], ops.shape(key)[1])
    return causal if mask is None else ops.logical_and(_to_mask(mask), causal)


def key_mask_of(mask):
    """The mask `(B, S)` or `(1, S)` of keys in one for queries and keys.

    Mechanisms that sum over the keys once, for all queries, take no other.
    """
    if mask is None:
        return None
    shape = tuple(mask.shape)
    if len(shape) not in (2, 3) or shape[-2] != 1:
        raise ValueError(
            "All keys are summed up once for all queries, so a mask must be "
            "the same for every query and head: (B, 1, S), and not causal. "
            f"Received: a mask of shape {shape}."
        )
    return mask[:, 0] if len(shape) == 3 else mask


def _to_mask(mask):
    """The mask as a tensor; refuse an additive one.

    Its 0 and −inf would become False and True, the wrong way round.
    """
    check_boolean("A mask", mask)
    return ops.convert_to_tensor(mask)


def check_mask(mask, shape):
    """The mask; refuse one that is not boolean or does not fit `shape`."""
    mask = _to_mask(mask)
    if (len(mask.shape), len(shape)) == (3, 4):
        mask = ops.expand_dims(mask, 1)  # the same for every head
    pairs = zip(reversed(mask.shape), reversed(shape), strict=False)
    fits = all(m == s or m == 1 or None in (m, s) for m, s in pairs)
    if len(mask.shape) > len(shape) or not fits:
        raise ValueError(
            "The mask does not broadcast to the scores. Received: mask "
            f"{tuple(mask.shape)}, scores {tuple(shape)}."
        )
    return mask
