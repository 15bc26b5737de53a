"""What the layers share that never form a weight for each pair."""

from d2l_attention.multi_head import MultiHeadAttention


def key_mask_of(mask):
    """The mask `(B, S)` or `(1, S)` of keys in one for queries and keys.

    For mechanisms that sum or mix over keys once, for all queries.

    Raises:
        ValueError: If the mask differs between queries.
    """
    if mask is None:
        return None
    shape = tuple(mask.shape)
    if len(shape) not in (2, 3) or shape[-2] != 1:
        raise ValueError(
            "All keys are summed up once for all queries, so a mask must be "
            "the same for every query and head, (B, 1, S); no causal one is. "
            f"Received: a mask of shape {shape}."
        )
    return mask[:, 0] if len(shape) == 3 else mask


class WeightlessAttention(MultiHeadAttention):
    """Multi-head attention without weights to return.

        output = [mix(Q W_q,h, K W_k,h, V W_v,h) for each head h] W_o

    A subclass implements `mix`, or all of `call` where it is no function of
    these three. Its projections are those of `MultiHeadAttention`, by name
    too, so each can be given to the other.

    Args: see `MultiHeadAttention`; there is no dropout, for want of weights.

    Call arguments, returns and errors: see `MultiHeadAttention`;
    `return_attention_scores` does not exist, since forming `(B, H, T, S)` is
    what these layers avoid.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        output_dim=None,
        use_bias=False,
        **kwargs,
    ):
        sizes = (num_heads, key_dim, value_dim, output_dim)
        super().__init__(*sizes, 0.0, use_bias, **kwargs)

    def mix(self, query, key, value, mask):
        """Heads `(B, T, H, V)` from projected queries, keys and values."""
        raise NotImplementedError

    def attend(self, query, key, value, mask=None, training=None):
        """Output, and None for the weights."""
        return self.join_heads(self.mix(query, key, value, mask)), None

    def call(
        self,
        query,
        *,
        key=None,
        value=None,
        attention_mask=None,
        query_mask=None,
        key_mask=None,
        mask=None,
    ):
        return super().call(
            query,
            key=key,
            value=value,
            attention_mask=attention_mask,
            query_mask=query_mask,
            key_mask=key_mask,
            mask=mask,
        )

    def get_config(self):
        config = super().get_config()
        del config["dropout"]
        return config
