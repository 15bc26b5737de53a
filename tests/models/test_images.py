"""The vision Transformer, and two encoders that learn from pairs."""

from contract import draw, to_numpy
from d2l_attention import ContrastivePair, VisionTransformer, contrastive_loss
from d2l_attention.heatmaps import get_attention_weights
import keras
import numpy as np
import pytest


def small(**options):
    return VisionTransformer(3, 2, 8, 2, num_heads=2, **options)


@pytest.mark.every_backend
def test_cls_answers_from_the_patches_and_their_places():
    model, images = small(), draw(5, 6, 4, 3)
    logits, maps = model(images, return_attention_scores=True)
    assert tuple(logits.shape) == (5, 3)
    assert list(maps) == ["block_0/self_attention", "block_1/self_attention"]
    weights = to_numpy(maps["block_1/self_attention"])
    assert weights.shape == (5, 2, 7, 7)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    np.testing.assert_array_equal(to_numpy(model(images)), to_numpy(logits))
    # By hand, from its parts; token 0 is [CLS].
    x = to_numpy(model.embedding(images))
    cls = np.broadcast_to(to_numpy(model.cls), (5, 1, 8))
    x = np.concatenate([cls, x], axis=1) + to_numpy(model.positions.table)
    expected = model.output_layer(model.encoder(x)[:, 0])
    np.testing.assert_allclose(to_numpy(logits), to_numpy(expected), atol=1e-5)


def test_without_positions_a_shuffled_picture_is_the_same():
    model, images = small(), draw(2, 4, 4, 3)
    turned = np.concatenate([images[:, 2:], images[:, :2]], axis=1)
    model(images)
    model.positions.table.assign(10 * draw(5, 8))
    moved = np.abs(to_numpy(model(images)) - to_numpy(model(turned))).max()
    model.positions.table.assign(np.zeros((5, 8)))
    np.testing.assert_allclose(
        to_numpy(model(images)), to_numpy(model(turned)), atol=1e-5
    )
    assert moved > 1e-3


def test_another_size_of_pictures_is_refused_with_both():
    model = small()
    with pytest.raises(ValueError, match="size of a picture must be known"):
        small()(keras.Input((None, None, 3)))
    model(draw(1, 6, 4, 3))
    with pytest.raises(ValueError, match=r"6 × 4 pixels.*\(1, 4, 6, 3\)"):
        model(draw(1, 4, 6, 3))
    with pytest.raises(ValueError, match="does not divide its height of 5"):
        small()(draw(1, 5, 4, 3))


def test_weights_of_as_many_patches_in_other_places_are_refused(tmp_path):
    """And positions that rise from row to row rise in another size, too."""
    wide, square = (small() for _ in range(2))
    wide.build((None, 4, 16, 3))
    square.build((None, 8, 8, 3))
    wide.save_weights(tmp_path / "wide.weights.h5")
    with pytest.raises(ValueError, match=r"4 × 16.*8 × 8.*\.resized\(\(8,"):
        square.load_weights(tmp_path / "wide.weights.h5")
    rows = np.repeat(np.arange(2.0), 8)[:, None] * np.ones(wide.dim)
    wide.positions.table.assign(np.concatenate([rows[:1] + 5, rows]))
    found = wide.resized((8, 8))
    table = to_numpy(found.positions.table)
    assert table[0, 0] == 5
    expected = np.repeat([0, 0.25, 0.75, 1], 4)  # between the rows 0 and 1
    np.testing.assert_allclose(table[1:, 0], expected, atol=1e-6)
    with pytest.raises(ValueError, match="not built"):
        small().resized((8, 8))
    images = draw(2, 4, 16, 3)
    np.testing.assert_array_equal(
        to_numpy(wide.resized((4, 16))(images)), to_numpy(wide(images))
    )


def test_a_vision_transformer_comes_back_from_a_file(tmp_path):
    model, images = small(dropout=0.1), draw(3, 6, 4, 3)
    expected = to_numpy(model(images))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(to_numpy(again(images)), expected, atol=1e-6)
    assert again.get_config() == model.get_config()


def test_its_maps_are_captured_as_it_gives_them():
    model, images = small(), draw(3, 6, 4, 3)
    _, maps = model(images, return_attention_scores=True)
    _, captured = get_attention_weights(model, images)
    assert len(captured) == 2
    for found, expected in zip(captured.values(), maps.values(), strict=True):
        np.testing.assert_allclose(found, to_numpy(expected), atol=1e-6)


