"""Attention written in operations: where its axes lie, what becomes of it."""

import keras
from keras import layers, ops
import numpy as np
from zoo import B, D, T, case, draw, of_function, scores, tell

S = 7


def over(q, k):
    return ops.matmul(q, ops.swapaxes(k, -1, -2)) / 4


def split(x, heads):
    """`(B, T, D)` to `(B, H, T, K)`."""
    x = ops.reshape(x, (*x.shape[:2], heads, -1))
    return ops.transpose(x, (0, 2, 1, 3))


def merge(x):
    """And back."""
    x = ops.transpose(x, (0, 2, 1, 3))
    return ops.reshape(x, (*x.shape[:2], -1))


def vary(*shape):
    return draw(*shape) / 2


# Where the axes lie

LAYOUTS = {  # of the scores: the axis of the softmax, and what is told
    "bhts": (3, (0, 1, 2, 3)),
    "btsh": (2, (0, 3, 1, 2)),
    "bths": (3, (0, 2, 1, 3)),
    "bhst": (2, (0, 1, 3, 2)),
    "bsth": (1, (0, 3, 2, 1)),
}


def in_layout(layout, heads):
    axis, order = LAYOUTS[layout]

    def call(x):
        x = ops.reshape(x, (*x.shape[:2], heads, -1))
        z = ops.einsum(f"bthk,bshk->{layout}", x, x)
        weights = ops.softmax(z, axis=axis)
        tell(weights, order)
        return ops.einsum(f"{layout},bshk->bthk", weights, x)

    return call


@case(layout=LAYOUTS)
def scores_of_layout(layout):
    return of_function(in_layout(layout, 2), draw(B, T, D))


@case(layout=LAYOUTS)
def all_axes_of_one_length_in_layout(layout):
    return of_function(in_layout(layout, 6), draw(6, 6, 12))


@case(heads_first=[False, True], size=[(2, 5), (4, 4)])
def heads_folded_into_the_batch(heads_first, size):
    batch, length = size

    def call(x):
        x = split(x, 4)
        x = ops.swapaxes(x, 0, 1) if heads_first else x
        folded = ops.reshape(x, (4 * batch, length, -1))
        weights = ops.softmax(over(folded, folded))
        shape = (4, batch) if heads_first else (batch, 4)
        unfolded = ops.reshape(weights, (*shape, length, length))
        tell(unfolded, (1, 0, 2, 3) if heads_first else (0, 1, 2, 3))
        y = ops.reshape(ops.matmul(weights, folded), (*shape, length, -1))
        return merge(ops.swapaxes(y, 0, 1) if heads_first else y)

    return of_function(call, draw(batch, length, 8))


@case(keys=["four", "one"])
def heads_share_keys_of(keys):
    def call(x):
        if keys == "one":
            q = ops.reshape(x, (*x.shape[:2], 4, 2))
            k = x[..., :2]
            weights = ops.softmax(ops.einsum("bthk,bsk->bhts", q, k))
            tell(weights)
            return merge(ops.einsum("bhts,bsv->bhtv", weights, k))
        q, k = split(x, 4), split(x[..., :4], 2)
        k = ops.repeat(k, 2, axis=1)
        weights = tell(ops.softmax(over(q, k)))
        return merge(ops.matmul(weights, k))

    return of_function(call, draw(B, T, D))


@case()
def heads_and_queries_are_inputs_of_four_axes():
    def call(q, k, v):
        return ops.matmul(tell(ops.softmax(over(q, k))), v)

    q, k, v = draw(B, 2, T, 4), draw(B, 2, S, 4), vary(B, 2, S, 4)
    return of_function(call, q, k, v)


@case()
def a_picture_whose_convolutions_are_queries_and_keys():
    class SelfAttention2D(layers.Layer):
        def __init__(self):
            super().__init__(name="some")
            self.parts = [layers.Conv2D(4, 1) for _ in range(3)]

        def call(self, x):
            q, k, v = (ops.reshape(f(x), (B, 12, 4)) for f in self.parts)
            y = ops.matmul(tell(ops.softmax(over(q, k))), v)
            return x + ops.reshape(y, x.shape)

    case = of_function(None, draw(B, 3, 4, 4))
    return case._replace(model=SelfAttention2D())


@case()
def each_row_of_a_picture_by_itself():
    def call(x):
        weights = ops.softmax(ops.einsum("bhwc,bhvc->bhwv", x, x))
        return ops.einsum("bhwv,bhvc->bhwc", tell(weights), x)

    return of_function(call, vary(B, 3, 4, 8))


