"""Windows, sinks and streaming: formulas, caches of one size, oracles."""

from pathlib import Path

import contract
from contract import (
    attention_inputs,
    check_layer,
    check_steps,
    draw,
    gradients,
    in_a_block,
    needs_sliding_window,
    on_every_backend,
    read_in_steps,
    to_numpy,
)
from d2l_attention import (
    AttentionBlock,
    BlockLanguageModel,
    ModernAttention,
    RotaryAttention,
    SinkAttention,
    StreamingAttention,
    WindowAttention,
    add_sinks,
    flash_attention,
    multi_head_attention,
    rotary_frequencies,
    rotate,
    sink_attention,
    window_mask,
)
from d2l_attention.layers.windows_and_sinks import ring_positions
import keras
from keras import ops
import numpy as np
import pytest

SIZES = {"num_heads": 6, "key_dim": 4, "value_dim": 5, "output_dim": 11}
LAYERS = {
    "window": lambda **k: WindowAttention(window=7, **SIZES, **k),
    "grouped window": lambda **k: WindowAttention(
        window=11, num_kv_heads=2, frequencies=[0.5], **SIZES, **k
    ),
    "sink": lambda **k: SinkAttention(num_kv_heads=3, **SIZES, **k),
    "sink and window": lambda **k: SinkAttention(window=7, **SIZES, **k),
    "streaming": lambda **k: StreamingAttention(
        window=3, num_sinks=2, num_kv_heads=2, **SIZES, **k
    ),
}  # fmt: skip
NAMES = {name: name for name in LAYERS}
WITH_WINDOW = {k: make for k, make in LAYERS.items() if k != "streaming"}


def assert_close(found, expected, atol):
    np.testing.assert_allclose(to_numpy(found), to_numpy(expected), 0, atol)


@pytest.mark.parametrize(
    "name", on_every_backend(NAMES, "sink and window", "streaming")
)
def test_contract(name, monkeypatch):
    if name != "streaming":  # rows sum to less than 1, or see no key
        monkeypatch.setattr(contract, "_check_weights", lambda *_: None)
    check_layer(
        LAYERS[name],
        attention_inputs(),
        num_heads=6,
        output_dim=11,
        by_position=True,
    )


def loop(query, key, value, sinks, mask):
    """One query of one head at a time, in float64."""
    b, t, h, k = query.shape
    output = np.zeros((b, t, h, value.shape[-1]))
    weights = np.zeros((b, h, t, key.shape[1]))
    for i in np.ndindex(b, t, h):
        row, query_at, head = i
        g = head * key.shape[2] // h
        seen = np.flatnonzero(mask[row, query_at])
        scores = key[row, seen, g] @ query[i] / k**0.5
        exp = np.exp(scores)
        share = exp / (exp.sum() + np.exp(sinks[head]))
        weights[row, head, query_at, seen] = share
        output[i] = share @ value[row, seen, g]
    return output, weights


def heads(t=5, s=7, h=6, g=3):
    """Queries, keys and values, sinks, and a mask with an empty row."""
    mask = np.random.default_rng(1).random((2, t, s)) < 0.6
    mask[1, 3] = False
    arrays = draw(2, t, h, 4), draw(2, s, g, 4), draw(2, s, g, 3)
    return (*arrays, draw(h, seed=2), mask)


@pytest.mark.every_backend
def test_sinks_as_their_formula_says():
    arrays = heads()
    wide = [x.astype("float64") for x in arrays[:4]]
    for found, expected in zip(
        sink_attention(*arrays), loop(*wide, arrays[4]), strict=True
    ):
        assert_close(to_numpy(found), expected, atol=1e-6)


@pytest.mark.every_backend
def test_a_sink_is_a_gate_over_plain_attention():
    query, key, value, sinks, mask = heads(h=3)
    expected, weights = map(
        to_numpy, sink_attention(query, key, value, sinks, mask)
    )
    assert (expected[1, 3] == 0).all() and (weights[1, :, 3] == 0).all()
    assert (weights.sum(-1) < 1).all()
    found = flash_attention(
        query, key, value, attention_mask=mask, return_log_sum_exp=True
    )
    assert_close(add_sinks(*found, sinks), expected, atol=1e-6)
    # No sink at all, and as many equal scores as e^σ.
    none, _ = sink_attention(query, key, value, [-np.inf] * 3, mask)
    plain, _ = multi_head_attention(query, key, value, mask)
    assert_close(none, plain, atol=1e-6)
    half, _ = sink_attention(0 * query, key, value, [np.log(7)] * 3)
    assert_close(to_numpy(half)[0, 0], value[0].mean(0) / 2, atol=1e-6)


