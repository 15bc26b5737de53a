"""Rotation, ALiBi and T5's buckets: formulas, distances alone, decoding."""

from pathlib import Path

from contract import (
    assert_all_close,
    attention_inputs,
    check_layer,
    draw,
    on_every_backend,
    to_numpy,
)
from d2l_attention import (
    ALiBiAttention,
    AttentionBlock,
    BlockLanguageModel,
    GroupedQueryAttention,
    RotaryAttention,
    T5Attention,
    alibi_bias,
    alibi_slopes,
    rotary_frequencies,
    rotate,
)
from d2l_attention.layers.relative_positions import (
    biased_attention,
    ntk_frequencies,
    relative_buckets,
    yarn_frequencies,
    yarn_magnitude,
)
import keras
import numpy as np
import pytest

YARN = np.load(Path(__file__).parents[1] / "oracles" / "yarn.npz")
SIZES = {"num_heads": 6, "key_dim": 4, "value_dim": 5, "output_dim": 11}
LAYERS = {
    "rotary": lambda **k: RotaryAttention(**SIZES, **k),
    "grouped rotary": lambda **k: RotaryAttention(
        num_kv_heads=2,
        interleaved=True,
        magnitude=1.2,
        frequencies=[0.5],
        **SIZES,
        **k,
    ),
    "ALiBi": lambda **k: ALiBiAttention(num_kv_heads=3, **SIZES, **k),
    "T5": lambda **k: T5Attention(**SIZES, **k),
    "T5, both ways": lambda **k: T5Attention(
        num_kv_heads=2, num_buckets=8, max_distance=9, bidirectional=True,
        **SIZES, **k,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "make", on_every_backend(LAYERS, "grouped rotary", "T5")
)
def test_contract(make):
    check_layer(
        make, attention_inputs(), num_heads=6, output_dim=11, by_position=True
    )


@pytest.mark.every_backend
@pytest.mark.parametrize("interleaved", [False, True])
def test_each_pair_turns_by_its_angle(interleaved):
    x, frequencies = draw(2, 5, 3, 8), [1.0, 0.3, 0.01]
    found = to_numpy(rotate(x, frequencies, 4, interleaved=interleaved))
    for t in range(5):
        for i, frequency in enumerate(frequencies):
            a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + 3)
            turn = np.exp(1j * (4 + t) * frequency)
            expected = (x[:, t, :, a] + 1j * x[:, t, :, b]) * turn
            assert np.abs(found[:, t, :, a] - expected.real).max() < 1e-6
            assert np.abs(found[:, t, :, b] - expected.imag).max() < 1e-6
    np.testing.assert_array_equal(found[..., 6:], x[..., 6:])


def test_the_two_layouts_are_one_after_a_permutation():
    x, frequencies = draw(2, 5, 3, 8), rotary_frequencies(8)
    evens_then_odds = [0, 2, 4, 6, 1, 3, 5, 7]
    halves = rotate(x[..., evens_then_odds], frequencies, 3)
    pairs = to_numpy(rotate(x, frequencies, 3, interleaved=True))
    np.testing.assert_array_equal(halves, pairs[..., evens_then_odds])


@pytest.mark.parametrize("interleaved", [False, True])
def test_a_score_depends_on_the_distance_alone(interleaved):
    query, key = draw(1, 1, 1, 8), draw(1, 1, 1, 8, seed=1)

    def score(t, s):
        turned = [
            rotate(x, rotary_frequencies(8), p, interleaved=interleaved)
            for x, p in ((query, t), (key, s))
        ]
        return float(np.sum(to_numpy(turned[0]) * to_numpy(turned[1])))

    assert abs(score(9, 2) - score(107, 100)) < 1e-5
    assert abs(score(9, 2) - score(9, 3)) > 1e-3


