"""Attention to chosen keys: who is chosen, what is read, what is learned."""

import contract
from contract import (
    attention_inputs,
    check_layer,
    draw,
    on_every_backend,
    to_numpy,
)
from d2l_attention import (
    AttentionBlock,
    CompressedAttention,
    IndexedAttention,
    RotaryAttention,
    SelectedBlockAttention,
    WindowAttention,
    block_means,
    block_scores,
    causal_mask,
    expand_blocks,
    grouped_query_attention,
    index_scores,
    masked_softmax,
    select_blocks,
    selected_block_attention,
)
from d2l_attention.layers.selected_blocks import index_loss, top_entries
import keras
import numpy as np
import pytest

SIZES = {
    "num_heads": 6,
    "num_kv_heads": 2,
    "key_dim": 4,
    "value_dim": 5,
    "output_dim": 11,
}
LAYERS = {
    "blocks": lambda **k: SelectedBlockAttention(
        block_size=3, top=2, **SIZES, **k
    ),
    "index": lambda **k: IndexedAttention(
        top=3, index_heads=2, index_dim=3, **SIZES, **k
    ),
    "compressed": lambda **k: CompressedAttention(
        block_size=3, top=2, window=3, **SIZES, **k
    ),
}


def assert_close(found, expected, atol=1e-6):
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), 0, atol)


