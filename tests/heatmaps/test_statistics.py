from d2l_attention.heatmaps import (
    alignment_error_rate,
    alignment_from_attention,
    attention_distance,
    attention_entropy,
    attention_rollout,
    merge_subwords,
    read_pharaoh,
)
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

LINKS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9)


def test_pharaoh_lines_become_sets_of_links(tmp_path):
    path = tmp_path / "gold.txt"
    path.write_text("0-0 1-2 2-1\n\n10-7\n")
    expected = [{(0, 0), (1, 2), (2, 1)}, set(), {(10, 7)}]
    assert read_pharaoh(path) == expected
    assert read_pharaoh(["0-0 1-2 2-1", "", "10-7"]) == expected


@pytest.mark.parametrize("link", ["1", "a-b", "1-", "-1-2", "1–2"])
def test_what_is_no_link_is_named_with_its_line(link):
    with pytest.raises(ValueError, match=f"Line 2.*'{link}'"):
        read_pharaoh(["0-0", f"0-0 {link}"])


def test_the_rate_by_hand():
    sure = [{(0, 0), (1, 1)}, {(0, 1)}]
    possible = [{(2, 1)}, set()]
    found = [{(0, 0), (2, 1), (2, 2)}, {(0, 1)}]
    # |A| = 4, |S| = 3, |A ∩ S| = 2, |A ∩ P| = 3 with P ⊇ S
    expected = 1 - (2 + 3) / (4 + 3)
    assert alignment_error_rate(sure, possible, found) == pytest.approx(
        expected
    )


@given(LINKS, LINKS)
def test_it_lies_between_equal_and_disjoint(sure, found):
    if sure or found:
        rate = alignment_error_rate([sure], None, [found])
        assert 0 <= rate <= 1
        assert (rate == 0) == (sure == found)
        assert (rate == 1) == (not sure & found)


@given(LINKS, LINKS)
def test_a_possible_link_is_no_error_and_not_asked_for(sure, extra):
    if sure:
        assert alignment_error_rate([sure], [extra], [sure | extra]) == 0
        assert alignment_error_rate([sure], [extra], [sure]) == 0


def test_lists_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="1 sure, 1 possible, 2 hypothesis"):
        alignment_error_rate([{(0, 0)}], None, [set(), set()])
    with pytest.raises(ValueError, match="no link"):
        alignment_error_rate([set()], None, [set()])


def test_links_are_source_then_target_of_the_largest_weight():
    weights = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.0, 0.0, 0.0]])
    assert alignment_from_attention(weights) == {(1, 0), (0, 1)}


def test_weights_of_another_rank_are_refused():
    with pytest.raises(ValueError, match=r"\(1, 2, 3\)"):
        alignment_from_attention(np.zeros((1, 2, 3)))


MATRIX = np.array([[0.6, 0.4, 0.0], [0.7, 0.3, 0.0], [0.0, 0.0, 0.0]])


def test_links_by_row_by_threshold_and_by_both_sides():
    def links(method, **options):
        return alignment_from_attention(MATRIX, method=method, **options)

    assert links("argmax") == {(0, 0), (0, 1)}
    assert links("threshold", threshold=0.4) == {(0, 0), (1, 0), (0, 1)}
    assert links("intersection") == {(0, 1)}
    ties = np.full((1, 3), 1 / 3)
    assert alignment_from_attention(ties) == {(0, 0)}
    with pytest.raises(ValueError, match="method.*argmax.*'best'"):
        links("best")


def draw_weights(*shape, seed=0):
    scores = np.random.default_rng(seed).normal(size=shape)
    return np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)


def test_entropy_of_one_of_all_and_of_no_key():
    rows = np.array([[1, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0], [0] * 4])
    found = attention_entropy(rows)
    np.testing.assert_allclose(found, [0, np.log(4), np.log(2), np.nan])
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]])
    found = attention_entropy(rows, mask=mask > 0, normalize=True)
    np.testing.assert_allclose(found, [0, 1, 1, np.nan])
    hidden = attention_entropy(rows, mask=np.zeros(4, bool))
    assert np.isnan(hidden).all()


