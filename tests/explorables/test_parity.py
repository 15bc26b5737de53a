"""What a page computes is what the package computes."""

from d2l_attention import (
    causal_mask,
    flash_attention,
    masked_softmax,
    nadaraya_watson,
    padding_mask,
)
from explorables.pages import PAGES, kernel_regression
import keras
import numpy as np
import pytest

ERROR = 1e-5


@pytest.fixture(autouse=True)
def doubles():
    """Browsers compute in float64; so does the package here."""
    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    yield
    keras.config.set_floatx(before)


def weights_of(query, key, width, mask=None):
    query, key = (np.reshape(x, (1, -1, 1)) for x in (query, key))
    options = {"attention_mask": mask, "return_attention_scores": True}
    _, weights = nadaraya_watson(query, key, key, width, **options)
    return np.array(weights[0])


HOSTILE = {
    "random": ([0.3, 1.7, 2.2, 2.9, 4.1], 2.0, 0.7),
    "ties": ([1.0, 1.0, 2.0, 3.0], 1.5, 0.5),
    "far": ([0.1, 0.9, 1.3], 100.0, 0.05),
    "narrow": ([0.0, 1.0, 2.0], 0.4, 0.001),
    "wide": ([-3.0, 0.0, 5.0], 1.0, 1e6),
    "two": ([0.0, 1.0], 0.0, 1.0),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_weights_of_a_bell(case, open_page):
    key, query, width = HOSTILE[case]
    page = open_page(kernel_regression().to_html())
    found = page.evaluate(f"weightsAt({query}, {key}, {width})")
    expected = weights_of([query], key, width)[0]
    assert np.allclose(found, expected, atol=ERROR, rtol=0)
    effective = page.evaluate(f"effectiveKeys({found})")
    assert np.isclose(effective, 1 / np.sum(expected**2), atol=ERROR)
    left = page.evaluate(f"weightsAt({query}, {key}, {width}, 1)")
    mask = np.arange(len(key)) != 1
    expected = weights_of([query], key, width, mask)[0]
    assert np.allclose(left, expected, atol=ERROR, rtol=0) and left[1] == 0


@pytest.mark.parametrize("width", [0.02, 0.3, 2.0])
def test_errors_of_a_width(width, open_page):
    rng = np.random.default_rng(2)
    key, value = rng.uniform(0, 5, 12), rng.normal(size=12)
    query = rng.uniform(-1, 6, 7)
    page = open_page(kernel_regression().to_html())
    k, v, q = (x.tolist() for x in (key, value, query))
    found = page.evaluate(
        f"rootMeanSquare({q}.map(q => weigh(weightsAt(q, {k}, {width}), {v})))"
    )
    prediction = weights_of(query, key, width) @ value
    expected = np.sqrt(np.mean(prediction**2))
    assert np.isclose(found, expected, atol=ERROR)
    for keep_own, mask in (("true", None), ("false", ~np.eye(12, dtype=bool))):
        found = page.evaluate(f"leaveOneOut({k}, {v}, {width}, {keep_own})")
        prediction = weights_of(key, key, width, mask) @ value
        expected = np.mean((prediction - value) ** 2)
        assert np.isclose(found, expected, atol=ERROR), keep_own


def test_the_masked_softmax(open_page):
    page = open_page(kernel_regression().to_html())
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(6, 5)) * 10
    scores[1], scores[2] = 1000, [1e5, -1e5, 0, 0, 1e5]
    mask = rng.uniform(size=(6, 5)) < 0.6
    mask[3], mask[4] = False, True
    scores[5, ~mask[5]] = 1000  # what is masked may be large
    expected = np.array(masked_softmax(scores, mask))
    for t in range(6):
        asked = f"{scores[t].tolist()}, {str(mask[t].tolist()).lower()}"
        found = page.evaluate(f"maskedSoftmax({asked})")
        assert np.allclose(found, expected[t], atol=ERROR, rtol=0), t
    assert not np.any(expected[3])


