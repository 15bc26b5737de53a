"""Pages nearby: dense attention under a mask, at a linear cost."""

from contract import dense_attention, draw, to_numpy
from d2l_attention import (
    MultiHeadAttention,
    PageLocalAttention,
    causal_mask,
    page_local_attention,
)
from d2l_attention.layers.page_local import page_mask
import numpy as np
import pytest


def test_page_mask():
    expected = [
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 0],
        [1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1],
        [0, 0, 1, 1, 1],
    ]
    np.testing.assert_array_equal(to_numpy(page_mask(5, 2)), expected)


@pytest.mark.parametrize("neighbors", [0, 1, 2])
@pytest.mark.parametrize(
    ("page_size", "causal"),
    [
        (1, True),
        (3, False),
        pytest.param(3, True, marks=pytest.mark.every_backend),
        (5, False),
        (16, True),
    ],
)
def test_equals_dense_attention_under_the_mask(page_size, neighbors, causal):
    query, key = draw(2, 11, 3, 4), draw(2, 11, 3, 4, seed=1)
    value = draw(2, 11, 3, 5)
    key_mask = np.arange(11) < np.array([[7], [11]])
    key_mask[0, :6] = False
    mask = to_numpy(page_mask(11, page_size, neighbors)) & key_mask[:, None]
    if causal:
        mask = mask & to_numpy(causal_mask(11))
    found = page_local_attention(
        query,
        key,
        value,
        page_size,
        neighbors=neighbors,
        key_mask=key_mask,
        use_causal_mask=causal,
    )
    expected = dense_attention(query, key, value, mask[:, None])
    np.testing.assert_allclose(to_numpy(found), expected, atol=1e-6)


def test_values_of_one_give_one():
    """Document 004 normalises each page apart, and gets 2 and 3."""
    query, key = draw(1, 12, 1, 4), draw(1, 12, 1, 4, seed=1)
    ones = np.ones((1, 12, 1, 1), "float32")
    found = page_local_attention(query, key, ones, page_size=3)
    np.testing.assert_allclose(to_numpy(found), 1, atol=1e-6)


def test_nothing_wraps_around():
    """The last page is no neighbour of the first."""
    query, key, value = (draw(1, 8, 1, 4, seed=i) for i in range(3))
    before = to_numpy(page_local_attention(query, key, value, page_size=2))
    value[0, -2:] = 100
    after = to_numpy(page_local_attention(query, key, value, page_size=2))
    np.testing.assert_array_equal(before[0, :4], after[0, :4])
    assert np.abs(before[0, 4:] - after[0, 4:]).min() > 1


@pytest.mark.parametrize("causal", [False, True])
def test_the_layer_equals_multi_head_attention_under_the_mask(causal):
    x, key_mask = draw(2, 11, 7), np.arange(11) < np.array([[6], [11]])
    local = PageLocalAttention(3, 4, page_size=2)
    plain = MultiHeadAttention(3, 4)
    for layer in (local, plain):
        layer.build(x.shape)
    plain.set_weights(local.get_weights())
    mask = to_numpy(page_mask(11, 2, use_causal_mask=causal))
    found = local(x, key_mask=key_mask, use_causal_mask=causal)
    np.testing.assert_allclose(
        to_numpy(found),
        to_numpy(plain(x, attention_mask=mask, key_mask=key_mask)),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    "wrong", [{"page_size": 0}, {"neighbors": -1}, {"neighbors": 1.5}]
)
def test_sizes_are_checked(wrong):
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        PageLocalAttention(3, 4, **{"page_size": 2, **wrong})
