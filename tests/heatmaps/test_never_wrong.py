"""Maps that a guess would get wrong: each is right, or named as skipped."""

import warnings

from contract import draw, to_numpy
from d2l_attention import window_mask
from d2l_attention.heatmaps import (
    animate_attention,
    attention_distance,
    attention_entropy,
    check_attention_masks,
    get_attention_gradients,
    get_attention_weights,
    plot_attention,
    plot_attention_grid,
    show_heatmaps,
    view_attention,
)
from d2l_attention.heatmaps.capture import _capture
import keras
from keras import layers, ops
import matplotlib.pyplot as plt
import numpy as np
import pytest

B, T, D, H = 3, 5, 8, 4
X = draw(B, T, D)


def attention(name="known"):
    return layers.MultiHeadAttention(2, 4, name=name)


def read(layer, *inputs):
    """Maps and what was skipped, whatever there is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _, maps = get_attention_weights(layer, *inputs)
        except ValueError as error:
            return {}, str(error)
    return dict(maps), str(maps.skipped)


def softmax(x):
    exp = np.exp(x - x.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


class StackedAttention(keras.Layer):
    """Heads stacked on the batch, as tf.concat(tf.split(…), 0) has them."""

    def call(self, x):
        heads = ops.concatenate(ops.split(x, H, axis=2), axis=0)
        scores = ops.matmul(heads, ops.swapaxes(heads, 1, 2))
        mixed = ops.matmul(ops.softmax(scores), heads)
        return ops.concatenate(ops.split(mixed, H, axis=0), axis=2)


def test_heads_stacked_before_the_batch_are_those_of_their_sentence():
    maps, _ = read(StackedAttention(name="stacked"), X)
    heads = X.reshape(B, T, H, D // H)
    expected = softmax(np.einsum("bthk,bshk->bhts", heads, heads))
    np.testing.assert_allclose(maps["stacked"], expected, atol=1e-5)


class HeadsFirstAttention(keras.Layer):
    """`(H, B, T, S)`, with as many heads as sentences."""

    def call(self, x):
        heads = ops.stack(ops.split(x, 2, axis=2))
        scores = ops.einsum("hbtk,hbsk->hbts", heads, heads)
        return ops.einsum("hbts,hbsk->bthk", ops.softmax(scores), heads)


def test_an_axis_of_heads_before_the_batch_is_no_batch():
    maps, why = read(HeadsFirstAttention(name="first"), X[:2])
    assert not maps and "first: " in why


class AttentionTagger(keras.Layer):
    """Attention within, and a softmax over T classes behind it."""

    def __init__(self, **options):
        super().__init__(**options)
        self.classes = layers.Dense(T)

    def build(self, shape):
        self.classes.build(shape)

    def call(self, x):
        weights = ops.softmax(ops.einsum("btd,bsd->bts", x, x))
        return ops.softmax(self.classes(ops.matmul(weights, x)))


class MoE3Attention(keras.Layer):
    """A router that sends each token to T experts."""

    def __init__(self, **options):
        super().__init__(**options)
        self.router = layers.Dense(T)

    def build(self, shape):
        self.router.build(shape)

    def call(self, x):
        return ops.einsum("bte,btd->btd", ops.softmax(self.router(x)), x)


def test_classes_and_experts_are_no_keys():
    maps, _ = read(AttentionTagger(name="tagger"), X)
    expected = softmax(np.einsum("btd,bsd->bts", X, X))[:, None]
    assert list(maps) == ["tagger"]
    np.testing.assert_allclose(maps["tagger"], expected, atol=1e-5)
    maps, why = read(MoE3Attention(name="router"), X)
    assert not maps and "router: " in why


class TopAttention(keras.Layer):
    """Keeps the two largest weights of a row, after the softmax."""

    def __init__(self, renormalise, **options):
        super().__init__(**options)
        self.renormalise = renormalise

    def call(self, x):
        weights = ops.softmax(ops.einsum("btd,bsd->bts", x, x))
        least = ops.top_k(weights, 2)[0][..., -1:]
        kept = ops.where(weights >= least, weights, 0.0)
        if self.renormalise:
            kept = kept / ops.sum(kept, -1, keepdims=True)
        return ops.matmul(kept, x)


@pytest.mark.parametrize("renormalise", [True, False])
def test_weights_that_change_after_the_softmax_are_not_shown(renormalise):
    maps, why = read(TopAttention(renormalise, name="top"), X)
    assert not maps and "top: " in why


class SinkAttention(keras.Layer):
    """A score that belongs to no key, in a column first or last."""

    def __init__(self, first, **options):
        super().__init__(**options)
        self.first = first

    def call(self, x):
        scores = ops.einsum("btd,bsd->bts", x, x)
        sink = ops.ones_like(scores[..., :1])
        both = [sink, scores] if self.first else [scores, sink]
        weights = ops.softmax(ops.concatenate(both, axis=-1))
        kept = weights[..., 1:] if self.first else weights[..., :-1]
        return ops.matmul(kept, x)


@pytest.mark.parametrize("first", [True, False])
def test_a_sink_takes_weight_and_shifts_no_label(first):
    maps, _ = read(SinkAttention(first, name="sink"), X)
    scores = np.einsum("btd,bsd->bts", X, X)
    exp = np.exp(scores)
    expected = exp / (exp.sum(-1, keepdims=True) + np.e)
    np.testing.assert_allclose(maps["sink"][:, 0], expected, atol=1e-5)


class BahdanauAttention(keras.Layer):
    """A softmax over the second axis, as TensorFlow's tutorial has it."""

    def __init__(self, flat=False, **options):
        super().__init__(**options)
        self.score, self.flat = layers.Dense(1), flat

    def build(self, *shapes):
        self.score.build((None, None, D))

    def call(self, query, values):
        scores = self.score(ops.tanh(query[:, None] + values))  # (B, S, 1)
        if self.flat:
            weights = ops.softmax(scores[..., 0])[..., None]
        else:
            weights = ops.softmax(scores, axis=1)
        return ops.sum(weights * values, axis=1)