ROWS = {  # one query's scores, of which a block may be hidden
    "random": [0.3, -1.7, 2.2, 2.9, -4.1, 0.0, 1.1],
    "large": [1.0, 0.0, 90.0, 89.0, 1000.0],
    "falling": [800.0, 3.0, -800.0],
    "ties": [2.0, 2.0, 2.0, 2.0],
    "one": [-3.0],
    "hidden first": [-np.inf, -np.inf, 0.5, 0.7],
    "hidden last": [0.5, 0.7, -np.inf, -np.inf],
    "all hidden": [-np.inf, -np.inf],
}


@pytest.mark.parametrize("block", [1, 2, 3, 7])
@pytest.mark.parametrize("case", ROWS)
def test_the_carried_output(case, block, open_page):
    scores = np.array(ROWS[case])
    value = np.random.default_rng(4).normal(size=(len(scores), 3))
    seen = np.isfinite(scores)
    output, norm = flash_attention(
        np.ones((1, 1, 1, 1)),
        np.where(seen, scores, 0.0).reshape(1, -1, 1, 1),
        value[None, :, None],
        attention_mask=seen[None],
        return_log_sum_exp=True,
    )
    page = open_page(PAGES["flash_attention"]().to_html())
    listed = str(scores.tolist()).replace("inf", "Infinity")
    states = f"readAll({listed}, {value.tolist()}, {block})"
    assert page.evaluate(f"{states}.length") == -(-len(scores) // block)
    found = page.evaluate(f"outputOf({states}.at(-1))")
    assert np.allclose(found, output[0, 0, 0], atol=ERROR, rtol=0)
    found = page.evaluate(f"logSumExp({states}.at(-1))")
    assert np.isclose(found, norm[0, 0, 0], atol=ERROR, rtol=0)
    shares = np.array(page.evaluate(f"sharesOf({listed}, {block}).at(-1)"))
    assert np.allclose(shares @ value, np.array(output)[0, 0, 0], atol=ERROR)
    if seen.all():
        found = page.evaluate(f"attendAtOnce({listed}, {value.tolist()})")
        assert np.allclose(found, output[0, 0, 0], atol=ERROR, rtol=0)


def test_the_shares_without_the_shrink(open_page):
    """What chapter 17 finds when the factor is forgotten."""
    page = open_page(PAGES["flash_attention"]().to_html())
    scores = np.log([1.0, 2, 4, 1]).tolist()
    found = page.evaluate(f"sharesOf({scores}, 2, false).at(-1)")
    assert np.allclose(found, np.array([0.5, 1, 1, 0.25]) / 2.75)


@pytest.mark.parametrize("size", [(4, 4), (2, 5), (5, 2), (1, 3)])
def test_masks_of_order_and_padding(size, open_page):
    page = open_page(PAGES["masked_softmax"]().to_html())
    T, S = size
    for real in range(S + 1):
        padding = np.array(padding_mask([real], S))[0, 0]
        for left in (False, True):
            for causal in (False, True):
                allowed = padding[::-1] if left else padding
                expected = np.broadcast_to(allowed, size)
                if causal:
                    expected = expected & np.array(causal_mask(T, S))
                asked = f"{T}, {S}, {real}, {causal}, {left}".lower()
                found = np.array(page.evaluate(f"maskOf({asked})"))
                assert np.array_equal(found, expected), asked
                found = page.evaluate(f"emptyRows(maskOf({asked}))")
                empty = np.flatnonzero(~expected.any(axis=1))
                assert found == empty.tolist(), asked


def test_weights_of_many_rows(open_page):
    page = open_page(PAGES["masked_softmax"]().to_html())
    rng = np.random.default_rng(6)
    scores = rng.normal(size=(5, 7)) * 100
    mask = rng.uniform(size=(5, 7)) < 0.4
    mask[2] = False
    asked = f"{scores.tolist()}, {str(mask.tolist()).lower()}"
    found = page.evaluate(f"weightsOf({asked})")
    expected = np.array(masked_softmax(scores, mask))
    assert np.allclose(found, expected, atol=ERROR, rtol=0)
    assert not np.any(np.array(found)[~mask])