@pytest.mark.ci
def test_as_keras_hub_rotates():
    keras_hub = pytest.importorskip("keras_hub")
    theirs = keras_hub.layers.RotaryEmbedding(sequence_axis=1, feature_axis=-1)
    x = draw(2, 5, 3, 8)
    for start in (0, 7):
        np.testing.assert_allclose(
            rotate(x, rotary_frequencies(8), start),
            theirs(x, start_index=start),
            atol=3e-7,
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_positions_are_counted_in_float32(dtype):
    """bfloat16 takes the position 257 for 256, float16 2049 for 2048."""
    x = keras.ops.ones((1, 2, 1, 2), dtype)
    for start in (256, 2048):
        found = rotate(x, [1.0], start)
        assert keras.backend.standardize_dtype(found.dtype) == dtype
        expected = to_numpy(rotate(np.ones((1, 2, 1, 2)), [1.0], start))
        found = to_numpy(keras.ops.cast(found, "float32"))
        assert np.abs(found - expected).max() < 1e-2


@pytest.mark.every_backend
def test_rows_may_begin_at_positions_of_their_own():
    x, frequencies = draw(3, 4, 2, 6), rotary_frequencies(6)
    found = to_numpy(rotate(x, frequencies, np.array([0, 5, 2])))
    for row, start in enumerate((0, 5, 2)):
        alone = to_numpy(rotate(x[row : row + 1], frequencies, start))
        np.testing.assert_allclose(found[row], alone[0], atol=1e-6)


@pytest.mark.parametrize(
    ("function", "sizes", "options"),
    [
        (rotary_frequencies, (16,), {"base": 500}),
        (ntk_frequencies, (16, 4), {"base": 500}),
        (
            yarn_frequencies,
            (16, 4, 640),
            {"base": 500, "slow": 9, "fast": 60, "truncate": False},
        ),
    ],
)
def test_every_option_moves_the_frequencies(function, sizes, options):
    for name, value in options.items():
        found = function(*sizes, **{name: value})
        assert not np.allclose(found, function(*sizes), rtol=1e-3), name


def test_frequencies_for_longer_texts():
    plain = rotary_frequencies(16)
    np.testing.assert_allclose(plain, 10_000 ** (-np.arange(8) / 8))
    ratio = ntk_frequencies(16, factor=4) / plain
    assert abs(ratio[0] - 1) < 1e-12 and abs(ratio[-1] - 1 / 4) < 1e-12
    assert (np.diff(ratio) < 0).all()
    ratio = yarn_frequencies(16, 4, trained_length=64, ramp="turns") / plain
    np.testing.assert_allclose(ratio[:3], [0.472, 0.304, 0.25], atol=5e-4)
    # A pair that turned 32 times or more keeps its frequency.
    assert yarn_frequencies(16, 4, 4096, ramp="turns")[0] == 1
    # Positions divided by 4 are frequencies divided by 4.
    x = np.repeat(draw(1, 1, 1, 16), 9, axis=1)
    fast, slow = (to_numpy(rotate(x, f)) for f in (plain, plain / 4))
    np.testing.assert_allclose(slow[:, 8], fast[:, 2], atol=1e-6)


@pytest.mark.parametrize("name", sorted({x.split("/")[0] for x in YARN}))
def test_yarn_is_that_of_transformers(name):
    width, factor, length, base, truncated, *scales = YARN[f"{name}/parameters"]
    found = yarn_frequencies(
        int(width), factor, length, base, truncate=bool(truncated)
    )
    expected = YARN[f"{name}/frequencies"]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    scales = [x for x in scales if not np.isnan(x)]
    magnitude = yarn_magnitude(factor, *scales)
    assert abs(magnitude - YARN[f"{name}/magnitude"]) < 1e-12


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: yarn_frequencies(16, 4, 64, ramp="r"), "ramp='r'"),
        (lambda: rotary_frequencies(3), "must be even. Received: width=3"),
        (lambda: ntk_frequencies(2, 4), "above 2. Received: width=2"),
        (lambda: rotate(np.ones((1, 1, 1, 3)), [1, 1]), "turn 4 features"),
        (
            lambda: RotaryAttention(2, 4, frequencies=[1, 1, 1]),
            "Received: 3 frequencies",
        ),
        (lambda: RotaryAttention(6, 4, num_kv_heads=4), "must divide"),
        (lambda: ALiBiAttention(6, 4, num_kv_heads=0), "positive integer"),
        (lambda: AttentionBlock(3, 4, 8), "Received: 3"),
        (lambda: BlockLanguageModel(5, 4, [3]), "Received: [3]"),
    ],
)
def test_what_cannot_be_is_refused(call, told):
    with pytest.raises(ValueError, match=told.replace("[", r"\[")):
        call()