@pytest.mark.parametrize("flat", [True, False])
def test_a_softmax_over_any_axis_and_of_any_rank_is_read(flat):
    layer = BahdanauAttention(flat, name="bahdanau")
    outputs, maps = get_attention_weights(layer, X[:, 0], X)
    assert maps["bahdanau"].shape == (B, 1, 1, T)
    np.testing.assert_allclose(
        maps["bahdanau"][:, 0, 0][:, None] @ X,
        to_numpy(outputs)[:, None],
        atol=1e-5,
    )


def pooled(kind):
    """Keras's old attention of blocks: scores, a softmax, a product."""
    x = keras.Input((T, D))
    y = attention()(x, x)
    scores = layers.Flatten()(layers.Dense(1)(y))
    if kind == "activation":
        weights = layers.Activation("softmax", name="pool")(scores)
    else:
        weights = layers.Softmax(name="pool")(scores)
    y = layers.Dot(axes=1)([weights, y])
    return keras.Model(x, layers.Dense(T, activation="softmax")(y))


@pytest.mark.parametrize("kind", ["activation", "layer"])
def test_pooling_of_a_functional_model_is_named_beside_a_known_layer(kind):
    maps, why = read(pooled(kind), X)
    assert list(maps) == ["known"]
    assert "softmax looks like attention" in why


def test_a_classifier_of_as_many_classes_as_positions_is_not_named():
    x = keras.Input((T, D))
    y = layers.GlobalAveragePooling1D()(attention()(x, x))
    model = keras.Model(x, layers.Dense(T, activation="softmax")(y))
    maps, why = read(model, X)
    assert list(maps) == ["known"] and why == "{}"


class PartlyCompiled(keras.Model):
    """A part of it is a `tf.function`, which was traced before."""

    def __init__(self, is_compiled):
        import tensorflow as tf

        super().__init__()
        self.known, self.hidden = attention(), attention("hidden")
        self.dropped = attention("dropped")
        self.part = tf.function(lambda x: self.hidden(x, x))
        if not is_compiled:
            self.part = lambda x: x

    def call(self, x):
        return self.part(self.known(x, x))


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="TensorFlow's"
)
@pytest.mark.parametrize("is_compiled", [True, False])
def test_what_a_compiled_part_may_run_is_named(is_compiled):
    model = PartlyCompiled(is_compiled)
    for layer in (model.hidden, model.dropped):
        layer(X, X)
    model(X)
    model.compile("sgd", "mse")
    model.predict(X, verbose=0)
    maps, why = read(model, X)
    assert list(maps) == ["known"]
    for name in ("hidden", "dropped"):
        said = f"'{name}': 'it was not called, or a compiled function" in why
        assert said == is_compiled
    assert "known" not in why


