"""MoBA: which blocks are chosen, and what is read of them."""

from contract import attention_inputs, check_layer, check_steps, draw, to_numpy
from d2l_attention import (
    RotaryAttention,
    SelectedBlockAttention,
    block_means,
    block_scores,
    causal_mask,
    expand_blocks,
    grouped_query_attention,
    select_blocks,
    selected_block_attention,
)
from d2l_attention.layers.moba import top_entries
import numpy as np
import pytest

SIZES = {
    "num_heads": 6,
    "num_kv_heads": 2,
    "key_dim": 4,
    "value_dim": 5,
    "output_dim": 11,
}


def make_layer(**options):
    return SelectedBlockAttention(block_size=3, top=2, **SIZES, **options)


def assert_close(found, expected, atol=1e-6):
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), 0, atol)


@pytest.mark.every_backend
def test_contract():
    check_layer(
        make_layer,
        attention_inputs(),
        num_heads=6,
        output_dim=11,
        by_position=True,
    )


def heads(t=11, s=13, h=6, g=2):
    """Queries, keys and values, and a mask with an empty row."""
    mask = np.random.default_rng(1).random((2, t, s)) < 0.7
    mask[1, 3] = False
    return draw(2, t, h, 4), draw(2, s, g, 4), draw(2, s, g, 3), mask