def with_weights_of(one, other, *shapes):
    for layer in (one, other):
        layer.build(*shapes)
    one.set_weights(other.get_weights()[: len(one.weights)])


@pytest.mark.parametrize(
    "layer",
    [
        RotaryAttention(4, 6, num_kv_heads=2, frequencies=[]),
        ALiBiAttention(4, 6, num_kv_heads=2),
    ],
)
def test_without_frequencies_or_slopes_nothing_is_left(layer, monkeypatch):
    from d2l_attention.layers import relative_positions

    monkeypatch.setattr(relative_positions, "alibi_slopes", np.zeros)
    x = draw(2, 7, 5)
    plain = GroupedQueryAttention(4, 2, 6)
    with_weights_of(plain, layer, x.shape)
    np.testing.assert_allclose(
        to_numpy(layer(x, use_causal_mask=True)),
        to_numpy(plain(x, use_causal_mask=True)),
        atol=1e-6,
    )


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_the_last_queries_alone_get_what_they_got_among_all(make):
    layer, x = make(), draw(2, 11, 7)
    whole = layer(x, use_causal_mask=True)
    last = layer(x[:, 8:], x, use_causal_mask=True)
    np.testing.assert_allclose(
        to_numpy(whole)[:, 8:], to_numpy(last), atol=1e-6
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"num_buckets": 5}, "num_buckets=5"),
        ({"num_buckets": 6, "bidirectional": True}, "num_buckets=6"),
        ({"num_buckets": 2, "bidirectional": True}, "num_buckets=2"),
        ({"max_distance": 16}, "max_distance=16"),
    ],
)
def test_buckets_that_would_never_be_met_are_refused(options, told):
    """6 in two directions left two of each three without a distance."""
    with pytest.raises(ValueError, match=told):
        T5Attention(2, 3, **options)
    with pytest.raises(ValueError, match=told):
        relative_buckets(np.arange(3), np.arange(3), **options)


@pytest.mark.parametrize(
    "options",
    [
        {"num_buckets": 4, "max_distance": 5},
        {"num_buckets": 8, "max_distance": 7, "bidirectional": True},
    ],
)
def test_t5_asks_for_the_buckets_that_it_was_made_with(options):
    layer, places = T5Attention(2, 4, **options), np.arange(9)
    layer.build((None, None, 8))
    layer.table.assign(draw(*layer.table.shape))
    buckets = to_numpy(relative_buckets(places, places, **options))
    expected = np.moveaxis(to_numpy(layer.table)[buckets], -1, 0)
    np.testing.assert_array_equal(
        to_numpy(layer.bias(places, places)), expected
    )