def after_convolutions(first):
    x = keras.Input((20, D))
    y = layers.MaxPooling1D(2)(layers.Conv1D(D, 3, strides=2)(x))
    y = attention()(y, y)
    scores = layers.Dense(1)(y)
    scores = scores if first else layers.Flatten()(scores)
    weights = layers.Softmax(axis=1)(scores)
    y = layers.Flatten()(layers.Dot(axes=1)([weights, y]))
    return keras.Model(x, layers.Dense(4, activation="softmax")(y))


@pytest.mark.parametrize("first", [True, False])
def test_pooling_of_what_convolutions_shortened_is_named(first):
    maps, why = read(after_convolutions(first), draw(B, 20, D))
    assert maps["known"].shape[-1] == 4
    assert "softmax looks like attention" in why


class Unknown(keras.Model):
    """Beside a known layer, one of no known kind."""

    def __init__(self, call):
        super().__init__()
        self.known = attention()
        self.other = layers.Lambda(lambda inputs: call(*inputs), name="other")

    def call(self, x, y):
        return self.other([self.known(x, x), y])


def over_both(heads, sink):
    def call(x, y):
        keys = ops.concatenate([y, x], axis=1)
        some = ops.einsum("btd,bsd->bts", x, x if sink else keys)
        if sink:
            some = ops.pad(some, [[0, 0], [0, 0], [0, 1]])
        some = ops.softmax(ops.stack([some] * heads, 1) if heads else some)
        some = some[..., :-1] if sink else some
        return ops.matmul(some, (x if sink else keys)[:, None][:, : heads or 1])

    return call


@pytest.mark.parametrize(("heads", "sink"), [(0, False), (2, False), (2, True)])
def test_a_memory_and_a_sink_of_an_unknown_layer_are_named(heads, sink):
    maps, why = read(Unknown(over_both(heads, sink)), X, Y)
    assert list(maps) == ["known"]
    assert "softmax looks like attention" in why


def test_experts_and_classes_within_a_model_are_not_named():
    """Three experts or classes, none of which is a length."""
    x = keras.Input((T, D))
    y = layers.GlobalAveragePooling1D()(attention()(x, x))
    gates = layers.Softmax()(layers.Dense(3)(y))
    experts = [layers.Reshape((1, D))(layers.Dense(D)(y)) for _ in range(3)]
    mixed = layers.Dot(axes=1)([gates, layers.Concatenate(axis=1)(experts)])
    tags = layers.Softmax()(layers.Dense(3)(x))
    y = layers.Concatenate()([mixed, layers.Flatten()(tags)])
    maps, why = read(keras.Model(x, layers.Dense(2)(y)), X)
    assert list(maps) == ["known"] and why == "{}"


def shown_by(weights, **options):
    """The masked arrays `(T, S)` that a grid draws, head by head."""
    figure = plot_attention_grid(weights, **options)
    arrays = [ax.images[0].get_array() for ax in figure.axes if ax.images]
    plt.close("all")
    return arrays[: weights["a"].shape[-3]]


def test_a_mask_of_three_axes_is_a_batch_and_never_heads():
    rng = np.random.default_rng(0)
    weights = {"a": rng.dirichlet(np.ones(5), (3, 3, 5))}
    allowed = np.stack([np.tri(5, k=k, dtype=bool) for k in range(3)])
    for head in shown_by(weights, sample=1, mask=allowed):
        np.testing.assert_array_equal(head.mask, ~allowed[1])
    heads = np.broadcast_to(allowed, (3, 3, 5, 5))
    for h, head in enumerate(shown_by(weights, sample=1, mask=heads)):
        np.testing.assert_array_equal(head.mask, ~allowed[h])
    few = {"a": weights["a"][:, :2]}
    for head in shown_by(few, sample=2, mask={"a": allowed}):
        np.testing.assert_array_equal(head.mask, ~allowed[2])
    words = {"query_tokens": ["a", "b", "c"]}
    for mask in (allowed, allowed[1, :3]):
        for head in shown_by(few, sample=1, mask=mask, **words):
            np.testing.assert_array_equal(head.mask, ~allowed[1, :3])
    with pytest.raises(ValueError, match=r"\(3, 5, 5\).*shape \(2, 5, 5\)"):
        plot_attention_grid(few, mask=allowed[:2])


