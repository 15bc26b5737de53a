"""Attention in Keras 3: a course that runs, and the layers behind it."""

from d2l_attention._quiet import import_backend

import_backend()

from d2l_attention.bahdanau import BahdanauSeq2Seq  # noqa: E402
from d2l_attention.decoding import BeamDecoder, GreedyDecoder  # noqa: E402
from d2l_attention.kernel_regression import (  # noqa: E402
    NWKernelRegression,
    nadaraya_watson,
)
from d2l_attention.masking import (  # noqa: E402
    causal_mask,
    masked_softmax,
    padding_mask,
    window_mask,
)
from d2l_attention.scoring import (  # noqa: E402
    AdditiveAttention,
    BilinearAttention,
    ConcatAttention,
    DotProductAttention,
    additive_scores,
    bilinear_scores,
    concat_scores,
    dot_product_scores,
    gaussian_scores,
    scaled_dot_product_scores,
)
from d2l_attention.seq2seq import FixedContextSeq2Seq  # noqa: E402

__all__ = [
    "AdditiveAttention",
    "BahdanauSeq2Seq",
    "BeamDecoder",
    "BilinearAttention",
    "ConcatAttention",
    "DotProductAttention",
    "FixedContextSeq2Seq",
    "GreedyDecoder",
    "NWKernelRegression",
    "additive_scores",
    "bilinear_scores",
    "causal_mask",
    "concat_scores",
    "dot_product_scores",
    "gaussian_scores",
    "masked_softmax",
    "nadaraya_watson",
    "padding_mask",
    "scaled_dot_product_scores",
    "window_mask",
]
