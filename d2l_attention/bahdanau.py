"""Bahdanau attention: the decoder looks back at the source at each step."""

from d2l_attention.scoring import AdditiveAttention
from d2l_attention.seq2seq import RecurrentSeq2Seq
import keras


@keras.saving.register_keras_serializable("d2l_attention")
class BahdanauSeq2Seq(RecurrentSeq2Seq):
    """An encoder–decoder whose context is attended anew at each step.

        c_t = Σ_j α_tj h_j,  α_t = softmax_j(vᵀ tanh(W_q s_{t−1} + W_k h_j))

    The query is the decoder's state *before* token t, so row t of the weights
    belongs to the token that step t predicts, not to the one it is fed.

    Source: Bahdanau et al. (2015), arXiv:1409.0473, section 3.1; documents
    001 (Bahdanau attention), 003 and 004, section 11.
    Unlike the paper, as document 001 has it: the encoder is a stack of
    forward GRUs, the decoder's GRU takes the context as part of its input,
    and the output is one dense layer. Chapter 10 builds the paper's model.

    Args, call arguments, returns and errors: see `Seq2Seq`. The weights are
    named `"decoder/attention"`, `(B, 1, T, S)`.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.attention = AdditiveAttention(
            self.sizes["dim"], dtype=self.dtype_policy
        )

    def build(self, input_shape):
        super().build(input_shape)
        shape = (None, None, self.sizes["dim"])
        self.attention.build(shape, shape)

    def memorize(self, annotations, final, mask):
        return {
            "value": annotations,
            "key": self.attention.project_key(annotations),
            "mask": mask,
        }

    def read(self, query, memory):
        context, weights = self.attention.attend(
            self.attention.project_query(query)[:, None],
            memory["key"],
            memory["value"],
            memory["mask"][:, None],
        )
        return context[:, 0], {"attention": weights[:, 0]}