@case()
def words_of_each_sentence_of_a_document():
    """Sentences are rows of the batch, as they have heads."""

    def call(x):
        q = ops.reshape(x, (B, 4, T, 2, 4))
        weights = ops.softmax(ops.einsum("bnthk,bnshk->bnhts", q, q))
        tell(ops.reshape(weights, (B * 4, 2, T, T)))
        y = ops.einsum("bnhts,bnshk->bnthk", weights, q)
        return ops.reshape(y, x.shape)

    return of_function(call, vary(B, 4, T, D))


@case()
def states_that_a_loop_stacks():
    def call(x):
        state, states = x[:, 0], []
        for t in range(T):
            state = ops.tanh(state + x[:, t])
            states.append(state)
        states = ops.stack(states, axis=1)
        return ops.matmul(ops.softmax(2 * over(x, states)), states)

    return of_function(call, draw(B, T, D), named="the layer has stacked")


@case()
def a_table_of_ids_that_a_state_reads():
    table = draw(11, 8)

    def call(state, ids):
        words = ops.take(ops.convert_to_tensor(table), ids, axis=0)
        weights = ops.softmax(ops.einsum("bd,bsd->bs", state, words))
        tell(weights[:, None])
        return ops.einsum("bs,bsd->bd", weights, words)

    numbers = np.random.default_rng(0).integers(1, 11, (B, T))
    return of_function(call, draw(B, D), numbers)


@case()
def windows_of_a_picture():
    def call(x):
        y = ops.reshape(ops.roll(x, -1, 1), (B, 2, 2, 2, 2, 8))
        y = ops.transpose(y, (0, 1, 3, 2, 4, 5))
        y = ops.reshape(y, (-1, 4, 8))
        q = split(y, 2)
        weights = tell(ops.softmax(over(q, q)))
        y = ops.reshape(merge(ops.matmul(weights, q)), (B, 2, 2, 2, 2, 8))
        y = ops.transpose(y, (0, 1, 3, 2, 4, 5))
        return ops.reshape(y, x.shape)

    return of_function(call, draw(B, 4, 4, 8))


@case(heads=[1, 2])
def latent_queries_of_heads(heads):
    def call(self, x):
        q = ops.reshape(self.latents, (3, heads, -1))
        k = ops.reshape(x, (B, T, heads, -1))
        weights = ops.softmax(ops.einsum("nhk,bshk->bhns", q, k))
        y = ops.einsum("bhns,bshk->bnhk", tell(weights), k)
        return ops.reshape(y, (B, 3, 8))

    def build(self, shape):
        self.latents = self.add_weight(shape=(3, 8), name="latents")

    case = of_function(None, draw(B, T, D))
    kind = type(
        "LatentAttention", (layers.Layer,), {"call": call, "build": build}
    )
    return case._replace(model=kind(name="some"))


@case()
def hops_that_a_kernel_scores():
    """Lin et al.: r distributions over the words of a sentence."""
    kernel = vary(8, 3)

    def call(x):
        hops = ops.softmax(ops.matmul(ops.tanh(x), kernel), axis=1)
        hops = ops.swapaxes(hops, 1, 2)
        return ops.matmul(tell(hops), x)

    return of_function(call, draw(B, T, D))


@case(keepdims=[True, False])
def pooling(keepdims):
    kernel = draw(8, 1)

    def call(x):
        z = ops.matmul(x, kernel)
        if keepdims:
            weights = ops.softmax(z, axis=1)
            tell(ops.swapaxes(weights, 1, 2))
            return ops.sum(weights * x, axis=1)
        weights = ops.softmax(z[..., 0])
        tell(weights[:, None])
        return ops.einsum("bs,bsd->bd", weights, x)

    return of_function(call, draw(B, T, D))


@case(length=[1, 2])
def so_few_tokens(length):
    def call(x, y):
        weights = ops.softmax(over(x, y))
        return ops.matmul(tell(weights), y)

    return of_function(call, draw(B, length, D), draw(B, 3, D))


@case()
def heads_so_sharp_that_they_choose():
    def call(x):
        return ops.matmul(tell(ops.softmax(400 * scores(x))), x)

    return of_function(call, draw(B, T, D))


