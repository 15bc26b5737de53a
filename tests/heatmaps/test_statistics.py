from d2l_attention.heatmaps import (
    AttentionMaps,
    alignment_error_rate,
    alignment_from_attention,
    attention_distance,
    attention_entropy,
    attention_rollout,
    attention_sinks,
    head_scores,
    merge_subwords,
    read_pharaoh,
    statistics,
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
    assert found.shape == (3, 2, 1, 5, 5)
    found = found[:, :, 0]
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
    np.testing.assert_array_equal(named[:, :, 0], found)
    alone = attention_rollout(layers[:1], residual=0.0)[0, :, 0]
    np.testing.assert_allclose(alone, layers[0].mean(1))


def test_rollout_keeps_a_causal_mask_and_pulls_no_weight_from_padding():
    causal = np.tril(np.ones((4, 4)))
    layers = draw_weights(2, 1, 3, 4, 4) * causal
    layers /= layers.sum(-1, keepdims=True)
    assert (attention_rollout(layers)[..., causal == 0] == 0).all()
    layers[..., 3, :] = 0  # a query that may attend to nothing
    last = attention_rollout(layers)[-1, 0, 0, 3]
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


def causal_weights(*shape, seed=0):
    """Softmax weights `(…, T, T)` of queries that see up to themselves."""
    weights = draw_weights(*shape, seed=seed) * np.tri(shape[-1])
    return weights / weights.sum(-1, keepdims=True)


IDS = np.array([[5, 6, 5, 5, 7, 6, 5], [8, 9, 9, 5, 8, 9, 7]])


@pytest.mark.parametrize(
    "measure",
    [
        alignment_from_attention,
        lambda w: alignment_from_attention(w, method="intersection"),
        attention_entropy,
        lambda w: attention_entropy(w, mask=np.tri(7) > 0, normalize=True),
        attention_distance,
        lambda w: attention_rollout([w[None], w[None]]),
        lambda w: merge_subwords(w, [0, 0, 1, 2, 3, 3, 4], [0, 1, 1, *"abcd"]),
        lambda w: attention_sinks({"": w[None, None]}),
        lambda w: attention_sinks({"": w[None, None]}, mask=np.tri(7)),
        lambda w: head_scores({"": w[None, None]}, IDS[:1]),
        lambda w: head_scores({"": w[None, None]}, IDS[:1], mask=np.tri(7)),
    ],
)
def test_a_cell_that_did_not_exist_acts_as_a_weight_of_0(measure):
    zeros = causal_weights(7, 7)
    missing = np.where(np.tri(7), zeros, np.nan)
    expected = measure(zeros)
    np.testing.assert_array_equal(measure(missing), expected)
    if not isinstance(expected, set):
        assert np.isfinite(as_numbers(expected)).any()


def as_numbers(measured):
    """An array of floats, or the last three numbers of each head."""
    if isinstance(measured, list):
        return [x for head in measured for x in head[-2:]]
    return measured


def test_no_key_that_did_not_exist_may_be_seen_whatever_the_mask_says():
    weights = causal_weights(1, 2, 5, 5)
    weights[..., 3, :] = np.nan
    weights[..., 4] = np.nan
    every = np.ones((5, 5), bool)
    rows = {"": weights[..., :4, :]}  # the last never existed
    for sink in attention_sinks(rows) + attention_sinks(rows, mask=every[:4]):
        assert sink.no_key < 1e-9
    both_ways = draw_weights(1, 2, 5, 5) + 0 * weights
    chances = [
        score.chance
        for score in head_scores({"": both_ways}, IDS[:1, :5], mask=every)
        if score.kind == "previous token"
    ]
    np.testing.assert_allclose(chances, 1 / 4)  # four keys in rows 1 and 2
    for mask in (None, every[:1, :3]):
        even = np.array([[0.5, 0.5, np.nan]])
        assert attention_entropy(even, mask=mask, normalize=True) == [1]


def sinks_by_loop(weights):
    """Pairs (first token, no key) of the heads of `(B, H, T, S)`."""
    batch, num_heads, queries, keys = weights.shape
    for h in range(num_heads):
        first, no_key = [], []
        for b, t in np.ndindex(batch, queries):
            seen = [s for s in range(keys) if weights[b, :, t, s].any()]
            given = sum(weights[b, h, t])
            if seen:
                no_key.append(1 - given)
            if 0 in seen and len(seen) > 1:
                first.append(weights[b, h, t, 0] / given)
        yield np.mean(first), np.mean(no_key)


@pytest.mark.parametrize("draw", [draw_weights, causal_weights])
def test_sinks_equal_a_loop_over_single_rows(draw):
    scale = np.random.default_rng(1).uniform(0.2, 1, (2, 3, 7, 1))
    self_maps = draw(2, 3, 7, 7) * scale
    self_maps[1, :, :, 5:] = 0  # padding
    self_maps[1, :, 5:] = 0
    cross = draw_weights(2, 3, 7, 5, seed=2)
    found = attention_sinks({"self": self_maps, "cross": cross})
    names = [(path, h) for path in ("self", "cross") for h in range(3)]
    assert [sink[:2] for sink in found] == names
    expected = [*sinks_by_loop(self_maps), *sinks_by_loop(cross)]
    np.testing.assert_allclose(
        [sink[2:] for sink in found], expected, atol=1e-12
    )


def test_an_even_causal_look_gives_the_first_token_one_in_t():
    even = np.tri(7) / np.arange(1, 8)[:, None]
    (sink,) = attention_sinks({"": even[None, None]})
    expected = np.mean([1 / t for t in range(2, 8)])  # row 0 does not count
    assert sink.first_token == pytest.approx(expected)
    assert sink.no_key == pytest.approx(0)


def test_a_sink_logit_of_ln_n_takes_half_and_no_share_of_the_first_token():
    scores = np.zeros((2, 1, 5, 8))
    scores[..., 7] = np.log(7)  # the logit, beside 7 even keys
    exp = np.exp(scores)
    weights = (exp / exp.sum(-1, keepdims=True))[..., :7]
    (sink,) = attention_sinks({"": weights})
    assert sink.no_key == pytest.approx(1 / 2)
    assert sink.first_token == pytest.approx(1 / 7)
    assert "head 0: 14.3% on the first token, 50.0% on no key" in str(sink)


def test_the_first_token_stands_after_the_padding_on_the_left():
    weights = np.zeros((2, 2, 5, 5))
    weights[0] = causal_weights(2, 5, 5)
    weights[1, :, 2:, 2:] = causal_weights(2, 3, 3)
    alone = [
        attention_sinks({"": weights[b : b + 1, :, start:, start:]})
        for b, start in ((0, 0), (1, 2))
    ]
    together = attention_sinks({"": weights})
    for both, long, short in zip(together, *alone, strict=True):
        expected = (4 * long.first_token + 2 * short.first_token) / 6
        assert both.first_token == pytest.approx(expected)


def test_rows_of_padding_that_keras_leaves_even_do_not_count():
    short = draw_weights(1, 3, 5, 5)
    padded = np.zeros((1, 3, 7, 7))
    padded[..., :5, :5] = short
    padded[..., 5:, :] = 1 / 7
    assert_same(attention_sinks({"": padded}), attention_sinks({"": short}))
    found = head_scores({"": padded}, IDS[:1])
    assert_same(found, head_scores({"": short}, IDS[:1, :5]))


def assert_same(found, expected):
    """The numbers of heads agree, but for the null, whose shuffles differ."""
    for head, other in zip(found, expected, strict=True):
        numbers, others = (
            [x for x in list(row)[:5] if isinstance(x, float)]
            for row in (head, other)
        )
        assert numbers == pytest.approx(others, abs=1e-12, nan_ok=True)


def test_a_token_that_no_query_may_see_has_no_score_of_its_own():
    short = causal_weights(1, 3, 5, 5)
    padded = np.zeros((1, 3, 7, 7))
    padded[..., :5, :5] = short
    padded[..., 5:, :5] = draw_weights(1, 3, 2, 5)
    found = head_scores({"": padded}, IDS[:1])
    assert_same(found, head_scores({"": short}, IDS[:1, :5]))


def test_a_mask_says_which_rows_count_and_which_keys_may_be_seen():
    weights = causal_weights(2, 3, 7, 7)
    tokens = np.arange(7) < np.array([[7], [4]])
    mask = tokens[:, None] & tokens[..., None] & np.tri(7, dtype=bool)
    zeroed = weights * mask[:, None]
    found = attention_sinks({"a": zeroed}, mask={"a": mask})
    expected = [*sinks_by_loop(zeroed)]
    np.testing.assert_allclose(
        [sink[2:] for sink in found], expected, atol=1e-12
    )
    scores = head_scores({"a": zeroed}, IDS, mask=mask)
    assert scores == head_scores({"a": zeroed}, IDS)
    with pytest.raises(ValueError, match=r"mask of 'a'.*\(7, 7\).*\(2, 7, 6\)"):
        attention_sinks({"a": weights}, mask=mask[..., :6])
    with pytest.raises(ValueError, match=r"mask.*'b'.*'a'"):
        attention_sinks({"a": weights}, mask={"b": mask})


KINDS = ["previous token", "same token", "induction", "first token"]


def targets_by_loop(kind, ids, t):
    """The targets of query t of one sentence."""
    earlier = [j for j in range(t) if ids[j] == ids[t]]
    return {
        "previous token": [t - 1] if t else [],
        "same token": earlier,
        "induction": [j + 1 for j in earlier],
        "first token": [0],
    }[kind]


def scores_by_loop(weights, ids, kind, num_shuffles, seed=5):
    """Triples (score, chance, null) of the heads of `(B, H, T, T)`."""
    batch, num_heads, length, _ = weights.shape
    rng = np.random.default_rng(seed)
    for h in range(num_heads):
        scores, chances, nulls = [], [], []
        for b, t in np.ndindex(batch, length):
            seen = np.flatnonzero(weights[b, :, t].any(0))
            targets = np.isin(seen, targets_by_loop(kind, ids[b], t))
            if not targets.any() or targets.all():
                continue
            row = weights[b, h, t, seen] / weights[b, h, t].sum()
            scores.append(row[targets].sum())
            chances.append(targets.sum() / len(seen))
            shuffled = rng.permuted([row] * num_shuffles, axis=1)
            nulls.append(shuffled[:, targets].sum(1))
        null = np.quantile(np.mean(nulls, axis=0), 0.95)
        yield np.mean(scores), np.mean(chances), null


@pytest.mark.parametrize("cells", [1, 2**18])
@pytest.mark.parametrize("draw", [draw_weights, causal_weights])
def test_scores_equal_a_loop_over_single_rows(draw, cells, monkeypatch):
    monkeypatch.setattr(statistics, "_CELLS", cells)  # 1: row by row
    weights = 0.9 * draw(2, 3, 7, 7)  # a sink has the rest
    found = head_scores({"layer": weights}, IDS, num_shuffles=4999)
    names = [("layer", h, kind) for h in range(3) for kind in KINDS]
    assert [score[:3] for score in found] == names
    for kind in KINDS:
        expected = [*scores_by_loop(weights, IDS, kind, 4999)]
        of_kind = np.array([x[3:] for x in found if x.kind == kind])
        np.testing.assert_allclose(of_kind[:, :2], np.array(expected)[:, :2])
        nulls = np.array(expected)[:, 2]
        np.testing.assert_allclose(of_kind[:, 2], nulls, atol=0.01)


@pytest.mark.parametrize("causal", [True, False])
def test_a_planted_head_of_each_kind_scores_1_and_an_even_one_chance(causal):
    ids = np.random.default_rng(0).integers(0, 5, (2, 23))
    planted = np.zeros((2, 5, 23, 23))
    for b, h, t in np.ndindex(2, 4, 23):
        targets = targets_by_loop(KINDS[h], ids[b], t) or [t]
        planted[b, h, t, targets] = 1 / len(targets)
    planted[:, 4] = np.tri(23) if causal else 1
    planted[:, 4] /= planted[:, 4].sum(-1, keepdims=True)
    scores = {x[1:3]: x for x in head_scores({"": planted}, ids)}
    for head, kind in enumerate(KINDS):
        score = scores[head, kind]
        assert score.score == pytest.approx(1)
        assert score.score > score.null > score.chance
        others = [scores[other, kind].score for other in range(5)]
        assert sorted(others)[-2] < 0.7
        even = scores[4, kind]
        assert even.score == pytest.approx(even.chance)
        assert even.null == pytest.approx(even.chance)
    previous = [1 / t for t in range(2, 24)] if causal else 1 / 23
    assert scores[0, KINDS[0]].chance == pytest.approx(np.mean(previous))


def test_heads_without_a_softmax_may_see_all_keys_or_those_up_to_the_query():
    looks_back = np.eye(7, k=-1)
    looks_back[0, 0] = 1
    causal = {"": looks_back[None, None]}
    both_ways = {"": np.roll(np.eye(7), 1, axis=1)[None, None]}
    ids = IDS[:1]
    assert head_scores(causal, ids)[0][3:5] == pytest.approx(
        (1, np.mean([1 / t for t in range(2, 8)]))
    )
    assert head_scores(both_ways, ids)[0][3:5] == pytest.approx((0, 1 / 7))
    parked = np.eye(7)[[0] * 7]
    (sink,) = attention_sinks({"": parked[None, None]})
    assert sink[2:] == (1, 0)


def soften(heads, row):
    """The weights of one head, whose given row is no longer on one key."""
    weights = np.array(heads, float)
    weights[row] = causal_weights(*weights.shape)[row]
    return {"": weights[None, None]}


@pytest.mark.parametrize("row", [5, 9])
def test_a_weight_that_underflows_is_no_mask_where_all_weights_are_causal(row):
    causal = np.tri(10, dtype=bool)
    parked = soften(np.eye(10)[[0] * 10], row)
    looks_back = np.eye(10, k=-1)
    looks_back[0, 0] = 1
    looks_back = soften(looks_back, row)
    (sink,) = attention_sinks(parked)
    (expected,) = attention_sinks(parked, mask=causal)
    assert sink == expected
    previous = head_scores(looks_back, np.arange(10)[None])[0]
    expected = head_scores(looks_back, np.arange(10)[None], mask=causal)[0]
    assert previous.score == pytest.approx(expected.score)
    # With row 5, the layer might have a window of six keys.
    assert previous.chance == pytest.approx(expected.chance, abs=0.025)


def test_a_sharp_head_in_float16_scores_as_with_its_mask():
    scores = 6 * np.random.default_rng(0).normal(size=(10, 10))
    scores += 14 * np.eye(10, k=-1)
    scores = np.where(np.tri(10), scores, -np.inf)
    exp = np.exp((scores - scores.max(-1, keepdims=True)).astype("float16"))
    weights = {"": (exp / exp.sum(-1, keepdims=True))[None, None]}
    assert (weights[""] > 0).sum() < 0.8 * 55
    ids = np.arange(10)[None]
    found = head_scores(weights, ids)
    expected = head_scores(weights, ids, mask=np.tri(10))
    for i in (0, 3):  # previous and first token
        assert found[i][3:5] == pytest.approx(expected[i][3:5], abs=0.005)


def masked_weights(mask, heads=3):
    """Softmax weights of one sentence whose queries see what a mask says."""
    weights = draw_weights(1, heads, *mask.shape) * mask
    sums = weights.sum(-1, keepdims=True)
    return {"": weights / np.where(sums > 0, sums, 1)}


T = np.arange(7)
DISTANCE = T[:, None] - T


@pytest.mark.parametrize(
    "mask",
    [
        (DISTANCE >= 0) & (DISTANCE < 3),  # a window
        (DISTANCE >= 0) & ((DISTANCE < 3) | (T == 0)),  # and a sink
        (DISTANCE >= 0) & (T // 4 == T[:, None] // 4),  # two texts
        (DISTANCE >= 0) & (T < 5),  # padding
        (DISTANCE >= 0) & (T >= 2),  # on the left
        (DISTANCE >= 0) & (T >= 2) & (DISTANCE < 3),
        abs(DISTANCE) < 3,
    ],
)
def test_what_the_weights_tell_is_the_mask_they_were_made_with(mask):
    weights = masked_weights(mask)
    found = statistics._allowed(weights[""])
    np.testing.assert_array_equal(found[0], mask)


@pytest.mark.parametrize("padded", [0, 1, 3])
def test_an_even_last_row_counts_unless_other_rows_are_padding(padded):
    length = 7 - padded
    even = causal_weights(1, 1, length, length)
    even[..., -1, :] = 1 / length
    weights = np.zeros((1, 1, 7, 7))
    weights[..., :length, :length] = even
    weights[..., length:, :] = 1 / 7  # as Keras leaves a row of padding
    (sink,) = attention_sinks({"": weights})
    rows = even[0, 0, 1:, 0].tolist() + [1 / 7] * (padded == 1)
    assert sink.first_token == pytest.approx(np.mean(rows))


def test_a_mask_of_padding_joins_the_causal_one_that_the_weights_tell():
    tokens = np.arange(7) < np.array([[7], [4]])
    mask = tokens[:, None] & np.tri(7, dtype=bool)
    weights = draw_weights(2, 3, 7, 7) * mask[:, None]
    maps = {"": weights / weights.sum(-1, keepdims=True)}
    found = head_scores(maps, IDS, mask=tokens[:, None])
    assert found == head_scores(maps, IDS, mask=mask)
    both_ways = {"": draw_weights(2, 3, 7, 7)}
    chance = head_scores(both_ways, IDS, mask=np.ones((7, 7)))[0].chance
    assert chance == pytest.approx(1 / 7)


def test_a_sentence_that_repeats_no_token_has_no_score_of_two_kinds():
    weights = causal_weights(1, 2, 5, 5)
    for score in head_scores({"": weights}, np.array([[5, 6, 7, 8, 9]])):
        repeats = score.kind in ("same token", "induction")
        assert np.isnan(score[3:]).all() == repeats
        assert str(score).endswith("no query has a target") == repeats


def test_the_null_of_a_layer_does_not_hang_on_other_layers_but_on_the_seed():
    maps = AttentionMaps(
        {str(i): causal_weights(2, 3, 7, 7, seed=i) for i in range(2)}
    )
    found = head_scores(maps, IDS)
    assert found[12:] == head_scores(maps.select(["1"]), IDS)
    assert found != head_scores(maps, IDS, seed=1)


def test_what_is_no_self_attention_of_these_ids_is_named():
    cross = {"decoder/cross": draw_weights(2, 1, 5, 7)}
    with pytest.raises(ValueError, match="decoder/cross.*5 .*7 keys.*select"):
        head_scores(cross, IDS[:, :5])
    maps = {"encoder/self": draw_weights(2, 1, 7, 7)}
    with pytest.raises(ValueError, match=r"\(2, 7\).*encoder/self.*\(1, 7\)"):
        head_scores(maps, IDS[:1])
    with pytest.raises(ValueError, match=r"\(2, 8\).*was never read"):
        head_scores(maps, np.pad(IDS, ((0, 0), (0, 1))))
    with pytest.raises(ValueError, match="integers.*float64"):
        head_scores(maps, IDS / 1)
    with pytest.raises(ValueError, match="positive.*0"):
        head_scores(maps, IDS, num_shuffles=0)
    with pytest.raises(TypeError, match="mapping.*ndarray"):
        attention_sinks(maps["encoder/self"])
    with pytest.raises(ValueError, match=r"'encoder/self'.*\(1, 7, 7\)"):
        attention_sinks({"encoder/self": maps["encoder/self"][0]})


@pytest.mark.parametrize(
    "read",
    [
        attention_entropy,
        attention_distance,
        lambda weights: attention_rollout([weights]),
        lambda weights: attention_sinks({"a": weights}),
        lambda weights: head_scores({"a": weights}, [[1, 2]]),
    ],
)
def test_signed_weights_are_no_shares(read):
    """Of a row such as (2, -1) a share, and its logarithm, mean nothing."""
    weights = np.array([[[[2.0, -1.0], [0.5, 0.5]]]])
    with pytest.raises(ValueError, match="signed ones.*-1"):
        read(weights)


def test_a_pattern_of_ones_own_is_one_more_kind():
    """A pattern that a known kind has gives the same numbers."""
    rng = np.random.default_rng(0)
    weights = rng.random((2, 3, 7, 7)) * np.tri(7)
    weights /= weights.sum(-1, keepdims=True)
    back = {"one back": np.eye(7, k=-1, dtype=bool)}
    plain = head_scores({"a": weights}, IDS)
    found = head_scores({"a": weights}, IDS, patterns=back)
    by_kind = {(x.head, x.kind): x for x in found}
    assert len(found) == len(plain) + 3
    for head in range(3):
        own = by_kind[head, "one back"]
        known = by_kind[head, "previous token"]
        assert own[3:5] == known[3:5]


@pytest.mark.parametrize(
    "patterns",
    [
        {"wide": np.ones((7, 6), bool)},
        {"soft": np.ones((7, 7))},
        {"induction": np.ones((7, 7), bool)},
    ],
)
def test_a_pattern_that_fits_no_map_is_refused(patterns):
    weights = np.ones((2, 1, 7, 7)) / 7
    with pytest.raises(ValueError, match=f"pattern.*{[*patterns][0]}"):
        head_scores({"a": weights}, IDS, patterns=patterns)
