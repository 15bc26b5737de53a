"""Carry the output: how a softmax can end before its last score is known.

m′ = max(m, scores of the block),  shrink = e^(m − m′)
total′ = shrink · total + Σ_j e^(s_j − m′)
carried′ = shrink · carried + Σ_j e^(s_j − m′) v_j
output = carried / total
"""

from d2l_attention.explorables.arrays import finite
from d2l_attention.explorables.page import Explorable
from d2l_attention.layers.masking import masked_softmax
import numpy as np

_MOST_KEYS, _MOST_FEATURES = 24, 4  # for which a phone has room


def explore_flash_attention(scores, value, *, block_size=2, still=True):
    """A page on which one query reads its keys block by block.

    It shows what the query remembers (maximum, total and carried sum), how
    the old sums shrink when the maximum rises, and the output of the keys
    read so far beside that of one softmax. After a bet on the total, a reader
    can change every score, and leave the shrink out.

    Args:
        scores: Float array `(S,)`, one query's scores, at most 24.
        value: Float array `(S, V)`, at most 4 features.
        block_size: Int, the keys of a block at first.
        still: Whether a notebook shows a heatmap of the weights above the
            page. It stays where pages in a notebook are taken out: on
            GitHub, in print, and where the notebook is not trusted.

    Returns:
        An `Explorable`.

    Raises:
        ValueError: If an array has another shape, is too large, or has a
            number that is not finite; or if a block has no key, or more than
            there are.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.explorables import explore_flash_attention
        >>> rng = np.random.default_rng(0)
        >>> explore_flash_attention(rng.normal(size=8), rng.normal(size=(8, 2)))
        Explorable('Carry the output')
    """
    scores, value = finite("scores", scores), finite("value", value, 2)
    if len(scores) != len(value):
        raise ValueError(
            "There must be one value for each score. Received: scores of "
            f"shape {scores.shape}, value of shape {value.shape}."
        )
    num_keys, num_features = value.shape
    if num_keys > _MOST_KEYS or num_features > _MOST_FEATURES:
        raise ValueError(
            f"A page has room for {_MOST_KEYS} keys and {_MOST_FEATURES} "
            f"features. Received: value of shape {value.shape}."
        )
    if not 1 <= block_size <= num_keys or block_size != int(block_size):
        raise ValueError(
            f"A block has from 1 to {num_keys} keys. Received: "
            f"block_size={block_size}."
        )
    raised = scores.max() + np.log(4)
    low, high = np.floor(scores.min()) - 2, np.ceil(raised) + 2
    grid = np.round(np.linspace(low, high, 41), 2)
    choices = np.unique(np.concatenate([scores, grid, [raised]]))
    return Explorable(
        "flash_attention",
        "Carry the output",
        ["softmax", "flash_attention"],
        {
            "scores": np.searchsorted(choices, scores).tolist(),
            "raised": int(np.searchsorted(choices, raised)),
            "choices": choices.tolist(),
            "values": value.tolist(),
            "block": int(block_size),
        },
        np.array(masked_softmax(scores[None])) if still else None,
    )