@case()
def positions_of_which_every_second_is_a_key():
    def call(x):
        keys = x[:, ::2]
        return ops.matmul(tell(ops.softmax(over(x, keys))), keys)

    return of_function(call, draw(B, T, D))


@case()
def words_and_pictures_as_keys():
    def call(x, y):
        keys = ops.concatenate([y, x], axis=1)
        return ops.matmul(tell(ops.softmax(over(x, keys))), keys)

    return of_function(call, draw(B, T, D), draw(B, 2, D))


MASKS = {
    "(T, S)": lambda batch: np.triu(np.full((T, T), -9.0, "float32"), 1),
    "(1, T, S)": lambda batch: np.triu(np.full((1, T, T), -9.0, "f"), 1),
    "(B, 1, T, S)": lambda batch: draw(batch, 1, T, T),
    "(B, S)": lambda batch: draw(batch, T)[:, None, None],
    "(H, T, S)": lambda batch: draw(2, T, T),
}


@case(mask=[*MASKS, *MASKS], batch=[1] * 5 + [B] * 5)
def numbers_are_added_to_scores(mask, batch):
    def call(x, added):
        q = split(x, 2)
        return merge(ops.matmul(tell(ops.softmax(over(q, q) + added)), q))

    return of_function(call, draw(batch, T, D), MASKS[mask](batch))


@case()
def a_bias_of_as_many_heads_as_sentences():
    def call(x, added):
        q = split(x, 2)
        return merge(ops.matmul(tell(ops.softmax(over(q, q) + added)), q))

    return of_function(call, draw(2, T, D), draw(2, T, T))


# Several in one layer


@case(length=[S, T])
def a_layer_with_self_and_cross_attention_to(length):
    def call(x, y):
        x = x + ops.matmul(tell(ops.softmax(scores(x))), x)
        return x + ops.matmul(tell(ops.softmax(over(x, y))), y)

    case = of_function(call, draw(B, T, D), vary(B, length, D))
    return case._replace(paths=["some", "some, softmax 2"])


@case()
def both_directions_of_bidaf():
    def call(h, u):
        z = over(h, u)
        a = ops.softmax(z)
        b = ops.softmax(ops.max(z, axis=-1))
        tell(a), tell(b[:, None])
        to_words = ops.matmul(a, u)
        whole = ops.matmul(b[:, None], h)
        return ops.concatenate([h, to_words, h * whole], axis=-1)

    case = of_function(call, draw(B, T, D), draw(B, S, D))
    return case._replace(paths=["some", "some, softmax 2"])


@case(size=[2, 3])
def queries_in_chunks_of(size):
    def call(x):
        parts = [
            ops.softmax(over(x[:, i : i + size], x)) for i in range(0, 6, size)
        ]
        tell(ops.concatenate(parts, axis=1))
        return ops.concatenate([ops.matmul(w, x) for w in parts], axis=1)

    return of_function(call, draw(B, 6, D))


@case()
def one_softmax_weighs_two_values():
    def call(x):
        weights = tell(ops.softmax(scores(x)))
        return ops.matmul(weights, x) + ops.matmul(weights, ops.tanh(x))

    return of_function(call, draw(B, T, D))


@case()
def a_softmax_whose_weights_another_weighs():
    """DCN: the product of two is no map, and the first is one."""

    def call(x, y):
        z = over(x, y)
        a, b = tell(ops.softmax(z)), ops.softmax(z, axis=1)
        both = ops.matmul(a, ops.swapaxes(b, 1, 2))
        return ops.concatenate([ops.matmul(a, y), ops.matmul(both, x)], -1)

    case = of_function(call, draw(B, T, D), draw(B, S, D))
    return case._replace(named={"some, softmax 2": "weights of another"})


# What becomes of weights


@case()
def a_difference_of_two():
    def call(x):
        a, b = (ops.softmax(n * scores(x)) for n in (1, 3))
        return ops.matmul(tell(a - 0.3 * b), x)

    return of_function(call, draw(B, T, D))


@case()
def a_difference_of_heads():
    """Differential attention as published: one softmax of 2H heads."""

    def call(x):
        q = split(x, 4)
        weights = ops.reshape(ops.softmax(over(q, q)), (B, 2, 2, T, T))
        weights = tell(weights[:, :, 0] - 0.3 * weights[:, :, 1])
        return merge(ops.matmul(weights, split(x, 2)))

    return of_function(call, draw(B, T, D))