def test_splits_of_the_keys_have_the_sink_once():
    query, key, value, sinks, _ = heads(h=3)
    whole, _ = sink_attention(query, key, value, sinks)
    parts = [
        flash_attention(
            query, key[:, part], value[:, part], return_log_sum_exp=True
        )
        for part in (slice(0, 3), slice(3, 7))
    ]
    outputs = np.stack([to_numpy(x) for x, _ in parts])
    norms = np.stack([to_numpy(x) for _, x in parts])  # (2, B, H, T)
    total = np.logaddexp(*norms)
    shares = np.exp(norms - total).transpose(0, 1, 3, 2)[..., None]
    merged = (shares * outputs).sum(0)
    merged, total = map(ops.convert_to_tensor, (merged, total))
    found = to_numpy(add_sinks(merged, total, sinks))
    assert_close(found, whole, atol=1e-6)
    twice = add_sinks(merged, total, sinks + np.log(2))
    assert np.abs(to_numpy(twice) - found).max() > 0.01


def test_no_sink_and_nothing_to_attend_to_is_zero():
    """Both logarithms are −inf, and their difference is no number."""
    query, key, value = draw(1, 2, 2, 3), draw(1, 5, 2, 3), draw(1, 5, 2, 7)
    mask = np.array([[True, True, False, True, True], [False] * 5])
    found = flash_attention(
        query, key, value, attention_mask=mask, return_log_sum_exp=True
    )
    sinks = np.array([-np.inf, 0.5], "float32")
    expected, _ = sink_attention(query, key, value, sinks, mask)
    assert_close(add_sinks(*found, sinks), expected, atol=1e-6)
    assert (to_numpy(expected)[0, 1] == 0).all()


def test_a_sink_learns_the_same_through_flash_attention():
    layer, x = SinkAttention(3, 4), draw(2, 7, 5)
    layer.build(x.shape)
    layer.sinks.assign(draw(3))

    class Fast(SinkAttention):
        def attend(self, query, key, value, mask=None, **options):
            found = flash_attention(
                query, key, value, use_causal_mask=True,
                return_log_sum_exp=True,
            )  # fmt: skip
            return self.join_heads(add_sinks(*found, self.sinks)), None

    fast = Fast(3, 4)
    fast.build(x.shape)
    fast.set_weights(layer.get_weights())
    direction = draw(2, 7, 5, seed=3)
    for found, expected in zip(
        gradients(fast, x, {}, direction),
        gradients(layer, x, {}, direction),
        strict=True,
    ):
        expected = to_numpy(expected)
        assert_close(to_numpy(found), expected, atol=1e-5)
        assert np.abs(expected).max() > 1e-3


def oracle(prefix):
    file = np.load(Path(__file__).parents[1] / "oracles" / "gpt_oss.npz")
    names = [name for name in file if name.startswith(prefix)]
    return {name.removeprefix(prefix): file[name] for name in names}


@pytest.mark.every_backend
@pytest.mark.parametrize("name", ["window", "full"])
def test_as_gpt_oss_in_transformers(name):
    expected, weights = oracle(""), oracle("weights/")
    layer = SinkAttention(
        6, 4, 4 if name == "window" else None, num_kv_heads=3, use_bias=True
    )
    layer.build(expected["x"].shape)
    projections = [
        x
        for one in "qkvo"
        for x in (
            weights[f"{one}_proj.weight"].T,
            weights[f"{one}_proj.bias"],
        )
    ]
    by_path = {x.path.split("/", 1)[1]: x for x in layer.weights}
    names = ["W_q", "W_k", "W_v", "W_o"]
    paths = [f"{x}/{y}" for x in names for y in ("kernel", "bias")]
    for path, value in zip(paths, projections, strict=True):
        by_path[path].assign(value)
    layer.sinks.assign(weights["sinks"])
    assert_close(to_numpy(layer(expected["x"])), expected[name], atol=2e-5)


def test_a_sink_of_0_is_the_zero_attention_of_torch():
    zero = oracle("zero/")
    layer = SinkAttention(2, 3, frequencies=[])
    layer.build(zero["x"].shape)
    kernels = [*np.split(zero["in_proj_weight"], 3), zero["out_proj.weight"]]
    layer.set_weights([np.zeros(2), *(x.T for x in kernels)])
    assert_close(layer(zero["x"]), zero["output"], atol=1e-6)