@pytest.mark.parametrize("num_buckets", [4, 8, 32])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_each_bucket_holds_a_distance(num_buckets, bidirectional):
    places = np.arange(300)
    found = relative_buckets(
        places, places, num_buckets, bidirectional=bidirectional
    )
    met = np.unique(to_numpy(found))
    # Of the keys after the query, none is at distance 0.
    never = [num_buckets // 2] if bidirectional else []
    assert [*met] == [x for x in range(num_buckets) if x not in never]


def test_the_slopes_of_alibi():
    for heads in (1, 2, 4, 8):
        expected = [2 ** (-8 * h / heads) for h in range(1, heads + 1)]
        np.testing.assert_allclose(alibi_slopes(heads), expected)
    between = [*alibi_slopes(8), *alibi_slopes(16)[:8:2]]
    np.testing.assert_allclose(alibi_slopes(12), between)


@pytest.mark.ci
def test_slopes_as_keras_hub_has_them():
    keras_hub = pytest.importorskip("keras_hub")
    for heads in (1, 8, 12):
        theirs = keras_hub.layers.AlibiBias()(np.zeros((1, heads, 1, 2)))
        theirs = to_numpy(theirs)[0, :, 0]
        found = theirs[:, 1] - theirs[:, 0]
        np.testing.assert_allclose(found, alibi_slopes(heads), rtol=1e-6)


@pytest.mark.every_backend
def test_equal_scores_fall_as_alibi_says():
    places = np.arange(64)
    bias = alibi_bias([0.5], places, places)
    x = np.zeros((1, 64, 1, 2), "float32")
    mask = places <= places[:, None]
    _, weights = biased_attention(x, x, x, bias, mask)
    last = to_numpy(weights)[0, 0, -1, ::-1]
    assert abs(last @ places - 1.5415) < 5e-5  # 1 / (√e − 1)
    assert abs(last[:8].sum() - (1 - np.exp(-4))) < 1e-6


def test_a_bias_that_no_half_precision_could_hold():
    """bfloat16 has one number for -2047.5, -2047 and -2046.5."""
    places = np.arange(4096)
    bias = alibi_bias([0.5], places[-1:], places)
    x = keras.ops.zeros((1, 4096, 1, 2), "bfloat16")
    _, weights = biased_attention(x[:, -1:], x, x, bias, places < 3)
    found = to_numpy(keras.ops.cast(weights, "float32"))[0, 0, 0, :3]
    ratio = np.exp(-0.5)
    np.testing.assert_allclose(found[:-1] / found[1:], ratio, rtol=2e-2)


@pytest.mark.every_backend
@pytest.mark.parametrize(("bidirectional", "last"), [(False, 113), (True, 91)])
def test_buckets_as_in_the_code_of_t5(bidirectional, last):
    offsets = np.arange(-300, 301)
    found = to_numpy(
        relative_buckets(
            np.array([300]), np.arange(601), bidirectional=bidirectional
        )
    )[0]
    size, expected = 32, np.zeros(601, int)
    if bidirectional:
        size, expected = 16, 16 * (offsets > 0)
        back = np.abs(offsets)
    else:
        back = np.maximum(-offsets, 0)
    alone = size // 2
    logs = np.log(np.maximum(back, 1) / alone) / np.log(128 / alone)
    far = np.minimum(alone + (logs * alone).astype(int), size - 1)
    expected = expected + np.where(back < alone, back, far)
    np.testing.assert_array_equal(found, expected)
    full = np.flatnonzero(found[:301] == size - 1)
    assert 300 - full.max() == last and full.min() == 0


def test_a_bucket_begins_at_a_whole_number_and_not_behind_it():
    """2 · 49^(1/2) and 4 · 12.25^(2/4) are 14, by logarithms a little more."""
    distances = np.array([13, 14])
    for num_buckets, longest, last in ((4, 98, 3), (8, 49, 6)):
        found = relative_buckets(
            np.array([99]), 99 - distances, num_buckets, longest
        )
        assert to_numpy(found).tolist() == [[last - 1, last]]


def test_keys_after_the_query_are_in_the_bucket_of_distance_0():
    found = relative_buckets(np.arange(3), np.arange(3))
    assert to_numpy(found).tolist() == [[0, 0, 0], [1, 0, 0], [2, 1, 0]]


def make_model(*patterns, **options):
    blocks = [AttentionBlock(pattern, 8, 16) for pattern in patterns]
    return BlockLanguageModel(11, 8, blocks, **options)


def test_a_model_of_blocks_that_differ(tmp_path):
    model = make_model(
        RotaryAttention(2, 4, num_kv_heads=1),
        ALiBiAttention(2, 4),
        RotaryAttention(2, 4, frequencies=[]),
        max_length=9,
    )
    ids = np.array([[3, 1, 4, 1, 5], [2, 7, 0, 0, 0]])
    logits, maps = model(ids, return_attention_scores=True)
    assert [*maps] == [f"block_{i}/self_attention" for i in range(3)]
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert_all_close([loaded(ids)], [logits])
    state = loaded.start(ids[:, :2])
    for t in range(2, 5):
        found, state = loaded.step(ids[:, t], state)
        assert_all_close([found[0]], [logits[0, t]])


def test_blocks_of_one_pattern_share_nothing():
    pattern = RotaryAttention(2, 4)
    model = make_model(pattern, pattern)
    model(np.ones((1, 3), "int32"))
    one, other = (b.self_attention.query_layer.kernel for b in model.blocks)
    assert one is not other
    assert np.abs(to_numpy(one) - to_numpy(other)).max() > 0.1
