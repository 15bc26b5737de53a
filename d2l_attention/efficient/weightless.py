"""What layers that form no attention weights share."""

from d2l_attention.attention_layer import default_inputs
from d2l_attention.masking import merge_masks, token_mask
from d2l_attention.multi_head import HeadProjections


def key_mask_of(mask):
    """The mask `(B, S)` or `(1, S)` of keys in one for queries and keys.

    For mechanisms that sum over the keys once, for all queries.

    Raises:
        ValueError: If the mask differs between queries.
    """
    if mask is None:
        return None
    shape = tuple(mask.shape)
    if len(shape) not in (2, 3) or shape[-2] != 1:
        raise ValueError(
            "All keys are summed up once for all queries, so a mask must be "
            "the same for every query and head: (B, 1, S), and not causal. "
            f"Received: a mask of shape {shape}."
        )
    return mask[:, 0] if len(shape) == 3 else mask


class WithoutWeights(HeadProjections):
    """The projections of heads that form no weights `(B, H, T, S)`.

    So these layers have no dropout, which acts on weights, and none to
    return. Whoever asks is told what gives them: `instead`, of the subclass.
    """

    def __init__(self, *sizes, **options):
        if "dropout" in options:
            self._refuse("dropout", options["dropout"])
        super().__init__(*sizes, **options)

    def __call__(self, *inputs, **named):
        if "return_attention_scores" in named:
            asked = named["return_attention_scores"]
            self._refuse("return_attention_scores", asked)
        return super().__call__(*inputs, **named)

    @classmethod
    def _refuse(cls, name, received):
        raise ValueError(
            f"{cls.__name__} forms no weights, to drop or to return. "
            f"{cls.instead} Received: {name}={received}."
        )


class WeightlessAttention(WithoutWeights):
    """Multi-head attention without weights to return.

        output = [mix(Q W_q,h, K W_k,h, V W_v,h) for each head h] W_o

    A subclass implements `mix`. Its projections are those of
    `MultiHeadAttention`, by name too, so each can be given to the other.

    Args: see `HeadProjections`.

    Call arguments, returns and errors: see `MultiHeadAttention`.
    """

    def mix(self, query, key, value, mask, use_causal_mask):
        """Heads `(B, T, H, V)` from projected queries, keys and values."""
        raise NotImplementedError

    def call(
        self,
        query,
        value=None,
        *,
        key=None,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        value_mask=None,
        mask=None,
        use_causal_mask=False,
    ):
        if key is None and value is None:  # the queries are the keys
            key_mask = token_mask(query_mask, key_mask, mask)
        value, key = default_inputs(query, value, key)
        heads = self.mix(
            self.project_query(query),  # (B, T, H, K)
            self.project_key(key),  # (B, S, H, K)
            self.project_value(value),  # (B, S, H, V)
            merge_masks(attention_mask, key_mask, value_mask),
            use_causal_mask,
        )
        return self.join_heads(heads)


class WeightlessSelfAttention(WithoutWeights):
    """Self-attention without weights to return: the queries are the keys.

    A subclass implements `call`. Its pattern says who sees whom, so there is
    no `attention_mask`.

    Args: see `HeadProjections`.

    Call arguments:
        query: Float tensor `(B, T, D)`, also the keys and values.
        query_mask, key_mask, mask: Bool tensors `(B, T)`, True at tokens;
            Keras fills one of them from an implicit mask.
        use_causal_mask: Whether no token sees a later one.

    Returns:
        Float tensor `(B, T, output_dim)`.

    Raises:
        ValueError: If a size is not positive.
    """

    def build(self, query_shape):
        super().build(query_shape)

    def compute_output_shape(self, query_shape):
        return super().compute_output_shape(query_shape)
