"""Bahdanau attention: the decoder looks at the source at each step."""

from d2l_attention.layers.scoring import AdditiveAttention
from d2l_attention.models.seq2seq import RecurrentSeq2Seq
import keras


@keras.saving.register_keras_serializable("d2l_attention")
class BahdanauSeq2Seq(RecurrentSeq2Seq):
    """An encoder–decoder that attends to the source anew at each step.

        c_t = Σ_j α_tj h_j,  α_t = softmax_j(vᵀ tanh(W_q s_{t−1} + W_k h_j))

    The query is the decoder's state *before* token t. So row t of the weights
    belongs to the token that step t predicts, not to the token that it reads.

    Source: Bahdanau et al. (2015), arXiv:1409.0473, section 3.1; documents
    001 (Bahdanau attention), 003 and 004, section 11.
    Unlike the paper, but like document 001: the encoder is a stack of forward
    GRUs, the decoder's GRU takes the context as part of its input, and the
    output is one dense layer. `RNNSearch` is the paper's model.

    Args:
        source_vocab_size, target_vocab_size: As in `FixedContextSeq2Seq`.
        dim, num_layers, embedding_dim, dropout: As there.

    The call is that of `FixedContextSeq2Seq`, but the dict of weights holds
    `"decoder/attention"` `(B, 1, T, S)`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import BahdanauSeq2Seq
        >>> model = BahdanauSeq2Seq(9, 7, dim=4, num_layers=1)
        >>> source, target = np.array([[3, 0, 0]]), np.array([[1, 5]])
        >>> inputs = {"source": source, "target": target}
        >>> _, maps = model(inputs, return_attention_scores=True)
        >>> np.array(maps["decoder/attention"])[0, 0].tolist()  # no padding
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """

    def __init__(
        self, source_vocab_size, target_vocab_size, dim, num_layers, **options
    ):
        super().__init__(
            source_vocab_size, target_vocab_size, dim, num_layers, **options
        )
        self.attention = AdditiveAttention(self.dim, dtype=self.dtype_policy)

    def build(self, input_shape):
        super().build(input_shape)
        shape = (None, None, self.dim)
        self.attention.build(shape, shape)

    def memorize(self, annotations, final, mask):
        return {
            "value": annotations,  # (B, S, D)
            "key": self.attention.project_key(annotations),  # (B, S, D)
            "mask": mask,  # (B, S)
        }

    def read(self, query, memory):
        context, weights = self.attention.attend(
            self.attention.project_query(query)[:, None],
            memory["key"],
            memory["value"],
            memory["mask"][:, None],
        )  # (B, 1, D) and (B, 1, S)
        return context[:, 0], {"attention": weights[:, 0]}
