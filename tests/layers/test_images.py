"""Patches, learned queries and the contrastive loss, by loops over NumPy."""

from contract import draw, to_numpy
from d2l_attention import (
    LearnedQueryAttention,
    MultiHeadAttention,
    PatchEmbedding,
    contrastive_loss,
    patches,
)
from d2l_attention.layers.images import unit
import keras
from keras import ops
import numpy as np
import pytest


def test_a_patch_has_its_pixels_row_by_row_and_so_have_the_patches():
    images = draw(2, 6, 10, 3)
    found = to_numpy(patches(images, 2))
    assert found.shape == (2, 15, 12)
    n = 0
    for row in range(3):
        for column in range(5):
            square = images[
                :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2
            ]
            np.testing.assert_array_equal(found[:, n], square.reshape(2, 12))
            n += 1


@pytest.mark.every_backend
def test_embedded_patches_are_a_convolution_with_the_stride_of_a_patch():
    images = draw(2, 6, 9, 3)
    layer = PatchEmbedding(3, 5)
    tokens = to_numpy(layer(images))
    layer.dense.bias.assign(draw(5))
    convolution = keras.layers.Conv2D(5, 3, strides=3)
    convolution.build(images.shape)
    kernel = ops.reshape(layer.dense.kernel, (3, 3, 3, 5))
    convolution.kernel.assign(kernel)
    convolution.bias.assign(layer.dense.bias)
    expected = to_numpy(convolution(images)).reshape(2, 6, 5)
    np.testing.assert_allclose(to_numpy(layer(images)), expected, atol=1e-5)
    assert np.abs(tokens - expected).max() > 0.1  # the bias counts


@pytest.mark.parametrize("shape", [(2, 6, 8, 3), (2, 8, 6, 3)])
def test_patches_that_do_not_fill_the_picture_are_told_with_both_numbers(shape):
    name = "width" if shape[1] == 6 else "height"
    message = rf"3 does not divide its {name} of 8\..*\(2, {shape[1]}"
    for tensor in (np.ones(shape), keras.KerasTensor(shape)):
        with pytest.raises(ValueError, match=message):
            PatchEmbedding(3, 5)(tensor)
    with pytest.raises(ValueError, match=message):
        patches(np.ones(shape), 3)


def test_a_picture_needs_an_axis_of_channels():
    with pytest.raises(ValueError, match=r"four axes.*\(2, 6, 6\)"):
        patches(np.ones((2, 6, 6)), 3)


def test_pictures_of_unknown_size_are_cut():
    inputs = keras.Input((None, None, 3))
    model = keras.Model(inputs, PatchEmbedding(2, 5)(inputs))
    assert model.output_shape == (None, None, 5)
    assert tuple(model(draw(3, 4, 6, 3)).shape) == (3, 6, 5)


