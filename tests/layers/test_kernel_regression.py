from contract import attention_inputs, check_layer, draw, to_numpy
from d2l_attention import NWKernelRegression, masked_softmax, nadaraya_watson
from d2l_attention.layers.scoring import gaussian_scores
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

QUERY, KEY, VALUE = draw(2, 3, 5), draw(2, 7, 5), draw(2, 7, 1)


def by_hand(query, key, value, width):
    """Watson's formula, one query at a time, in float64."""
    output = np.zeros((*query.shape[:2], value.shape[-1]))
    for b, t in np.ndindex(query.shape[:2]):
        distance = ((query[b, t] - key[b]).astype("float64") ** 2).sum(-1)
        kernel = np.exp(-distance / (2 * width**2))
        output[b, t] = kernel @ value[b] / kernel.sum()
    return output


@pytest.mark.parametrize("width", [0.5, 1.0, 3.0])
def test_it_is_watson_s_weighted_mean(width):
    np.testing.assert_allclose(
        to_numpy(nadaraya_watson(QUERY, KEY, VALUE, width)),
        by_hand(QUERY, KEY, VALUE, width),
        atol=1e-5,
    )


def test_it_is_attention_with_gaussian_scores():
    _, weights = nadaraya_watson(
        QUERY, KEY, VALUE, return_attention_scores=True
    )
    np.testing.assert_allclose(
        to_numpy(weights),
        to_numpy(masked_softmax(gaussian_scores(QUERY, KEY))),
        atol=1e-6,
    )


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")  # not ours
def test_it_equals_statsmodels():
    statsmodels = pytest.importorskip("statsmodels.nonparametric.api")
    x, y = draw(17), draw(17, seed=2)
    width, grid = 0.7, np.linspace(-1, 1, 11)
    model = statsmodels.KernelReg(y, x, "c", reg_type="lc", bw=[width])
    ours = nadaraya_watson(
        grid[None, :, None].astype("float32"),
        x[None, :, None],
        y[None, :, None],
        width,
    )
    np.testing.assert_allclose(
        to_numpy(ours)[0, :, 0], model.fit(grid)[0], atol=1e-4
    )


def test_a_point_far_from_every_key_still_has_a_mean():
    output = nadaraya_watson(QUERY + 1e3, KEY, VALUE, 0.1)
    assert np.isfinite(to_numpy(output)).all()


@settings(deadline=None, max_examples=25)
@given(st.floats(0.1, 10), st.integers(0, 1000))
def test_a_mean_lies_between_its_values(width, seed):
    value = draw(2, 7, 1, seed=seed)
    output = to_numpy(nadaraya_watson(QUERY, KEY, value, width))
    assert (output <= value.max(1, keepdims=True) + 1e-5).all()
    assert (output >= value.min(1, keepdims=True) - 1e-5).all()


def test_the_layer_has_the_inverse_width():
    layer = NWKernelRegression()
    layer(QUERY, key=KEY, value=VALUE)
    layer.factor.assign(1 / 0.7)
    np.testing.assert_allclose(
        to_numpy(layer(QUERY, key=KEY, value=VALUE)),
        to_numpy(nadaraya_watson(QUERY, KEY, VALUE, 0.7)),
        atol=1e-5,
    )


def test_leaving_a_point_out_is_removing_it():
    x, y = draw(1, 7, 1), draw(1, 7, 1, seed=1)
    left_out = to_numpy(
        nadaraya_watson(x, x, y, attention_mask=~np.eye(7, dtype=bool))
    )
    for i in range(7):
        rest = np.delete(np.arange(7), i)
        alone = nadaraya_watson(x[:, i : i + 1], x[:, rest], y[:, rest])
        np.testing.assert_allclose(
            left_out[0, i], to_numpy(alone)[0, 0], atol=1e-5
        )


@pytest.mark.every_backend
def test_the_contract_holds():
    check_layer(NWKernelRegression, attention_inputs(key_size=7))


@pytest.mark.parametrize("width", [0, -1.0, np.float32(-2)])
def test_a_width_must_be_positive(width):
    with pytest.raises(ValueError, match=f"width={width}"):
        nadaraya_watson(QUERY, KEY, VALUE, width)


def test_sizes_that_would_broadcast_are_refused():
    with pytest.raises(ValueError, match=r"query \(2, 3, 1\), key \(2, 7, 5\)"):
        nadaraya_watson(QUERY[..., :1], KEY, VALUE)


def test_whole_numbers_are_numbers():
    x = np.array([[[0], [2], [4]]])
    output = to_numpy(nadaraya_watson(x, x, x))
    np.testing.assert_allclose(output[0, 1], 2.0, atol=1e-6)