def chosen_by_a_loop(query, key, mask, size, top):
    """Blocks of each group, one query at a time, in float64."""
    b, t, h, _ = query.shape
    s, g = key.shape[1:3]
    chosen = np.zeros((b, h, t, -(-s // size)), bool)
    for row, at, group in np.ndindex(b, t, g):
        own = (at + s - t) // size
        members = range(group * h // g, (group + 1) * h // g)
        ranked = []
        for j in range(own):
            seen = [x for x in range(j * size, (j + 1) * size)
                    if mask[row, at, x]]  # fmt: skip
            if seen:
                mean = key[row, seen, group].astype("float64").mean(0)
                total = sum(query[row, at, x] @ mean for x in members)
                ranked.append((-total, j))
        for j in [own, *(x for _, x in sorted(ranked)[: top - 1])]:
            chosen[row, list(members), at, j] = True
    return chosen


@pytest.mark.parametrize("per_query", [False, True])
def test_blocks_are_chosen_as_a_loop_does(per_query):
    query, key, _, mask = heads()
    if not per_query:
        mask = np.arange(13) < np.array([[13], [7]])
        mask = np.broadcast_to(mask[:, None], (2, 11, 13))
    given = mask if per_query else mask[:, :1]
    scores = block_scores(query, key, 3, given)
    found = select_blocks(scores, 3, 3, np.arange(2, 13), num_groups=2)
    expected = chosen_by_a_loop(query, key, mask, 3, 3)
    assert np.array_equal(to_numpy(found), expected)
    # Two spellings: means of keys, and means of scores.
    wide = np.broadcast_to(given, (2, 11, 13))
    other = to_numpy(block_scores(query, key, 3, wide))
    assert_close(scores, other, atol=1e-5)
    counts = mask[:, :1] if not per_query else mask
    nothing = ~counts[..., :3].any(-1)
    assert (to_numpy(scores)[..., 0] == -np.inf).sum() == 6 * (
        np.broadcast_to(nothing, (2, 11)).sum()
    )


def test_means_of_a_short_and_of_a_masked_block():
    key, mask = draw(2, 7, 1, 3), np.ones((2, 7), bool)
    mask[0, 3:6], mask[1, 1] = False, False
    found = to_numpy(block_means(key, 3, mask))
    assert_close(found[0, 0], key[0, :3].mean(0))
    assert (found[0, 1] == 0).all()
    assert_close(found[:, 2], key[:, 6])
    assert_close(found[1, 0], key[1, [0, 2]].mean(0))
    assert_close(to_numpy(block_means(key, 3))[:, 1], key[:, 3:6].mean(1))


@pytest.mark.every_backend
def test_of_equal_scores_the_first_are_taken_and_of_none_nothing():
    scores = np.array([[1.0, 3, 1, 1, 3], [-np.inf, 0, -np.inf, -np.inf, 0]])
    found = to_numpy(top_entries(scores, 3)).astype(int)
    assert found.tolist() == [[1, 1, 0, 0, 1], [0, 1, 0, 0, 1]]


def test_no_later_block_is_chosen_and_the_own_one_always():
    scores = draw(1, 2, 12, 4) + 5
    scores[..., -1] = 99  # the last block is best for all
    found = to_numpy(select_blocks(scores, 3, 3))
    own = np.arange(12) // 3
    assert found[:, :, np.arange(12), own].all()
    assert not found[..., np.arange(4) > own[:, None]].any()
    assert (found.sum(-1) == np.minimum(own + 1, 3)).all()
    rows = select_blocks(scores[:, :, :1], 2, 3, np.array([[10]]))
    assert to_numpy(rows)[0, 0, 0].astype(int)[-1] == 1


@pytest.mark.every_backend
@pytest.mark.parametrize("shared", [False, True])
def test_what_is_read_alone_equals_what_is_masked(shared):
    query, key, value, mask = heads()
    groups = np.random.default_rng(2).random((2, 1 if shared else 2, 11, 5))
    wide = np.broadcast_to(groups < 0.5, (2, 2, 11, 5)).repeat(3, 1)
    selected = wide[:, :1] if shared else wide
    chosen = to_numpy(expand_blocks(wide, 3, 13)) & mask[:, None]
    expected, _ = grouped_query_attention(query, key, value, chosen)
    found = selected_block_attention(query, key, value, selected, 3, 5, mask)
    assert_close(found, expected)
    assert (to_numpy(found)[1, 3] == 0).all()
    with pytest.raises(ValueError, match="has 6 heads"):
        selected_block_attention(query, key, value, wide[:, :2], 3, 5, mask)


def test_a_mean_of_large_keys_in_half_precision():
    key = np.full((1, 1024, 1, 1), 100, "float16")
    assert to_numpy(block_means(key, 1024)).ravel().tolist() == [100]


def test_sizes_that_fit_no_choice():
    scores = np.zeros((1, 4, 2, 3))
    for sizes in ({"top": 0}, {"block_size": 0}, {"num_groups": 3}):
        with pytest.raises(ValueError, match=f"`{[*sizes][0]}`"):
            select_blocks(scores, **{"top": 1, "block_size": 2} | sizes)


def with_weights_of(layer, other, x):
    for one in (layer, other):
        if not one.built:
            one.build(x.shape)
    other.set_weights(layer.get_weights()[: len(other.weights)])
    return other


def test_all_blocks_are_dense_attention_and_one_is_attention_within_blocks():
    x = draw(2, 13, 7)
    layer = SelectedBlockAttention(block_size=3, top=5, **SIZES)
    rotary = with_weights_of(layer, RotaryAttention(**SIZES), x)
    dense = to_numpy(rotary(x, use_causal_mask=True))
    assert np.array_equal(to_numpy(layer(x)), dense)
    one = SelectedBlockAttention(block_size=3, top=1, **SIZES)
    with_weights_of(layer, one, x)
    same = np.arange(13)[:, None] // 3 == np.arange(13) // 3
    within = to_numpy(causal_mask(13)) & same
    expected = rotary(x, attention_mask=within)
    assert np.array_equal(to_numpy(one(x)), to_numpy(expected))


def test_steps_of_any_size_equal_the_whole():
    check_steps(make_layer())


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: SelectedBlockAttention(2, 4, 0, 1), "block_size=0"),
        (lambda: SelectedBlockAttention(2, 4, 3, 0), "top=0"),
        (
            lambda: block_scores(*heads()[:2], 3, np.ones((5, 3), bool)),
            r"mask \(5, 3\)",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