@needs_sliding_window
def test_as_the_sliding_window_of_keras():
    ours, x = WindowAttention(3, 4, window=3, frequencies=[]), draw(2, 7, 5)
    theirs = keras.layers.MultiHeadAttention(
        3, 4, use_bias=False, sliding_window=3
    )
    expected = theirs(x, x, use_causal_mask=True)
    ours.build(x.shape)
    for kernel, weight in zip(ours.weights, theirs.weights, strict=True):
        kernel.assign(to_numpy(weight).reshape(kernel.shape))
    assert_close(ours(x), expected, atol=1e-6)


def test_a_window_is_a_mask():
    x = draw(2, 9, 7)
    layer = WindowAttention(6, 4, 3, num_kv_heads=2)
    rotary = RotaryAttention(6, 4, num_kv_heads=2)
    for one in (layer, rotary):
        one.build(x.shape)
    rotary.set_weights(layer.get_weights())
    more = np.random.default_rng(0).random((2, 9, 9)) < 0.7
    near = to_numpy(window_mask(9, 9, before=2, after=0))
    for causal in (False, True):
        found = layer(x, attention_mask=more, use_causal_mask=causal)
        expected = rotary(x, attention_mask=more & near)
        assert_close(to_numpy(found), expected, atol=1e-6)
    wide = WindowAttention(6, 4, 9, num_kv_heads=2)
    wide.build(x.shape)
    wide.set_weights(layer.get_weights())
    full = to_numpy(rotary(x, use_causal_mask=True))
    assert_close(wide(x), full, atol=1e-6)


@pytest.mark.parametrize("pinned", [0, 2])
def test_which_token_lies_in_which_slot(pinned):
    slots = [-1] * (pinned + 3)
    for end in range(12):
        found = to_numpy(ring_positions(np.array([end]), 3, pinned))[0]
        assert found.tolist() == slots
        slots[end if end < pinned else pinned + (end - pinned) % 3] = end


@pytest.mark.parametrize(
    "make", on_every_backend(WITH_WINDOW, "sink and window")
)
def test_steps_of_any_size_equal_the_whole(make):
    check_steps(make())
    block, x = in_a_block(make()), draw(2, 5, 7)
    whole = to_numpy(block(x))
    short = read_in_steps(block, x, [3, 1, 1], max_length=5)
    assert_close(short, whole, atol=1e-5)


@pytest.mark.parametrize("num_sinks", [0, 2])
def test_a_stream_may_come_in_steps_of_any_size(num_sinks):
    block = AttentionBlock(
        StreamingAttention(4, 6, 3, num_sinks, num_kv_heads=2), 7, 13
    )
    x = draw(2, 17, 7)
    one_by_one = read_in_steps(block, x, [1] * 17)
    for steps in ([9, 1, 3, 4], [17], [1, 12, 4]):
        found = read_in_steps(block, x, steps)
        assert_close(found, one_by_one, atol=1e-5)
    # What is not full yet has forgotten nothing.
    size = num_sinks + 3
    whole = to_numpy(block(x))[:, :size]
    assert_close(one_by_one[:, :size], whole, atol=1e-5)


def stream_and_recompute(num_layers, dtype):
    """The last of 23 tokens, from the stream and from the kept text alone."""
    keras.utils.set_random_seed(0)
    pattern = StreamingAttention(2, 6, 5, 2, dtype=dtype)
    blocks = [
        AttentionBlock(pattern, 12, 24, dtype=dtype) for _ in range(num_layers)
    ]
    x = draw(1, 23, 12).astype(dtype)
    kept = x[:, [0, 1, *range(18, 23)]]
    for block in blocks:
        kept, x = to_numpy(block(kept)), read_in_steps(block, x, [1] * 23, 23)
    return np.abs(x[0, -1] - kept[0, -1]).max()


def test_a_stream_equals_recomputing_the_kept_text_at_one_layer():
    """At the second, keys have read what the kept text has not."""
    assert stream_and_recompute(1, "float32") < 1e-6
    assert stream_and_recompute(2, "float32") > 1e-3


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="JAX has no float64 unless asked, and torch mixes it with float32",
)
def test_a_stream_equals_recomputing_to_the_last_digits():
    assert stream_and_recompute(1, "float64") < 1e-14


