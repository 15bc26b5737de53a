"""What does a mask do to its row? Scores whose cells a reader forbids.

α_ts = e^score_ts / Σ_j e^score_tj over the allowed keys j, and 0 elsewhere;
a row without any allowed key has weights 0.
"""

from d2l_attention.explorables.arrays import finite
from d2l_attention.explorables.page import Explorable
from d2l_attention.layers.masking import check_mask, masked_softmax
import numpy as np

_MOST = 12  # queries, and keys


def explore_masked_softmax(
    scores,
    mask=None,
    *,
    query_tokens=None,
    key_tokens=None,
    query=None,
    still=True,
):
    """A page on which a reader forbids keys, and sees what the others get.

    After a bet on one row, each cell can be forbidden and allowed, alone or
    by causal order and by padding on either side. It shows one row with its
    mask and without, and names the rows that have nothing to attend to.

    Args:
        scores: Float array `(T, S)`, at most 12 of each.
        mask: Bool array that broadcasts to `(T, S)`; True = may attend. All
            may by default.
        query_tokens: List of T str, the names of the rows.
        key_tokens: List of S str, the names of the columns.
        query: Int, the row to bet on. By default the first that may attend
            to two keys.
        still: As in `explore_flash_attention`.

    Returns:
        An `Explorable`.

    Raises:
        ValueError: If an array has another shape, is too large, or has a
            number that is not finite; if there are not as many tokens as
            rows or columns; or if the row may not attend to two keys.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.explorables import explore_masked_softmax
        >>> explore_masked_softmax(np.zeros((3, 3)), np.tri(3, dtype=bool))
        Explorable('What does a mask do to its row?')
    """
    scores = finite("scores", scores, 2)
    if max(scores.shape) > _MOST:
        raise ValueError(
            f"A page has room for {_MOST} queries and {_MOST} keys. Received: "
            f"scores of shape {scores.shape}."
        )
    mask = np.ones((), bool) if mask is None else np.asarray(mask)
    check_mask(mask, scores.shape)
    mask = np.broadcast_to(mask, scores.shape)
    (enough,) = np.nonzero(mask.sum(axis=1) >= 2)
    if not len(enough) or (query is not None and query not in enough):
        raise ValueError(
            "The row to bet on must have two keys to attend to. Received: "
            f"query={query}, keys of each row: {mask.sum(axis=1).tolist()}."
        )
    return Explorable(
        "masked_softmax",
        "What does a mask do to its row?",
        ["softmax", "masked_softmax"],
        {
            "scores": scores.tolist(),
            "mask": mask.tolist(),
            "queries": _names("query_tokens", query_tokens, len(scores)),
            "keys": _names("key_tokens", key_tokens, scores.shape[1]),
            "query": int(enough[0] if query is None else query),
        },
        np.array(masked_softmax(scores, mask)) if still else None,
    )


def _names(name, tokens, count):
    tokens = list(range(count) if tokens is None else tokens)
    if len(tokens) != count:
        raise ValueError(
            f"`{name}` must name {count}. Received: {len(tokens)}, {tokens}."
        )
    return [str(token) for token in tokens]