@given(st.integers(1, 6), st.integers(0, 99))
def test_entropy_lies_between_one_key_and_all(keys, seed):
    entropy = attention_entropy(draw_weights(2, 3, 4, keys, seed=seed))
    assert entropy.shape == (2, 3, 4)
    assert (entropy >= 0).all() and (entropy <= np.log(keys) + 1e-9).all()


def test_distance_of_the_diagonal_of_the_previous_and_of_all():
    previous = np.eye(4, k=-1) + np.diag([1, 0, 0, 0])
    even = np.full((4, 4), 0.25)
    found = attention_distance(np.stack([np.eye(4), previous, even]))
    expected = [[0] * 4, [0, 1, 1, 1], [1.5, 1, 1, 1.5]]
    np.testing.assert_allclose(found, expected)
    assert np.isnan(attention_distance(np.zeros((2, 2)))).all()
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        attention_distance(np.zeros((2, 3)))


def test_rollout_is_the_product_of_the_layers():
    layers = draw_weights(3, 2, 4, 5, 5)
    found = attention_rollout(layers)
    assert found.shape == (3, 2, 5, 5)
    expected = np.broadcast_to(np.eye(5), (2, 5, 5))
    for layer, rollout in zip(layers, found, strict=True):
        joint = np.empty((2, 5, 5))
        for b, t, s in np.ndindex(2, 5, 5):
            mean = sum(layer[b, h, t, s] for h in range(4)) / 4
            joint[b, t, s] = 0.5 * mean + 0.5 * (t == s)
        expected = np.einsum("bts,bsr->btr", joint, expected)
        np.testing.assert_allclose(rollout, expected, atol=1e-12)
    np.testing.assert_allclose(found.sum(-1), 1)
    named = attention_rollout(dict(enumerate(layers)))
    np.testing.assert_array_equal(named, found)
    alone = attention_rollout(layers[:1], residual=0.0)[0]
    np.testing.assert_allclose(alone, layers[0].mean(1))


def test_rollout_keeps_a_causal_mask_and_pulls_no_weight_from_padding():
    causal = np.tril(np.ones((4, 4)))
    layers = draw_weights(2, 1, 3, 4, 4) * causal
    layers /= layers.sum(-1, keepdims=True)
    assert (attention_rollout(layers)[..., causal == 0] == 0).all()
    layers[..., 3, :] = 0  # a query that may attend to nothing
    last = attention_rollout(layers)[-1, 0, 3]
    np.testing.assert_allclose(last, [0, 0, 0, 1])
    with pytest.raises(ValueError, match=r"residual.*1\.5"):
        attention_rollout(layers, residual=1.5)
    with pytest.raises(ValueError, match=r"\(3, 4, 5\)"):
        attention_rollout([np.zeros((3, 4, 5))])


def test_pieces_become_words_and_rows_still_sum_to_one():
    weights = draw_weights(2, 4, 5)
    merged = merge_subwords(weights, [0, 0, 1, 1], [None, 0, 0, 1, None])
    assert merged.shape == (2, 2, 4)
    np.testing.assert_allclose(merged.sum(-1), 1)
    first = (weights[:, 0, 1:3].sum(-1) + weights[:, 1, 1:3].sum(-1)) / 2
    np.testing.assert_allclose(merged[:, 0, 1], first)
    np.testing.assert_allclose(merged[:, 1, 0], weights[:, 2:, 0].mean(-1))
    same = merge_subwords(weights, [None] * 4)
    np.testing.assert_allclose(same, weights)
    apart = merge_subwords(weights, [0, 1, 0, 0])  # the same word again
    assert apart.shape == (2, 3, 5)
    with pytest.raises(ValueError, match="each of 5 key pieces.*2 numbers"):
        merge_subwords(weights, None, [0, 1])
