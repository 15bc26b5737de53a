"""Greedy and beam search: whole sentences from a model of the next token.

They need two methods of a model, `start` and `step`. What these keep between
two tokens, a cache of keys and values or a recurrent state, is the model's.
"""

from d2l_attention._checks import check_positive, check_room
from d2l_attention._config import Configurable
import keras
from keras import ops, tree


class _Decoder(Configurable, keras.Model):
    """What greedy and beam search share; `GreedyDecoder` describes it."""

    def __init__(self, model, start_id, end_id, max_length, **kwargs):
        super().__init__(**kwargs)
        if not (hasattr(model, "start") and hasattr(model, "step")):
            raise ValueError(
                "`model` must have `start` and `step`. Received: "
                f"{type(model).__name__}."
            )
        check_positive("start_id", start_id)
        check_positive("end_id", end_id)
        check_positive("max_length", max_length)
        check_room(model, max_length)
        self.model = model
        self.start_id = start_id
        self.end_id = end_id
        self.max_length = max_length

    def build(self, input_shape):
        if not self.model.built:
            self.model.build({"source": input_shape, "target": input_shape})
        if getattr(self.model, "continues_source", False):
            check_room(self.model, (input_shape[1] or 0) + self.max_length)

    def compute_output_spec(self, source, training=None):
        shape = (source.shape[0], self.max_length)
        return keras.KerasTensor(shape, dtype="int32")


@keras.saving.register_keras_serializable("d2l_attention")
class GreedyDecoder(_Decoder):
    """The likeliest token at each step.

        y_t = argmax_y p(y | y_1 … y_{t−1}, source)

    Source: document 001, Bahdanau attention.

    Args:
        model: A model with `start(source)` and `step(token, state)`.
        start_id, end_id: Positive ints, the ids of the tokens that begin and
            end a sentence.
        max_length: Positive int, most tokens T that are written.

    Call arguments:
        source: Int tensor `(B, S)`, padded with 0.

    Returns:
        Int tensor `(B, max_length)`: the tokens up to and with the end token,
        padded with 0. Id 0 is padding and never chosen.

    Raises:
        ValueError: If the model has no step protocol, a special id is 0 or
            negative, or `max_length` is not positive or more than the model
            has positions for. (A model that continues the source needs
            positions for the source too.)

    Example:
        >>> import numpy as np
        >>> from d2l_attention import BahdanauSeq2Seq, GreedyDecoder
        >>> model = BahdanauSeq2Seq(9, 7, dim=4, num_layers=1)
        >>> decoder = GreedyDecoder(model, start_id=1, end_id=2, max_length=5)
        >>> tuple(decoder(np.array([[3, 4, 0], [5, 6, 8]])).shape)
        (2, 5)
    """

    def call(self, source):
        batch = ops.shape(source)[0]
        steps = ops.arange(self.max_length, dtype="int32")  # (T,)

        def unfinished(t, token, ended, ids, state):
            return ops.logical_not(ops.all(ended))

        def body(t, token, ended, ids, state):
            logits, state = self.model.step(token, state)  # (B, vocab_size)
            token = ops.cast(ops.argmax(_forbid_padding(logits), -1), "int32")
            written = ops.where(ended, 0, token)  # (B,)
            ids = ops.where(steps == t, written[:, None], ids)  # (B, T)
            ended = ops.logical_or(ended, token == self.end_id)  # (B,)
            return t + 1, token, ended, ids, state

        return ops.while_loop(
            unfinished,
            body,
            (
                ops.zeros((), "int32"),
                ops.full((batch,), self.start_id, "int32"),
                ops.zeros((batch,), "bool"),
                ops.zeros((batch, self.max_length), "int32"),
                self.model.start(source),
            ),
            maximum_iterations=self.max_length,
        )[3]