def pair(image_encoder=None):
    if image_encoder is None:  # quicker than a Transformer
        image_encoder = keras.Sequential(
            [keras.layers.Flatten(), keras.layers.Dense(7)]
        )
    text_encoder = keras.layers.Dense(4, name="text")
    return ContrastivePair(image_encoder, text_encoder, dim=5)


INPUTS = {"image": draw(7, 6, 4, 3), "text": draw(7, 11)}


@pytest.mark.every_backend
def test_a_pair_trains_without_labels_and_evaluates_to_its_loss():
    keras.utils.set_random_seed(0)
    model = pair()
    model.compile(keras.optimizers.Adam(0.03), jit_compile=False)
    history = model.fit(INPUTS, epochs=20, verbose=0).history["loss"]
    assert history[-1] < history[0] - 0.5
    assert float(to_numpy(model.log_scale)) != pytest.approx(np.log(1 / 0.07))
    found = model(INPUTS)
    for vectors in found.values():
        lengths = np.linalg.norm(to_numpy(vectors), axis=1)
        np.testing.assert_allclose(lengths, 1, atol=1e-5)
    scale = float(to_numpy(model.scale()))
    expected = contrastive_loss(found["image"], found["text"], scale)
    np.testing.assert_allclose(
        model.evaluate(INPUTS, verbose=0), to_numpy(expected), atol=1e-4
    )
    for name, encode in (
        ("image", model.encode_image),
        ("text", model.encode_text),
    ):
        np.testing.assert_allclose(
            to_numpy(encode(INPUTS[name])), to_numpy(found[name]), atol=1e-6
        )


def test_the_losses_of_the_encoders_count():
    heavy = keras.layers.Dense(7, kernel_regularizer="l2")
    model = pair(keras.Sequential([keras.layers.Flatten(), heavy]))
    model.compile("sgd", jit_compile=False)
    found = model.evaluate(INPUTS, verbose=0)
    vectors, scale = model(INPUTS), model.scale()
    of_pairs = contrastive_loss(vectors["image"], vectors["text"], scale)
    own = 0.01 * np.square(to_numpy(heavy.kernel)).sum()
    assert own > 0.01
    np.testing.assert_allclose(found, to_numpy(of_pairs) + own, rtol=1e-5)


def test_the_scale_is_at_most_100_and_can_fall_again():
    model = pair()
    model.compile(keras.optimizers.SGD(1e-5), jit_compile=False)
    model.build({name: x.shape for name, x in INPUTS.items()})
    model.log_scale.assign(7.0)
    scales = []
    for _ in range(2):
        model.fit(INPUTS, verbose=0)
        scales.append(float(to_numpy(model.scale())))
    np.testing.assert_allclose(scales[0], 100, rtol=1e-5)
    assert 90 < scales[1] < 99.999  # wrong pairs win, so it falls


def test_a_pair_comes_back_from_a_file(tmp_path):
    model = pair(small())
    expected = model.predict(INPUTS, verbose=0)
    model.save(tmp_path / "pair.keras")
    again = keras.models.load_model(tmp_path / "pair.keras")
    found = again.predict(INPUTS, verbose=0)
    for name in ("image", "text"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_bfloat16"])
def test_a_pair_trains_in_half_precision(dtype):
    encoders = (keras.layers.Dense(4, dtype=dtype) for _ in range(2))
    model = ContrastivePair(*encoders, dim=5, dtype=dtype)
    model.compile(keras.optimizers.SGD(0.01), jit_compile=False)
    inputs = {"image": draw(7, 3), "text": draw(7, 11)}
    history = model.fit(inputs, verbose=0).history["loss"]
    assert np.isfinite(history).all()


def test_weights_of_pairs_are_refused():
    model = pair()
    model.compile("sgd", jit_compile=False)
    with pytest.raises(ValueError, match="no `sample_weight`"):
        model.fit(INPUTS, np.zeros(7), sample_weight=np.ones(7), verbose=0)


def test_inputs_other_than_a_dict_are_refused():
    with pytest.raises(ValueError, match="dict of 'image' and 'text'"):
        pair()(INPUTS["image"])
