"""Pointers: by hand, masked, equivariant, of any length."""

from contract import compile_for_training, draw, to_numpy
from d2l_attention import PointerNetwork
import keras
import numpy as np
import pytest

ITEMS = draw(3, 6, 2)
PLACES = np.array([[1, 0, 5, 3], [2, 3, 4, 0], [5, 4, 3, 2]], "int32")
INPUTS = {"items": ITEMS, "places": PLACES}


def make(**options):
    keras.utils.set_random_seed(0)
    model = PointerNetwork(8, **options)
    model.build({"items": (None, None, 2), "places": (None, None)})
    return model


def test_it_equals_the_equations_in_numpy():
    model = make()
    found = to_numpy(model(INPUTS))
    w1, b1, w2, b2 = (
        x.astype("float64")
        for layer in (model.hidden, model.embed)
        for x in layer.get_weights()
    )
    w0, b0 = model.start_layer.get_weights()
    w_q, w_k, v = (to_numpy(x) for x in model.attention.weights)
    for items, places, log_p in zip(ITEMS, PLACES, found, strict=True):
        e = np.tanh(items @ w1 + b1) @ w2 + b2
        d, fed = np.tanh(e.mean(0) @ w0 + b0), to_numpy(model.first)
        chosen = []
        for place, row in zip(places, log_p, strict=True):
            inputs = (x[None].astype("float32") for x in (fed, d))
            d = to_numpy(model.cell(next(inputs), [next(inputs)])[0])[0]
            u = np.tanh(d @ w_q + e @ w_k) @ v
            u[chosen] = -np.inf
            expected = u - np.log(np.exp(u).sum())
            free = np.isfinite(u)
            np.testing.assert_allclose(row[free], expected[free], atol=2e-6)
            assert (row[~free] == -1e9).all()
            chosen.append(place)
            fed = e[place]


@pytest.mark.every_backend
def test_decoding_is_the_likeliest_item_each_time():
    model = make()
    model.first.assign(9 * draw(*model.first.shape))  # what is read at first
    places = to_numpy(model.decode(ITEMS))
    assert [sorted(row) for row in places] == [list(range(6))] * 3
    log_p = to_numpy(model({"items": ITEMS, "places": places}))
    np.testing.assert_array_equal(log_p.argmax(-1), places)
    short = to_numpy(model.decode(ITEMS, length=2))
    np.testing.assert_array_equal(short, places[:, :2])


def test_decoding_builds_a_fresh_model():
    assert to_numpy(PointerNetwork(8).decode(ITEMS)).shape == (3, 6)


def test_permuting_the_items_permutes_the_pointers():
    model = make()
    order = np.random.default_rng(0).permutation(6)
    places = to_numpy(model.decode(ITEMS))
    permuted = to_numpy(model.decode(ITEMS[:, order]))
    np.testing.assert_array_equal(order[permuted], places)


def test_the_pointed_item_is_fed_back_and_nothing_of_the_future():
    model = make()
    before = to_numpy(model(INPUTS))
    changed = PLACES.copy()
    changed[:, 1] = [2, 5, 0]
    after = to_numpy(model({"items": ITEMS, "places": changed}))
    np.testing.assert_array_equal(before[:, :2], after[:, :2])
    free = (before[:, 2] > -1e8) & (after[:, 2] > -1e8)
    assert np.abs(before[:, 2] - after[:, 2])[free].max() > 1e-4


def test_padding_is_never_chosen_and_moves_nothing():
    model = make()
    padded = np.concatenate([ITEMS, np.full((3, 2, 2), np.nan)], axis=1)
    found = to_numpy(model({"items": padded, "places": PLACES}))
    np.testing.assert_allclose(found[..., :6], model(INPUTS), atol=1e-5)
    assert (found[..., 6:] == -1e9).all()
    np.testing.assert_array_equal(
        to_numpy(model.decode(padded, length=6)), to_numpy(model.decode(ITEMS))
    )


def test_it_trains_compiled_on_other_lengths_and_is_saved(tmp_path):
    model = make()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    compile_for_training(model, "adam", loss)
    before = model.get_weights()
    model.fit(INPUTS, PLACES, verbose=0)
    assert all(
        np.abs(a - b).max() > 0
        for a, b in zip(before, model.get_weights(), strict=True)
    )
    assert np.isfinite(model.evaluate(INPUTS, PLACES, verbose=0))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        to_numpy(model(INPUTS)), to_numpy(again(INPUTS))
    )
    assert to_numpy(again.decode(draw(1, 15, 2))).shape == (1, 15)
    with pytest.raises(ValueError, match="dim.*0"):
        PointerNetwork(0)