@pytest.mark.parametrize("show", [plot_attention_grid, view_attention])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tokens": {"typo": ("ab", "ab")}}, "`tokens` names .'typo'."),
        ({"mask": {"typo": np.ones((2, 2))}}, "`mask` names .'typo'."),
        ({"heads": [0, 9]}, r"0 to 2, the heads of .*\[9\]"),
        ({"sample": 7}, "one of the 4 sentences .*Received: 7"),
    ],
)
def test_what_is_not_there_is_told_by_its_name(show, options, said):
    weights = np.ones((4, 3, 2, 2)) / 2
    maps = {"multi_head_attention_2": weights, "decoder/self": weights}
    with pytest.raises(ValueError, match=said):
        show(maps, **options)


def test_a_pattern_names_layers_whose_number_changes():
    weights = np.ones((1, 1, 2, 3)) / 3
    maps = {"multi_head_attention_7": weights, "other": weights}
    pair = (["to", "be"], ["or", "not", "so"])
    figure = plot_attention_grid(maps, tokens={"multi_head_attention*": pair})
    first, second = figure.axes[:2]
    assert [x.get_text() for x in first.get_xticklabels()] == pair[1]
    assert pair[1][0] not in [x.get_text() for x in second.get_xticklabels()]


def leaks_of(maps, *masks, **options):
    """Which layers leak, and on what."""
    leaks = check_attention_masks(maps, *masks, **options)
    return {(leak.layer, leak.kind) for leak in leaks}


def test_a_leak_in_the_rows_at_source_padding_is_found():
    tokens = np.array([[True, True, True, False, False]])
    weights = np.tile([0.5, 0.3, 0.2, 0.0, 0.0], (1, 1, 5, 1))
    weights[0, 0, 4] = [0.4, 0.224, 0.0, 0.376, 0.0]
    (leak,) = check_attention_masks({"cross": weights}, tokens)
    assert leak.mass == pytest.approx(0.376)
    weights[0, 0, 4] = 0.2  # Keras: a row that may see nothing
    assert check_attention_masks({"self": weights}, tokens) == []
    weights[0, 0, 1] = 0.2  # and one that may
    assert check_attention_masks({"self": weights}, tokens)


def test_each_layer_may_have_masks_of_its_own():
    even = np.full((1, 2, 4, 4), 0.25)
    causal = np.tri(4) / np.tri(4).sum(-1, keepdims=True)
    maps = {
        "encoder/0": even,
        "decoder/0": even,
        "decoder/1": causal[None, None],
    }
    found = leaks_of(maps, use_causal_mask={"decoder/*": True})
    assert found == {("decoder/0", "the future")}
    tokens = np.array([[True, True, True, False]])
    assert leaks_of(maps, {"encoder/0": tokens}) == {("encoder/0", "padding")}
    found = leaks_of(maps, window={"decoder/1": (3, 0), "encoder*": (2, 3)})
    assert found == {("encoder/0", "keys outside its window")}


def test_a_window_that_is_one_too_wide_is_found():
    for before in (1, 2):
        allowed = to_numpy(window_mask(7, 7, before, 0)).astype(float)
        maps = {"a": (allowed / allowed.sum(-1, keepdims=True))[None, None]}
        found = check_attention_masks(maps, window=(1, 0))
        assert [leak.mass for leak in found] == [1 / 3] * (before == 2)


def test_what_is_no_mapping_of_maps_is_told():
    with pytest.raises(TypeError, match="`maps` must be a mapping .* ndarray"):
        check_attention_masks(np.ones((1, 1, 2, 2)))
    with pytest.raises(ValueError, match="4 axes"):
        check_attention_masks({"a": np.ones((2, 2))}, use_causal_mask=True)


class Windows(keras.Model):
    """Two windows of each picture are the batch of its attention, as Swin's."""

    def __init__(self):
        super().__init__()
        self.attention = attention()

    def call(self, x):
        windows = ops.reshape(x, (-1, 3, D))
        return ops.reshape(self.attention(windows, windows), (-1, 6, D))


def test_windows_are_counted_by_a_name_of_their_own(tmp_path):
    _, maps = get_attention_weights(Windows(), draw(2, 6, D))
    assert maps["known"].shape == (4, 2, 3, 3)
    for show in (plot_attention_grid, view_attention):
        for options in ({}, {"sample": 1}, {"window": 4}):
            with pytest.raises(ValueError, match="4 for 2 inputs .*0 to 3"):
                show(maps, **options)
    figure = plot_attention_grid(maps.select("known"), window=3)
    drawn = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(drawn, maps["known"][3, 0])
    _, plain = get_attention_weights(attention(), X, X)
    with pytest.raises(ValueError, match="No layer has windows"):
        plot_attention_grid(plain, window=0)