@pytest.mark.parametrize("name", on_every_backend({x: x for x in LAYERS}))
def test_contract(name, monkeypatch):
    if name == "index":  # no gradient of the output reaches the indexer
        monkeypatch.setattr(contract, "_check_gradients", lambda *_: None)
    check_layer(
        LAYERS[name],
        attention_inputs(),
        num_heads=6,
        output_dim=11,
        by_position=True,
        weights=name != "compressed",
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
    index = IndexedAttention(top=13, index_heads=2, index_dim=3, **SIZES)
    with_weights_of(index, rotary, x)
    dense = to_numpy(rotary(x, use_causal_mask=True))
    assert np.array_equal(to_numpy(index(x)), dense)


def test_gates_of_a_window_alone_are_window_attention():
    x, sizes = draw(2, 13, 7), SIZES | {"num_kv_heads": 6}
    layer = CompressedAttention(block_size=3, top=2, window=4, **sizes)
    window = WindowAttention(window=4, **sizes)
    layer.build(x.shape)
    window.build(x.shape)
    kernels = [to_numpy(w) for w in layer.weights]
    kernels[1] = kernels[1][:, 2 * 6 * 4 :]  # the last of three
    kernels[2] = kernels[2][:, 2 * 6 * 5 :]
    window.set_weights(kernels[:4])
    expected = to_numpy(window(x))
    project = layer.project_query

    def gates(x, start=0):
        query = to_numpy(project(x, start)).copy()
        query[..., -3:] = 0, 0, 1
        return keras.ops.convert_to_tensor(query)

    layer.project_query = gates
    assert_close(layer(x), expected)


def test_three_attentions_as_a_loop_has_them():
    layer, x = LAYERS["compressed"](), draw(1, 11, 7)
    layer(x)
    full = to_numpy(layer.project_query(x))[0]
    query, gates = full[..., :4], full[..., 4:]
    keys = np.split(to_numpy(layer.project_key(x))[0], 3, axis=1)
    values = np.split(to_numpy(layer.project_value(x))[0], 3, axis=1)
    output = np.zeros((11, 6, 5))

    def attend(q, k, v):
        if not len(k):
            return np.zeros(v.shape[-1])
        weights = np.exp(k @ q / 2)
        return weights @ v / weights.sum()

    for t, g in np.ndindex(11, 2):
        own, members = t // 3, range(3 * g, 3 * g + 3)
        full = slice(0, 3 * own)
        means, mean_values = (
            x[0][full, g].reshape(own, 3, x[0].shape[-1]).mean(1)
            for x in (keys, values)
        )
        share = np.zeros(own)
        for h in members:
            weights = np.exp(means @ query[t, h] / 2)
            share += weights / weights.sum()
        best = [own, *np.argsort(-share)[:1]]
        read = [x for x in range(t + 1) if x // 3 in best]
        near = range(max(0, t - 2), t + 1)
        for h in members:
            parts = (
                attend(query[t, h], means, mean_values),
                attend(query[t, h], keys[1][read, g], values[1][read, g]),
                attend(query[t, h], keys[2][near, g], values[2][near, g]),
            )
            output[t, h] = sum(map(np.multiply, gates[t, h], parts))
    expected = output.reshape(11, 30) @ to_numpy(layer.output_layer.kernel)
    assert_close(layer(x)[0], expected, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_steps_of_any_size_equal_the_whole(name):
    make = LAYERS[name]
    config = make().get_config() | {"output_dim": None}
    block = AttentionBlock(type(make()).from_config(config), 7, 13)
    x = draw(2, 17, 7)
    whole = to_numpy(block(x))
    for steps in ([1] * 17, [7, 1, 1, 1, 7]):
        cache, start = block.make_cache(2, 19), 0
        for size in steps:
            positions = np.tile(np.arange(start, start + size), (2, 1))
            part = x[:, start : start + size]
            y, cache = block.step(part, positions, cache)
            expected = whole[:, start : start + size]
            assert_close(y, expected, atol=1e-5)
            start += size


def test_index_scores_and_their_loss_as_formulas():
    query, key, weights = draw(2, 5, 3, 4), draw(2, 7, 4), draw(2, 5, 3)
    products = np.maximum(np.einsum("btji,bsi->btjs", query, key), 0)
    scores = np.einsum("btj,btjs->bts", weights, products)
    assert_close(index_scores(query, key, weights), scores, atol=1e-5)
    mask = to_numpy(causal_mask(5, 7)) & np.ones((2, 1, 1), bool)
    mask[1, 3] = False
    attention = to_numpy(masked_softmax(draw(2, 6, 5, 7), mask[:, None]))
    target, share = attention.mean(1), to_numpy(masked_softmax(scores, mask))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(target > 0, target * np.log(target / share), 0)
    found = float(index_loss(scores, attention, mask))
    assert abs(found - terms.sum() / 9) < 1e-5  # one of ten queries sees none
    # None where both are the same, and far apart it is finite.
    same = np.log(np.maximum(target, 1e-9))
    assert abs(float(index_loss(same, attention, mask))) < 1e-6
    assert np.isfinite(float(index_loss(300 * scores, attention, mask)))


@pytest.mark.parametrize("padding", [2, 6, 26])
def test_padding_teaches_the_indexer_nothing(padding):
    layer, x = LAYERS["index"](), draw(2, 9, 7)
    lengths = np.arange(9) < [[9], [6]]

    def loss(x, mask):
        layer(x, key_mask=mask, training=True)
        (found,) = layer.losses
        return float(to_numpy(found))

    expected = loss(x, lengths)
    # As a mean over the tokens, wherever the sentences are cut.
    alone = loss(x[:1], None), loss(x[1:, :6], None)
    assert abs(expected - (9 * alone[0] + 6 * alone[1]) / 15) < 1e-5
    more = np.concatenate([x, 5 * draw(2, padding, 7)], 1)
    mask = np.pad(lengths, ((0, 0), (0, padding)))
    assert abs(loss(more, mask) - expected) < 1e-5


@pytest.mark.every_backend
def test_the_loss_teaches_the_indexer_alone():
    keras.utils.set_random_seed(0)
    layer, x = LAYERS["index"](), draw(8, 13, 7)
    below = keras.layers.Dense(7, name="below")
    model = keras.Sequential([keras.Input((13, 7)), below, layer])
    before = {w.path: to_numpy(w) for w in model.weights}
    model.compile("sgd", lambda y, output: 0 * output, jit_compile=False)
    model.optimizer.learning_rate = 0.5
    history = model.fit(x, x, epochs=5, verbose=0).history["loss"]
    moved = {
        w.path.split("/")[-2]
        for w in model.weights
        if np.abs(to_numpy(w) - before[w.path]).max() > 1e-4
    }
    assert moved == {"W_iq", "W_ik", "W_iw"}
    assert history[-1] < history[0]
    layer(x)
    assert layer.losses == []  # outside of training


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: SelectedBlockAttention(2, 4, 0, 1), "block_size=0"),
        (lambda: SelectedBlockAttention(2, 4, 3, 0), "top=0"),
        (
            lambda: IndexedAttention(2, 4, 3, index_heads=0, index_dim=1),
            "index_heads=0",
        ),
        (
            lambda: IndexedAttention(2, 4, 3, index_heads=1, index_dim=0),
            "index_dim=0",
        ),
        (lambda: CompressedAttention(2, 4, 3, 1, 0), "window=0"),
        (
            lambda: CompressedAttention(2, 4, 3, 1, 1, num_kv_heads=3),
            "num_kv_heads=3",
        ),
        (
            lambda: block_scores(*heads()[:2], 3, np.ones((5, 3), bool)),
            r"mask \(5, 3\)",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