def test_pictures_of_unknown_size_are_not_mixed_where_no_patch_fits():
    """Two of 4 × 6 have the pixels of three patches of 4 × 4."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("only its graphs have sizes that are known as they run")
    import tensorflow as tf

    inputs = keras.Input((None, None, 3))
    model = keras.Model(inputs, PatchEmbedding(4, 5)(inputs))
    graph = tf.function(
        model, input_signature=[tf.TensorSpec((None,) * 3 + (3,))]
    )
    assert tuple(graph(draw(2, 4, 8, 3)).shape) == (2, 2, 5)
    with pytest.raises(Exception, match="(?i)reshape"):
        graph(draw(2, 4, 6, 3))


def built(**options):
    layer = LearnedQueryAttention(3, 2, 5, **options)
    layer.build((None, None, 7))
    return layer


@pytest.mark.every_backend
def test_learned_queries_are_multi_head_attention_of_these_queries():
    """With padding, which is read by none; weights and output."""
    layer, x = built(value_dim=11, output_dim=13, use_bias=True), draw(2, 17, 7)
    theirs = MultiHeadAttention(
        2, 5, value_dim=11, output_dim=13, use_bias=True
    )
    queries = np.broadcast_to(to_numpy(layer.queries), (2, 3, 7))
    mask = np.arange(17) < np.array([[17], [4]])
    theirs(queries, x)
    for part in ("query", "key", "value", "output"):
        ours = getattr(layer, f"{part}_layer")
        ours.bias.assign(draw(*ours.bias.shape))
        getattr(theirs, f"{part}_layer").set_weights(ours.get_weights())
    found = layer(x, mask=mask, return_attention_scores=True)
    expected = theirs(queries, x, key_mask=mask, return_attention_scores=True)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), atol=1e-5)
    assert tuple(found[1].shape) == (2, 2, 3, 17)


def test_a_query_of_zeros_reads_the_mean():
    layer, x = built(), draw(2, 11, 7)
    layer.queries.assign(np.zeros((3, 7)))
    output, weights = layer(x, return_attention_scores=True)
    np.testing.assert_allclose(to_numpy(weights), 1 / 11, atol=1e-7)
    mean = layer(x.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(to_numpy(output), to_numpy(mean), atol=1e-6)


def test_neither_order_nor_a_doubled_set_changes_what_is_read():
    layer, x = built(), draw(2, 11, 7)
    expected = to_numpy(layer(x))
    order = np.random.default_rng(0).permutation(11)
    for other in (x[:, order], np.concatenate([x, x], axis=1)):
        np.testing.assert_allclose(to_numpy(layer(other)), expected, atol=1e-6)
    more = np.concatenate([x, x[:, :3]], axis=1)  # another share does
    assert np.abs(to_numpy(layer(more)) - expected).max() > 1e-3


def test_padding_is_as_if_it_were_not_there_and_an_empty_set_gives_zeros():
    layer, x = built(), draw(2, 11, 7)
    mask = np.arange(11) < np.array([[5], [0]])
    output, weights = layer(x, mask=mask, return_attention_scores=True)
    alone = layer(x[:1, :5])
    np.testing.assert_allclose(
        to_numpy(output)[0], to_numpy(alone)[0], atol=1e-6
    )
    assert (to_numpy(weights)[0, ..., 5:] == 0).all()
    assert (to_numpy(weights)[1] == 0).all()
    assert (to_numpy(output)[1] == 0).all()


def test_every_weight_of_learned_queries_learns():
    layer, x = built(dropout=0.1), draw(5, 11, 7)
    model = keras.Sequential([layer])
    model.compile("sgd", "mse")
    before = [to_numpy(w).copy() for w in layer.weights]
    model.fit(x, np.ones((5, 3, 7)), verbose=0)
    assert len(layer.trainable_variables) == 5
    for old, new in zip(before, layer.weights, strict=True):
        if old.dtype.kind == "f":  # and not a seed of dropout
            assert np.abs(old - to_numpy(new)).max() > 0


def loss_by_loops(u, v, scale):
    total = 0
    for i in range(len(u)):
        cosines = [
            [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in v]
            for a in u
        ]
        z = scale * np.array(cosines)
        total -= np.log(np.exp(z[i, i]) / np.exp(z[i]).sum())
        total -= np.log(np.exp(z[i, i]) / np.exp(z[:, i]).sum())
    return total / (2 * len(u))


@pytest.mark.every_backend
def test_the_contrastive_loss_asks_rows_and_columns():
    u, v = draw(5, 3, seed=1), draw(5, 3, seed=2)
    found = to_numpy(contrastive_loss(u, v, 3.0))
    np.testing.assert_allclose(found, loss_by_loops(u, v, 3.0), rtol=1e-5)
    # Many pairs that are alike: half of the loss is only in the columns.
    v[:] = v[0]
    found = to_numpy(contrastive_loss(u, v, 3.0))
    np.testing.assert_allclose(found, loss_by_loops(u, v, 3.0), rtol=1e-5)


def test_the_loss_of_equal_vectors_is_ln_b_and_of_a_simplex_the_floor():
    simplex = np.eye(8) - 1 / 8
    for scale in (1.0, 10.0):
        floor = np.log(1 + 7 * np.exp(-scale * 8 / 7))
        found = float(to_numpy(contrastive_loss(simplex, simplex, scale)))
        np.testing.assert_allclose(found, floor, atol=1e-5)
        alike = float(
            to_numpy(contrastive_loss(np.ones((8, 3)), np.ones((8, 3)), scale))
        )
        np.testing.assert_allclose(alike, np.log(8), atol=1e-5)
    assert round(float(np.log(1 + 7 * np.exp(-8 / 7))), 5) == 1.17321


def test_a_large_scale_and_half_precision_do_no_harm():
    u = draw(7, 5)
    near = to_numpy(contrastive_loss(u, u + 0.1, 100.0))
    half = to_numpy(contrastive_loss(u.astype("float16"), u + 0.1, 100.0))
    np.testing.assert_allclose(half, near, atol=0.02)
    zero = to_numpy(contrastive_loss(np.zeros((3, 2)), np.zeros((3, 2)), 1.0))
    np.testing.assert_allclose(zero, np.log(3), atol=1e-6)


def test_a_long_vector_has_length_1_in_float16_too():
    """The square of 256 is more than float16 holds."""
    u = draw(5, 3)
    u *= 400 / np.linalg.norm(u, axis=-1, keepdims=True)
    found = to_numpy(unit(u.astype("float16")))
    np.testing.assert_allclose(found, u / 400, atol=1e-3)


def test_pictures_without_a_text_are_told():
    with pytest.raises(ValueError, match=r"\(3, 2\).*\(4, 2\)"):
        contrastive_loss(np.ones((3, 2)), np.ones((4, 2)), 1.0)
    with pytest.raises(ValueError, match=r"\(3,\).*\(3,\)"):
        contrastive_loss(np.ones(3), np.ones(3), 1.0)
    # Lists are taken, and sizes that only one of the two knows.
    found = contrastive_loss([[1.0, 0.0]] * 3, [[1.0, 0.0]] * 3, 1.0)
    np.testing.assert_allclose(to_numpy(found), np.log(3), atol=1e-6)
    sides = keras.Input((2,), batch_size=3), keras.Input((2,))
    layer = keras.layers.Lambda(lambda x: contrastive_loss(*x, 1.0))
    assert layer(sides).shape == ()