def test_rows_that_do_not_sum_to_one_say_so():
    weights = np.array([[[0.2, 0.3, 0.0], [0.1, 0.4, 0.4], [0.0, 0.0, 0.0]]])
    note = "(rows sum to 0.50 – 0.90)"
    assert plot_attention(weights[0]).get_title() == note
    assert plot_attention_grid(weights).get_suptitle() == note
    assert note in view_attention(weights).to_html().replace("\\u2013", "–")
    for whole in (np.eye(3), np.array([[5.0, 1.0]])):
        assert plot_attention(whole).get_title() == ""
    plt.close("all")
    shares = np.array([[0.4, 0.6, 0.0], [1 / 9, 4 / 9, 4 / 9]])
    for statistic in (attention_entropy, attention_distance):
        np.testing.assert_allclose(
            statistic(weights[0])[:2], statistic([*shares, [0, 0, 0]])[:2]
        )
        assert np.isnan(statistic(weights[0])[2])


def test_the_wrong_kind_of_argument_is_told():
    weights = np.ones((2, 2)) / 2
    with pytest.raises(TypeError, match="plot_attention_grid.*'layer'"):
        plot_attention({"layer": weights})
    with pytest.raises(TypeError, match="query_tokens.*Received: list"):
        plot_attention_grid({"layer": weights[None]}, tokens=["a", "b"])
    with pytest.raises(TypeError, match="a layer of Keras 3.*function"):
        get_attention_weights(lambda x: x, X)


def attention_like(call, **attributes):
    """A layer with "attention" in its name that computes `call(x, …)`."""
    methods = {"call": lambda self, *inputs: call(*inputs), **attributes}
    return type("SomeAttention", (keras.Layer,), methods)(name="some")


def scores(x, y=None):
    return ops.einsum("btd,bsd->bts", x, x if y is None else y) / 4


CAUSAL = np.tri(T, dtype="float32")
PADDED = np.array([[1, 1, 1, 1, 0]] * B, "float32")
Y = draw(B, 7, D)
EACH_STEP = draw(B, T, 7, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: ops.matmul(ops.softmax(scores(x)) * CAUSAL, x),
        lambda x: ops.matmul(ops.softmax(scores(x)) * PADDED[:, None], x),
        lambda x: ops.matmul(ops.softmax(scores(x), axis=1), x),
        lambda x: ops.softmax(scores(x)[..., :2]),
    ],
    ids=["causal after", "padding after", "over queries", "classes"],
)
def test_what_is_no_map_of_the_output_is_not_shown(call):
    maps, why = read(attention_like(call), X)
    assert not maps and "some: " in why


def real(*sentences, batch=B):
    """A mask in which some sentences end with padding."""
    mask = np.ones((batch, T), "float32")
    mask[list(sentences), 3:] = 0
    return mask


def is_some(x):
    """A mask of the positions that are not 0."""
    return ops.cast(ops.any(x != 0, -1), "float32")


def cut_keys(x, mask, shift=0):
    mask = ops.reshape(ops.cast(mask, "float32"), (len(x), -1, T))
    return ops.matmul(ops.softmax(scores(x)) * mask, x + shift)


@pytest.mark.parametrize("sentence", [0, 6])
@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (cut_keys, "float32"),
        (cut_keys, "bool"),
        (lambda x, mask: cut_keys(x, mask[:, None, None]), "float32"),
        (lambda x, mask: ops.sum(cut_keys(x, mask), 1), "float32"),
    ],
    ids=["numbers", "bools", "four axes", "pooled"],
)
def test_padding_of_one_sentence_is_not_cut_in_silence(call, kind, sentence):
    x, mask = draw(7, T, D), real(sentence, batch=7).astype(kind)
    maps, why = read(attention_like(call), x, mask)
    assert not maps and "some: " in why


