"""How well a query and a key fit: scores, and the layers built on them."""

from d2l_attention.scoring.functions import (
    additive_scores,
    bilinear_scores,
    concat_scores,
    dot_product_scores,
    gaussian_scores,
    scaled_dot_product_scores,
)
from d2l_attention.scoring.layers import (
    AdditiveAttention,
    BilinearAttention,
    ConcatAttention,
    DotProductAttention,
)

__all__ = [
    "AdditiveAttention",
    "BilinearAttention",
    "ConcatAttention",
    "DotProductAttention",
    "additive_scores",
    "bilinear_scores",
    "concat_scores",
    "dot_product_scores",
    "gaussian_scores",
    "scaled_dot_product_scores",
]