@keras.saving.register_keras_serializable("d2l_attention")
class BeamDecoder(_Decoder):
    """The best sentence of a search that keeps `width` sentences.

        argmax over y of log p(y | source) / length(y)^length_penalty

    At each step the search keeps the `width` likeliest beginnings, finished
    sentences among them, and drops the others. y runs over the sentences that
    are left at the end.

    Source: Graves (2012), arXiv:1211.3711, section 2.5; the penalty as in Wu
    et al. (2016), arXiv:1609.08144, section 7, without their constant 5.

    Args:
        model, start_id, end_id, max_length: As in `GreedyDecoder`.
        width: Positive int W, number of sentences kept; 1 is greedy decoding.
        length_penalty: Float; with 0 the sentences are compared by their log
            probabilities, with 1 by the mean per token.

    The call and its errors are those of `GreedyDecoder`.

    Example:
        >>> import numpy as np
        >>> from d2l_attention import BahdanauSeq2Seq
        >>> from d2l_attention import BeamDecoder, GreedyDecoder
        >>> model = BahdanauSeq2Seq(9, 7, dim=4, num_layers=1)
        >>> source = np.array([[3, 4, 0], [5, 6, 8]])
        >>> one = BeamDecoder(model, 1, 2, max_length=5, width=1)(source)
        >>> greedy = GreedyDecoder(model, 1, 2, max_length=5)(source)
        >>> bool(np.array_equal(one, greedy))
        True
    """

    def __init__(
        self,
        model,
        start_id,
        end_id,
        max_length,
        width=4,
        length_penalty=1.0,
        **kwargs,
    ):
        super().__init__(model, start_id, end_id, max_length, **kwargs)
        check_positive("width", width)
        self.width = width
        self.length_penalty = length_penalty

    def call(self, source):
        batch, width = ops.shape(source)[0], self.width
        steps = ops.arange(self.max_length, dtype="int32")  # (T,)
        # The first row of each sentence's beams, (B, 1).
        first = ops.reshape(ops.arange(batch) * width, (-1, 1))

        def unfinished(t, tokens, totals, ids, state):
            return ops.logical_not(ops.all(_ended(ids, self.end_id)))

        def body(t, tokens, totals, ids, state):
            before = state
            logits, state = self.model.step(ops.reshape(tokens, (-1,)), before)
            log_p = ops.log_softmax(_forbid_padding(logits), axis=-1)
            vocab_size = log_p.shape[-1]
            log_p = ops.reshape(log_p, (-1, width, vocab_size))
            # A finished sentence goes on with padding, at no cost.
            padding = ops.where(ops.arange(vocab_size) == 0, 0.0, -float("inf"))
            ended = _ended(ids, self.end_id)[..., None]  # (B, W, 1)
            totals = totals[..., None] + ops.where(
                ended, ops.cast(padding, log_p.dtype), log_p
            )  # (B, W, vocab_size)
            totals, best = ops.top_k(
                ops.reshape(totals, (-1, width * vocab_size)), width
            )
            best = ops.cast(best, "int32")  # (B, W)
            tokens = best % vocab_size
            rows = ops.reshape(first + best // vocab_size, (-1,))  # (B · W,)
            ids = ops.take(
                ops.reshape(ids, (-1, self.max_length)), rows, axis=0
            )
            ids = ops.reshape(ids, (-1, width, self.max_length))
            # A tensor that a step returns as it was is the same for all beams
            # of a sentence, so it need not be sorted.
            state = tree.map_structure(
                lambda old, new: (
                    new if new is old else ops.take(new, rows, axis=0)
                ),
                before,
                state,
            )
            ids = ops.where(steps == t, tokens[..., None], ids)
            return t + 1, tokens, totals, ids, state

        state = tree.map_structure(
            lambda x: ops.repeat(x, width, axis=0), self.model.start(source)
        )
        # All beams of a sentence begin alike. Only the first may win the first
        # step, or the beams would stay alike.
        alone = ops.where(ops.arange(width) == 0, 0.0, -float("inf"))
        _, _, totals, ids, _ = ops.while_loop(
            unfinished,
            body,
            (
                ops.zeros((), "int32"),
                ops.full((batch, width), self.start_id, "int32"),
                ops.broadcast_to(ops.cast(alone, "float32"), (batch, width)),
                ops.zeros((batch, width, self.max_length), "int32"),
                state,
            ),
            maximum_iterations=self.max_length,
        )
        lengths = ops.sum(ops.cast(ids != 0, totals.dtype), axis=-1)
        best = ops.argmax(totals / lengths**self.length_penalty, axis=-1)
        return ops.take_along_axis(ids, best[:, None, None], axis=1)[:, 0]


def _forbid_padding(logits):
    """Logits `(…, vocab_size)` with −∞ for id 0."""
    padding = ops.arange(logits.shape[-1]) == 0
    return ops.where(padding, -float("inf"), logits)


def _ended(ids, end_id):
    """Whether the end token was written: ids `(…, T)` to bool `(…)`."""
    return ops.any(ids == end_id, axis=-1)