@pytest.mark.parametrize("sentences", [(0,), (B - 1,), range(B)])
def test_padding_of_zeros_is_not_cut_in_silence(sentences):
    x = X * real(*sentences)[..., None]
    call = attention_like(lambda x: cut_keys(x, is_some(x), 1))
    maps, why = read(call, x)
    assert not maps and "some: " in why
    # A value of 0 counts for nothing, but its key took weight.
    maps, _ = read(
        attention_like(lambda x: ops.matmul(ops.softmax(scores(x)), x)), x
    )
    expected = softmax(to_numpy(scores(x)))
    np.testing.assert_allclose(maps["some"][:, 0], expected, atol=1e-5)


class TwoCalls(keras.Model):
    """The second call has padding, the first has none."""

    def __init__(self):
        super().__init__()
        self.inner = attention_like(cut_keys)

    def call(self, x, mask):
        return self.inner(x, ops.ones_like(mask)) + self.inner(x, mask)


def test_each_call_is_asked_with_its_own_mask():
    maps, why = read(TwoCalls(), X, real(1))
    assert list(maps) == ["some"] and "some of its calls" in why
    expected = softmax(to_numpy(scores(X)))
    np.testing.assert_allclose(maps["some"][:, 0], expected, atol=1e-5)


def cut_queries(x, mask, value):
    return ops.matmul(ops.softmax(scores(x)) * mask[..., None], value)


@pytest.mark.parametrize("sentences", [(0,), (B - 1,), range(B)])
@pytest.mark.parametrize(
    "call",
    [
        cut_queries,
        lambda x, mask, value: x + cut_queries(x, mask, value),
        lambda x, mask, value: cut_queries(x, is_some(x), value),
        lambda x, mask, value: (
            ops.matmul(ops.softmax(scores(x)), value) * mask[..., None]
        ),
    ],
    ids=["weights", "beside a residual", "zeros", "sums"],
)
def test_a_row_that_counts_for_nothing_is_empty(call, sentences):
    mask = real(*sentences)
    x = X * mask[..., None]
    maps, why = read(attention_like(call), x, mask, X)
    expected = softmax(to_numpy(scores(x))) * mask[..., None]
    assert "some" in maps, why
    np.testing.assert_allclose(maps["some"][:, 0], expected, atol=1e-5)


def test_a_row_that_the_layer_gives_is_shown():
    def with_weights(x, mask):
        weights = ops.softmax(scores(x))
        return ops.matmul(weights, x) * mask[..., None], weights

    maps, _ = read(attention_like(with_weights), X, real(1))
    expected = softmax(to_numpy(scores(X)))
    np.testing.assert_allclose(maps["some"][:, 0], expected, atol=1e-5)


def test_the_gradient_of_an_empty_row_is_zero():
    mask = real(1)
    _, maps, gradients = get_attention_gradients(
        attention_like(cut_queries),
        X,
        mask,
        X,
        chosen_output=lambda y: ops.sum(y, (1, 2)),
    )
    np.testing.assert_array_equal(maps["some"][1, :, 3:], 0)
    expected = (X.sum(-1)[:, None] * mask[..., None])[:, None]
    np.testing.assert_allclose(gradients["some"], expected, atol=1e-5)


def test_pooling_of_each_feature_has_no_queries():
    def pool(x):
        return ops.sum(ops.softmax(2 * ops.tanh(x), axis=1) * x, axis=1)

    maps, why = read(attention_like(pool), draw(B, D, D))
    assert not maps and "some: " in why


def test_attention_whose_output_has_no_rows_is_read():
    def pool(x):
        return ops.mean(ops.matmul(ops.softmax(scores(x)), x), axis=1)

    maps, why = read(attention_like(pool), X)
    assert maps["some"].shape == (B, 1, T, T), why


def over_time(query, values):
    """Additive attention of all steps at once: a softmax over axis 2."""
    weights = ops.softmax(
        ops.sum(ops.tanh(query[:, :, None] + values[:, None]), -1, True), axis=2
    )
    return ops.sum(weights * values[:, None], axis=2)