@case()
def heads_that_talk():
    before, after = draw(2, 2), vary(2, 2)

    def call(x):
        q = split(x, 2)
        z = ops.einsum("bhts,hg->bgts", over(q, q), before)
        weights = ops.einsum("bhts,hg->bgts", ops.softmax(z), after)
        return merge(ops.matmul(tell(weights), q))

    return of_function(call, draw(B, T, D))


@case()
def a_head_that_is_switched_off():
    switch = np.array([0, 1], "float32")[:, None, None]

    def call(x):
        q = split(x, 2)
        weights = ops.multiply(ops.softmax(over(q, q)), switch)
        return merge(ops.matmul(tell(weights), q))

    return of_function(call, draw(B, T, D))


@case()
def a_gate_for_each_key():
    def call(x):
        gate = ops.sigmoid(ops.sum(x, axis=-1))[:, None]
        return ops.matmul(tell(ops.softmax(scores(x)) * gate), x)

    return of_function(call, draw(B, T, D))


@case()
def the_mean_of_heads():
    def call(x):
        q = split(x, 2)
        weights = ops.mean(ops.softmax(over(q, q)), axis=1)
        return ops.matmul(tell(weights), x)

    return of_function(call, draw(B, T, D))


@case()
def weights_that_are_squared_and_made_whole():
    def call(x):
        weights = ops.softmax(scores(x)) ** 2
        weights = weights / ops.sum(weights, axis=-1, keepdims=True)
        return ops.matmul(tell(weights), x)

    return of_function(call, draw(B, T, D))


@case()
def weights_before_dropout():
    class DroppedAttention(layers.Layer):
        def call(self, x):
            weights = tell(ops.softmax(scores(x)))
            dropped = keras.random.dropout(weights, 0.5, seed=1)
            return ops.matmul(dropped, x)

    case = of_function(None, draw(B, T, D))
    return case._replace(model=DroppedAttention(name="some"))


@case()
def slots_that_compete():
    """A softmax over slots, made whole over inputs."""

    def call(x, slots):
        weights = ops.softmax(over(x, slots))
        weights = weights / ops.sum(weights, axis=1, keepdims=True)
        weights = tell(ops.swapaxes(weights, 1, 2))
        return ops.matmul(weights, x)

    return of_function(call, draw(B, T, D), draw(B, 3, D))


@case()
def weights_by_a_power_of_two():
    """No exponential of Keras, and no softmax."""

    def call(x):
        powers = ops.exp(0.7 * scores(x))
        weights = powers / (ops.sum(powers, axis=-1, keepdims=True) + 1e-9)
        return ops.matmul(tell(weights), x)

    return of_function(call, draw(B, T, D))


# What is no map


@case(way=["einsum", "sum"])
def a_mixture_of_experts_by(way):
    experts = draw(8, T), draw(T, 8, 8)

    def call(x):
        gate = ops.softmax(ops.matmul(x, experts[0]))
        y = ops.einsum("btd,edk->btek", x, experts[1])
        if way == "einsum":
            return ops.einsum("bte,btek->btk", gate, y)
        return ops.sum(gate[..., None] * y, axis=2)

    return of_function(call, draw(B, T, D), named="does not run over positions")


@case()
def a_gate_of_features():
    return of_function(
        lambda x: x * ops.softmax(x),
        draw(B, T, D),
        named="does not run over positions",
    )


@case()
def memory_that_is_learned():
    memory = draw(T, 8)
    return of_function(
        lambda x: ops.matmul(ops.softmax(ops.matmul(x, memory.T)), memory),
        draw(B, T, D),
        named="does not run over positions",
    )


@case()
def samples_that_attend_to_samples():
    """SAINT, between the rows of a table."""

    def call(x):
        x = ops.swapaxes(x, 0, 1)
        return ops.swapaxes(ops.matmul(ops.softmax(over(x, x)), x), 0, 1)

    return of_function(call, draw(B, T, D), named="which is the batch")


@case()
def a_pointer_that_weighs_nothing():
    return of_function(
        lambda x: ops.softmax(scores(x)), draw(B, T, D), named="no values"
    )


@case()
def keys_of_their_own_for_each_query():
    def call(x):
        top, places = ops.top_k(scores(x), 2)
        values = ops.take_along_axis(x[:, None], places[..., None], axis=2)
        return ops.einsum("btk,btkd->btd", ops.softmax(top), values)

    return of_function(call, draw(B, T, D), named="")