def test_a_rotated_key_turned_back_is_a_key_of_an_earlier_position():
    key, frequencies = draw(1, 1, 2, 8), rotary_frequencies(8)
    cached = rotate(key, frequencies, start=19)
    found = rotate(cached, frequencies, start=-7)
    expected = rotate(key, frequencies, start=12)
    assert_close(found, expected, atol=1e-6)


def make_model(**options):
    patterns = [
        SinkAttention(4, 2, 3, num_kv_heads=2),
        SinkAttention(4, 2, num_kv_heads=2),
        WindowAttention(4, 2, 4),
    ]
    blocks = [AttentionBlock(pattern, 8, 16) for pattern in patterns]
    model = BlockLanguageModel(11, 8, blocks, max_length=16, **options)
    model.build((None, None))
    for block in blocks[:2]:
        block.self_attention.sinks.assign(draw(4))
    return model


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_a_model_takes_prompts_of_several_lengths(dtype, tmp_path):
    model = make_model(dtype=dtype)
    ids = np.random.default_rng(0).integers(1, 11, (3, 9))
    lengths = np.array([9, 2, 5])
    prompts = np.where(np.arange(9) < lengths[:, None], ids, 0)
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    state = loaded.start(prompts)
    more = np.random.default_rng(1).integers(1, 11, (3, 5))
    for t in range(5):
        logits, state = loaded.step(more[:, t], state)
        for row, length in enumerate(lengths):
            text = np.append(ids[row, :length], more[row, : t + 1])[None]
            expected = to_numpy(model(text))[0, -1]
            atol = 1e-5 if dtype == "float32" else 2e-2
            assert_close(logits[row], expected, atol=atol)


def test_a_stream_takes_prompts_of_several_lengths():
    pattern = StreamingAttention(2, 4, 3, 2)
    model = BlockLanguageModel(
        11, 8, [AttentionBlock(pattern, 8, 16) for _ in range(2)], max_length=64
    )
    ids = np.random.default_rng(0).integers(1, 11, (3, 9))
    lengths, token = np.array([9, 1, 6]), np.array([3, 4, 5])
    prompts = np.where(np.arange(9) < lengths[:, None], ids, 0)
    state = model.start(prompts)
    found, _ = model.step(token, state)
    for row, length in enumerate(lengths):
        alone = model.start(ids[row : row + 1, :length])
        expected, _ = model.step(token[row : row + 1], alone)
        assert_close(found[row], expected[0], atol=1e-5)
    sizes = {x.shape[1] for x in keras.tree.flatten(state["caches"])}
    assert sizes == {5}


@pytest.mark.every_backend
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_sink_in_half_precision(dtype):
    query, key, value, sinks, mask = heads()
    expected, _ = sink_attention(query, key, value, sinks, mask)
    half = [ops.cast(x, dtype) for x in (query, key, value)]
    found, weights = sink_attention(*half, sinks, mask)
    for x in (found, weights):
        assert keras.backend.standardize_dtype(x.dtype) == dtype
    found = to_numpy(ops.cast(found, "float32"))
    assert_close(found, expected, atol=3e-2)


@pytest.mark.parametrize("kind", [SinkAttention, ModernAttention])
def test_a_sink_is_not_rounded_to_bfloat16(kind):
    """Which takes 8.03 for 8, and so 3 % from the sink."""
    options = {"use_sinks": True} if kind is ModernAttention else {}
    layer, x = kind(1, 4, dtype="mixed_bfloat16", **options), draw(1, 3, 5)
    layer.build(x.shape)
    layer.query_layer.kernel.assign(np.zeros((5, 4)))  # scores of 0
    layer.sinks.assign([8.03])
    _, weights = layer(x, return_attention_scores=True)
    found = to_numpy(ops.cast(weights, "float32"))[0, 0, -1]
    np.testing.assert_allclose(found, 1 / (3 + np.exp(8.03)), rtol=0.01)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: WindowAttention(2, 4, 0), "window=0"),
        (lambda: WindowAttention(2, 4, None), "window=None"),
        (lambda: SinkAttention(2, 4, 0), "window=0"),
        (lambda: SinkAttention(2, 4, 0), "window=0"),
        (lambda: SinkAttention(2, 4, 2.5), "window=2.5"),
        (lambda: StreamingAttention(2, 4, 0), "window=0"),
        (lambda: StreamingAttention(2, 4, 3, -1), "num_sinks=-1"),
        (
            lambda: sink_attention(*heads()[:4], np.ones((5, 3), bool)),
            r"mask \(5, 3\)",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
