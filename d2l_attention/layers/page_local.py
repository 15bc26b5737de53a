"""Attention to the pages nearby: what document 004 calls paged attention.

`PagedKVCache` saves memory and changes no result; here a token sees less.
"""

from numbers import Integral

from d2l_attention._checks import check_positive
from d2l_attention.layers.base import check_shapes
from d2l_attention.layers.masking import causal_mask, masked_softmax, token_mask
from d2l_attention.layers.multi_head import SelfAttentionByPattern
from d2l_attention.layers.reshaping import (
    join_chunks,
    split_into_chunks,
    with_neighbors,
)
import keras
from keras import ops


def page_mask(num_tokens, page_size, neighbors=1, use_causal_mask=False):
    """A token may attend to its page and to some pages on each side.

        mask[t, s] = |⌊t / page_size⌋ − ⌊s / page_size⌋| ≤ neighbors

    Args:
        num_tokens: Int, T = S.
        page_size: Positive int, tokens in a page.
        neighbors: Non-negative int, pages on each side.
        use_causal_mask: Whether no token sees a later one.

    Returns:
        Bool tensor `(T, T)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.layers.page_local import page_mask
        >>> mask = page_mask(3, page_size=2, neighbors=0)
        >>> np.array(mask).astype(int).tolist()
        [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """
    page = ops.arange(num_tokens, dtype="int32") // page_size
    mask = ops.abs(page[:, None] - page) <= neighbors
    if use_causal_mask:
        mask = ops.logical_and(mask, causal_mask(num_tokens))
    return mask


def page_local_attention(
    query,
    key,
    value,
    page_size,
    *,
    neighbors=1,
    key_mask=None,
    use_causal_mask=False,
):
    """Softmax attention among the tokens of a page and of its neighbors.

        output_t = softmax(q_t K_Nᵀ / √K) V_N,
            N = the tokens of pages p − neighbors … p + neighbors, t in page p

    One softmax runs over all of them. It equals dense attention under
    `page_mask`, at a cost linear in T. Document 004, section 7, normalizes
    each page apart and adds, so values of 1 give 2 or 3.

    Source: document 004, section 7, repaired. Longformer has the same pattern
    in chunks without overlap (Beltagy et al. 2020, arXiv:2004.05150).

    Args:
        query, key: Float tensors `(B, T, H, K)`.
        value: Float tensor `(B, T, H, V)`.
        page_size: Positive int, P; it need not divide T.
        neighbors: Non-negative int, pages on each side.
        key_mask: Bool tensor `(B, T)`, True = may be attended.
        use_causal_mask: Whether no token sees a later one.

    Returns:
        Float tensor `(B, T, H, V)`; zeros where nothing may be attended.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import page_local_attention
        >>> alike = np.zeros((1, 4, 1, 2), "float32")
        >>> value = np.array([1, 3, 5, 9], "float32").reshape(1, 4, 1, 1)
        >>> output = page_local_attention(alike, alike, value, 2, neighbors=0)
        >>> np.array(output).ravel().round(2).tolist()  # the mean of each page
        [2.0, 2.0, 7.0, 7.0]
    """
    length = ops.shape(query)[1]
    places = ops.arange(length, dtype="int32")[None]
    present = ops.ones_like(places, "bool") if key_mask is None else key_mask
    key = _pages_around(key, page_size, neighbors)  # (B, N, S, H, K)
    value = _pages_around(value, page_size, neighbors)  # (B, N, S, H, V)
    present = _pages_around(present, page_size, neighbors)  # (B, N, S)
    key_places = _pages_around(places, page_size, neighbors)  # (1, N, S)
    places = split_into_chunks(places, page_size)  # (1, N, P)
    query = query / key.shape[-1] ** 0.5  # before the products, as elsewhere
    query = split_into_chunks(query, page_size)  # (B, N, P, H, K)

    seen = ops.expand_dims(present, 2)  # (B, N, 1, S)
    if use_causal_mask:
        past = ops.expand_dims(key_places, 2) <= ops.expand_dims(places, 3)
        seen = ops.logical_and(seen, past)  # (B, N, P, S)
    scores = ops.einsum("bnphk,bnshk->bnhps", query, key)
    weights = masked_softmax(scores, ops.expand_dims(seen, 2))
    output = ops.einsum("bnhps,bnshv->bnphv", weights, value)
    return join_chunks(output, length)  # (B, T, H, V)


def _pages_around(x, page_size, neighbors):
    """Each of N pages of `(B, T, …)` with its neighbors, `(B, N, S, …)`."""
    pages = split_into_chunks(x, page_size)
    return with_neighbors(pages, neighbors, neighbors)


@keras.saving.register_keras_serializable("d2l_attention")
class PageLocalAttention(SelfAttentionByPattern):
    """Multi-head self-attention to the pages nearby.

        output = page_local_attention(Q W_q, Q W_k, Q W_v, page_size) W_o

    `MultiHeadAttention` with the same weights under `page_mask` computes the
    same and can show its weights. This layer never forms the weights
    `(B, H, T, S)`, so it has neither `dropout` nor `return_attention_scores`.

    Source: document 004, section 7, repaired.

    Args:
        num_heads, key_dim: Positive ints, H, and K of each query and key.
        page_size: Positive int, tokens in a page.
        neighbors: Non-negative int, pages on each side.
        value_dim, output_dim, use_bias: As in `MultiHeadAttention`.

    Unlike `AttentionLayer`, it takes the queries alone, which are the keys and
    values, and no `attention_mask`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import PageLocalAttention
        >>> layer = PageLocalAttention(2, key_dim=3, page_size=2, neighbors=0)
        >>> x = np.ones((1, 4, 5))
        >>> before = np.array(layer(x))
        >>> x[:, 3] = 9.0  # the first page does not see this token
        >>> bool(np.allclose(layer(x)[:, :2], before[:, :2], atol=1e-5))
        True
    """

    weights_from = (
        "MultiHeadAttention has both, and computes the same under page_mask "
        "of d2l_attention.layers.page_local."
    )

    def __init__(
        self, num_heads, key_dim, page_size, *, neighbors=1, **options
    ):
        super().__init__(num_heads, key_dim, **options)
        self.page_size = check_positive("page_size", page_size)
        if not isinstance(neighbors, Integral) or neighbors < 0:
            raise ValueError(
                "`neighbors` must be an integer and not negative. Received: "
                f"neighbors={neighbors!r}."
            )
        self.neighbors = int(neighbors)

    def call(
        self,
        query,
        *,
        query_mask=None,
        key_mask=None,
        mask=None,
        use_causal_mask=False,
    ):
        check_shapes(query.shape)
        heads = page_local_attention(
            self.project_query(query),  # (B, T, H, K)
            self.project_key(query),  # (B, T, H, K)
            self.project_value(query),  # (B, T, H, V)
            self.page_size,
            neighbors=self.neighbors,
            key_mask=token_mask(query_mask, key_mask, mask),
            use_causal_mask=use_causal_mask,
        )
        return self.join_heads(heads)