@case()
def axes_of_which_an_operation_tells_nothing():
    def call(x):
        real, imaginary = ops.fft((x, ops.zeros_like(x)))
        x = real / 8 + imaginary / 8
        return ops.matmul(ops.softmax(scores(x)), x)

    return of_function(call, draw(B, T, D), named="could not be followed")


# What a reader of the operations once took for something else


@case()
def a_softmax_that_is_gated_twice():
    gates = np.tri(T, dtype="float32"), 1 - np.tri(T, dtype="float32")

    def call(x):
        weights = ops.softmax(scores(x))
        y, z = (tell(ops.multiply(weights, gate)) for gate in gates)
        return ops.concatenate([ops.matmul(y, x), ops.matmul(z, x)], axis=-1)

    case = of_function(call, draw(B, T, D))
    return case._replace(paths=["some", "some#2"])


@case()
def heads_are_summed_with_the_keys():
    """The values of each head come projected, as in MLA."""

    def call(x):
        q = split(x, 2)
        values = ops.stack([x, ops.tanh(x)], axis=2)  # (B, S, H, D)
        weights = tell(ops.softmax(over(q, q)))
        return ops.einsum("bhts,bshd->btd", weights, values)

    return of_function(call, draw(B, T, D))


@case()
def a_mask_of_an_input_and_a_new_sum():
    """AllenNLP's masked softmax."""

    def call(x, mask):
        weights = ops.softmax(scores(x)) * mask[:, None]
        weights = weights / (ops.sum(weights, -1, keepdims=True) + 1e-13)
        return ops.matmul(tell(weights), x)

    mask = np.ones((B, T), "float32")
    mask[0, 3:] = 0
    return of_function(call, draw(B, T, D), mask)


@case(given=["weights", "heads"])
def heads_of_one_key_whose_layer_gives(given):
    def call(x):
        q, k = ops.reshape(x, (B, T, 4, 2)), x[..., :2]
        weights = tell(ops.softmax(ops.einsum("bthk,bsk->bhts", q, k)))
        y = ops.einsum("bhts,bsv->bthv", weights, k)
        if given == "heads":
            return y
        return ops.reshape(y, (B, T, 8)), weights

    return of_function(call, draw(B, T, D))


@case()
def groups_of_queries_that_are_inputs():
    def call(q, k, v):
        k, v = (ops.repeat(x, 2, axis=1) for x in (k, v))
        return ops.matmul(tell(ops.softmax(over(q, k))), v)

    q, k, v = draw(B, 4, T, 2), draw(B, 2, S, 2), vary(B, 2, S, 2)
    return of_function(call, q, k, v)


@case(way=["add", "maximum"])
def a_number_is_given_to_each_weight_by(way):
    def call(x):
        weights = ops.softmax(scores(x))
        weights = weights + 0.3 if way == "add" else ops.maximum(weights, 0.2)
        return ops.matmul(tell(weights), x)

    return of_function(call, draw(B, T, D))


@case()
def heads_one_after_the_other_in_the_batch():
    def call(x):
        heads = ops.concatenate(ops.split(x, 2, axis=2), axis=0)
        weights = ops.softmax(over(heads, heads))
        tell(ops.reshape(weights, (2, B, T, T)), (1, 0, 2, 3))
        y = ops.matmul(weights, heads)
        return ops.concatenate(ops.split(y, 2, axis=0), axis=2)

    return of_function(call, draw(B, T, D))


@case()
def learned_queries_that_come_last():
    latents = draw(3, 8)

    def call(x):
        weights = ops.softmax(ops.einsum("nd,bsd->bns", latents, x))
        return ops.einsum("bns,bsd->bdn", tell(weights), x)

    return of_function(call, draw(B, T, D))


@case()
def a_picture_whose_channels_come_first():
    """Which its axes do not tell."""

    def call(x):
        x = ops.reshape(x, (B, 8, 20))
        z = ops.einsum("bdt,bds->bts", x, x)
        return ops.einsum("bts,bds->bdt", ops.softmax(z / 8), x)

    return of_function(call, draw(B, 8, 4, 5), named="could not be followed")


@case()
def a_gate_between_values_and_their_sum():
    def call(x):
        weights = ops.softmax(scores(x))
        products = weights[..., None] * x[:, None]
        gate = ops.sigmoid(x[..., :1])[:, None]
        return ops.sum(products * gate, axis=2)

    return of_function(call, draw(B, T, D), named="multiplied again")