def heads_last(query, values):
    q, v = (ops.reshape(x, (B, -1, 2, D // 2)) for x in (query, values))
    weights = ops.softmax(ops.einsum("bqhd,bkhd->bqhk", q, v))
    return ops.einsum("bqhk,bkhd->bqhd", weights, v)


@pytest.mark.parametrize(
    ("call", "num_heads"), [(over_time, 1), (heads_last, 2)]
)
def test_queries_need_not_stand_beside_keys(call, num_heads):
    maps, why = read(attention_like(call), X, Y)
    assert maps["some"].shape == (B, num_heads, T, 7), why
    if num_heads == 2:
        q, v = (x.reshape(B, -1, 2, D // 2) for x in (X, Y))
        expected = softmax(np.einsum("bqhd,bkhd->bhqk", q, v))
    else:
        expected = softmax(np.tanh(X[:, :, None] + Y[:, None]).sum(-1))[:, None]
    np.testing.assert_allclose(maps["some"], expected, atol=1e-5)


def test_heads_of_equal_sentences_are_told_from_sentences():
    x = np.repeat(X[:1], 2, axis=0)
    maps, _ = read(StackedAttention(name="stacked"), x)
    heads = x.reshape(2, T, H, D // H)
    expected = softmax(np.einsum("bthk,bshk->bhts", heads, heads))
    np.testing.assert_allclose(maps["stacked"], expected, atol=1e-5)


def test_a_key_that_the_layer_adds_is_no_sink():
    def with_class_token(x):
        x = ops.concatenate([ops.ones_like(x[:, :1]), x], axis=1)
        return ops.matmul(ops.softmax(scores(x)), x)

    maps, why = read(attention_like(with_class_token), X)
    assert not maps and "some: " in why


def test_heads_in_the_batch_of_a_bias_are_no_sentences():
    def biased(x, bias):
        heads = ops.reshape(x, (B, T, 2, D // 2))
        heads = ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (2 * B, T, -1))
        return ops.matmul(ops.softmax(scores(heads) + bias), heads)

    bias = draw(2 * B, 1, T)
    maps, _ = read(attention_like(biased), X, bias)
    heads = X.reshape(B, T, 2, D // 2)
    expected = np.einsum("bthk,bshk->bhts", heads, heads) / 4
    expected = softmax(expected + bias.reshape(B, 2, 1, T))
    np.testing.assert_allclose(maps["some"], expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["int32", "bool", "float32"])
def test_a_mask_of_any_type_is_no_sequence_of_ids(kind):
    def masked(x, tokens):
        low = -1e9 * (1.0 - ops.cast(tokens, "float32"))[:, None]
        return ops.matmul(ops.softmax(scores(x) + low), x)

    maps, why = read(attention_like(masked), X, PADDED.astype(kind))
    assert maps["some"].shape == (B, 1, T, T), why
    assert maps["some"][..., -1].max() < 1e-6


class LeavesTraces(keras.Layer):
    """Dropout, moving means, a loss and an attribute, in one attention."""

    def __init__(self):
        super().__init__(name="traces")
        self.dropout = layers.Dropout(0.5, seed=1)
        self.norm = layers.BatchNormalization()

    def build(self, shape):
        self.norm.build(shape)

    def call(self, x, training=False):
        weights = ops.softmax(scores(x))
        self.last = weights
        self.add_loss(ops.mean(weights))
        weights = self.dropout(weights, training=training)
        return self.norm(ops.matmul(weights, x), training=training)


LeavesTraces.__name__ = "TraceAttention"


@pytest.mark.parametrize("training", [False, True])
def test_a_layer_is_left_as_one_call_leaves_it(training):
    plain, asked = LeavesTraces(), LeavesTraces()
    for layer in (plain, asked):
        layer(X)
    expected = to_numpy(plain(X, training=training))
    found, maps, _ = _capture(asked, (X,), {"training": training}, None)
    # While it trains, the mean of the batch ties the sentences together.
    assert list(maps) == ([] if training else ["traces"])
    np.testing.assert_array_equal(to_numpy(found), expected)
    assert len(asked.losses) == len(plain.losses)
    np.testing.assert_array_equal(to_numpy(asked.last), to_numpy(plain.last))
    for a, b in zip(asked.variables, plain.variables, strict=True):
        np.testing.assert_array_equal(to_numpy(a), to_numpy(b))
    np.testing.assert_array_equal(
        to_numpy(asked(X, training=True)), to_numpy(plain(X, training=True))
    )


class TwoSoftmaxesAttention(keras.Layer):
    """Features attend to features first, positions to positions then."""

    def call(self, x):
        heads = ops.reshape(x, (B, T, 2, D // 2))
        mixed = ops.softmax(ops.einsum("bthk,bthl->bhkl", heads, heads))
        x = x + 0.0 * ops.sum(mixed)
        return ops.matmul(ops.softmax(scores(x)), x)


def test_a_softmax_that_is_no_map_hides_no_other():
    maps, why = read(TwoSoftmaxesAttention(name="two"), X)
    assert list(maps) == ["two"] and why == "{}"
    np.testing.assert_allclose(
        maps["two"][:, 0], softmax(to_numpy(scores(X))), atol=1e-5
    )


class Twice(keras.Model):
    """One layer reads a batch, and then its first sentence alone."""

    def __init__(self):
        super().__init__()
        self.inner = StackedAttention(name="inner")

    def call(self, x):
        return self.inner(x) + self.inner(x[:1])


def test_each_call_of_a_layer_is_read_by_its_own_shapes():
    maps, why = read(Twice(), X)
    assert maps["inner"].shape == (B, H, T, T), why
    assert maps["inner#2"].shape == (1, H, T, T), why
    np.testing.assert_allclose(maps["inner#2"], maps["inner"][:1], atol=1e-5)


@pytest.mark.parametrize("kind", ["stacked", "sink first", "sink last"])
def test_gradients_have_the_axes_of_their_maps(kind):
    layer, heads = StackedAttention(name="a"), X.reshape(B, T, H, D // H)
    if kind != "stacked":
        layer, heads = (
            SinkAttention(kind == "sink first", name="a"),
            X[:, :, None],
        )
    _, maps, gradients = get_attention_gradients(
        layer, X, chosen_output=lambda y: ops.sum(y, (1, 2))
    )
    # The sum of the output grows by the sum of the value.
    expected = np.broadcast_to(
        heads.sum(-1).transpose(0, 2, 1)[:, :, None], maps["a"].shape
    )
    np.testing.assert_allclose(gradients["a"], expected, atol=1e-5)


def test_a_name_goes_before_a_pattern_and_no_map_is_no_fault():
    even = np.full((1, 1, 4, 4), 0.25)
    maps = {"decoder/0": even, "decoder/[1]": even}
    found = leaks_of(maps, window={"*": (0, 0), "decoder/0": (3, 3)})
    assert {layer for layer, _ in found} == {"decoder/[1]"}
    found = leaks_of(maps, window={"decoder/[1]": (0, 0)})
    assert {layer for layer, _ in found} == {"decoder/[1]"}
    assert check_attention_masks({}, use_causal_mask=True) == []


def test_weights_of_both_signs_say_so_and_rounding_does_not():
    weights = np.array([[[0.7, -0.2], [0.4, 0.3]]])
    note = "(signed; rows sum to 0.50 – 0.70)"
    assert plot_attention(weights[0]).get_title() == note
    assert plot_attention_grid(weights).get_suptitle() == note
    weights = np.array([[[0.7, -1e-7], [0.4, 0.3]]])
    assert plot_attention_grid(weights).get_suptitle() == ""
    plt.close("all")


def test_weights_of_another_path_than_the_outputs_are_not_shown():
    """As in a nightly of Keras, whose fused path alone was causal."""

    class TwoPaths(keras.layers.MultiHeadAttention):
        def _compute_attention(
            self,
            query,
            key,
            value,
            attention_mask=None,
            training=None,
            return_attention_scores=False,
        ):
            output, weights = super()._compute_attention(
                query,
                key,
                value,
                attention_mask,
                training,
                return_attention_scores,
            )
            return (2 * output if weights is None else output), weights

    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32") / 50
    layer = TwoPaths(2, 4, name="attention")
    layer(x, x)
    if (
        layer._compute_attention(*[np.ones((1, 2, 2, 4), "float32")] * 3)[1]
        is not None
    ):
        pytest.skip("this Keras has no fused operation on this machine")
    with pytest.raises(ValueError, match="give different outputs"):
        get_attention_weights(layer, x, x)


def test_infinity_is_not_shown_as_a_cell_that_may_not_be_seen():
    weights = np.array([[[[0.5, np.inf]]]])
    shown = (
        lambda: plot_attention_grid(weights),
        lambda: view_attention(weights),
        lambda: plot_attention(weights[0, 0]),
        lambda: show_heatmaps(weights, "keys", "queries"),
        lambda: animate_attention(weights[0]),
        lambda: attention_entropy(weights),
        lambda: attention_entropy(-weights),
    )
    for show in shown:
        with pytest.raises(ValueError, match="weights must be finite"):
            show()
    scores = plot_attention([[0.5, -np.inf]]).images[0].get_array()
    assert scores.mask.tolist() == [[False, True]]
    plt.close("all")
