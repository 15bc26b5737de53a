"""Multi-head attention: the function, the projections and the layer."""

from d2l_attention.multi_head.functions import (
    multi_head_attention,
    multi_head_scores,
    multi_head_sum,
    with_head_axis,
)
from d2l_attention.multi_head.layer import MultiHeadAttention
from d2l_attention.multi_head.projections import HeadProjections, split_heads

__all__ = [
    "HeadProjections",
    "MultiHeadAttention",
    "multi_head_attention",
    "multi_head_scores",
    "multi_head_sum",
    "with_head_axis",
    "split_heads",
]
