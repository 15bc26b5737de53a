"""Attention to the pages nearby: what document 004 calls paged attention.

`PagedKVCache` is exact and a matter of memory; this looks at less.
"""

from d2l_attention._checks import check_positive
from d2l_attention.efficient.blockwise import (
    pages,
    unpage,
    with_neighbors,
)
from d2l_attention.efficient.weightless import WeightlessAttention
from d2l_attention.masking import masked_softmax
import keras
from keras import ops


def page_mask(num_tokens, page_size, neighbors=1):
    """A token may attend to its page and to so many pages on each side.

        mask[t, s] = |⌊t / page_size⌋ − ⌊s / page_size⌋| ≤ neighbors

    Args:
        num_tokens: Int, T = S.
        page_size: Positive int, tokens in a page.
        neighbors: Non-negative int.

    Returns:
        Bool tensor `(T, T)`.
    """
    pages = ops.arange(num_tokens, dtype="int32") // page_size
    return ops.abs(pages[:, None] - pages) <= neighbors


def page_local_attention(
    query, key, value, page_size, *, neighbors=1, key_mask=None, causal=False
):
    """Softmax attention among the tokens of a page and of its neighbors.

        output_t = softmax(q_t K_Nᵀ / √K) V_N,
            N = the tokens of pages p − neighbors … p + neighbors, p = that of t

    One softmax over all of them: document 004, section 7, normalises each
    page apart and adds, so that values of 1 give 2 or 3. It equals dense
    attention under `page_mask`, at a cost linear in T.

    Source: document 004, section 7, repaired; the pattern is that of
    Longformer's chunks without overlap (Beltagy et al. 2020,
    arXiv:2004.05150).

    Args:
        query: Float tensor `(B, T, H, K)`.
        key: Float tensor `(B, T, H, K)`.
        value: Float tensor `(B, T, H, V)`.
        page_size: Positive int, P; it need not divide T.
        neighbors: Non-negative int, pages on each side.
        key_mask: Bool tensor `(B, T)`, True = may be attended.
        causal: Whether no token sees a later one.

    Returns:
        Float tensor `(B, T, H, V)`; zeros where nothing may be attended.
    """
    length = ops.shape(query)[1]
    places = ops.arange(length, dtype="int32")[None]
    present = ops.ones_like(places, "bool") if key_mask is None else key_mask
    query, key, value, places, present = (
        pages(x, page_size) for x in (query, key, value, places, present)
    )
    key, value, key_places, present = (
        with_neighbors(x, neighbors, neighbors)
        for x in (key, value, places, present)
    )
    seen = present[:, :, None]  # (B, N, P, S)
    if causal:
        past = key_places[:, :, None] <= places[..., None]
        seen = ops.logical_and(seen, past)
    scores = ops.einsum("bnphk,bnshk->bnhps", query, key)
    scores = scores / key.shape[-1] ** 0.5
    weights = masked_softmax(scores, seen[:, :, None])
    output = ops.einsum("bnhps,bnshv->bnphv", weights, value)
    return unpage(output, length)


@keras.saving.register_keras_serializable("d2l_attention")
class PageLocalAttention(WeightlessAttention):
    """Multi-head self-attention to the pages nearby.

    See `page_local_attention`; `MultiHeadAttention` with the same weights
    under `page_mask` computes the same, and shows its weights.

    Args:
        num_heads: Positive int, H.
        key_dim: Positive int, K features a head.
        page_size: Positive int, tokens in a page.
        neighbors: Non-negative int, pages on each side.
        causal: Whether no token sees a later one.

    Further args: see `WeightlessAttention`.

    Call arguments:
        query: Float tensor `(B, T, D)`, also the keys and values.
        key_mask: Bool tensor `(B, T)`; `mask` is filled by Keras.

    Returns:
        Float tensor `(B, T, output_dim)`.

    Raises:
        ValueError: If a size is not positive or `neighbors` negative.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        page_size,
        neighbors=1,
        causal=False,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, **kwargs)
        self.pages = {
            "page_size": page_size,
            "neighbors": neighbors,
            "causal": causal,
        }
        check_positive("page_size", page_size)
        if not isinstance(neighbors, int) or neighbors < 0:
            raise ValueError(
                "`neighbors` must be an integer and not negative. Received: "
                f"neighbors={neighbors!r}."
            )

    def build(self, query_shape):  # Keras knows the arguments of `call` alone
        super().build(query_shape)

    def call(self, query, *, key_mask=None, mask=None):
        return super().call(query, key_mask=key_mask, mask=mask)

    def mix(self, query, key, value, mask):
        key_mask = None if mask is None else mask[:, 0]
        return page_local_attention(
            query, key, value, key_mask=key_mask, **self.pages
        )

    def get_config(self):
        return {**super().get_config(), **self.pages}
