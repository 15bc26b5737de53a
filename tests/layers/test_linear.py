"""Linear attention: the formula, its limits, chunks, decoding, oracles."""

from pathlib import Path

from contract import (
    CAN_COMPILE,
    draw,
    gradients,
    input_gradients,
    on_every_backend,
    to_numpy,
)
from d2l_attention import (
    AttentionBlock,
    BlockLanguageModel,
    DecayedAttention,
    DeltaAttention,
    GatedDeltaAttention,
    GatedLinearAttention,
    LinearAttention,
    RotaryAttention,
    delta_attention,
    linear_attention,
    linear_attention_weights,
    recurrent_attention,
)
import keras
from keras import ops
import numpy as np
import pytest

LAYERS = {
    "linear": LinearAttention,
    "decayed": DecayedAttention,
    "gated": GatedLinearAttention,
    "delta": DeltaAttention,
    "gated delta": GatedDeltaAttention,
}
SIZES = {"num_heads": 3, "key_dim": 5, "value_dim": 2}
RULES = {  # whether it decays, and whether it has the delta rule
    "linear": (False, False),
    "gated": (True, False),
    "delta": (False, True),
    "gated delta": (True, True),
}


def inputs(length, rule="gated delta", dtype="float32", with_state=False):
    """Of B = 2, H = 3, K = 5, V = 7; keys of length 1."""
    has_decay, has_strength = RULES[rule]
    random = np.random.default_rng(length)
    query, key = random.normal(size=(2, 2, length, 3, 5))
    key = key / np.linalg.norm(key, axis=-1, keepdims=True)
    value = random.normal(size=(2, length, 3, 7))
    log_decay = -random.exponential(size=(2, length, 3))
    strength = random.uniform(0, 2, size=(2, length, 3))
    state = random.normal(size=(2, 3, 5, 7))
    found = {
        "query": query,
        "key": key,
        "value": value,
        "log_decay": log_decay if has_decay else None,
        "strength": strength if has_strength else None,
        "state": state if with_state else None,
    }
    return {n: x.astype(dtype) for n, x in found.items() if x is not None}


def in_chunks(parts, **options):
    by_rule = delta_attention if "strength" in parts else linear_attention
    return by_rule(**parts, **options)


def by_loops(query, key, value, log_decay=None, strength=None, state=None):
    """The equation in NumPy, one sentence, head and token at a time."""
    batch, length, heads, width = key.shape
    output = np.zeros(value.shape)
    last = np.zeros((batch, heads, width, value.shape[-1]))
    for b in range(batch):
        for h in range(heads):
            s = last[b, h] if state is None else state[b, h].copy()
            for t in range(length):
                k, v = key[b, t, h], value[b, t, h]
                if log_decay is not None:  # () or (K,)
                    s = (np.exp(log_decay[b, t, h]) * np.ones(width))[
                        :, None
                    ] * s
                if strength is not None:
                    v = strength[b, t, h] * (v - s.T @ k)
                s = s + np.outer(k, v)
                output[b, t, h] = s.T @ query[b, t, h]
            last[b, h] = s
    return output, last


def assert_close(found, expected, atol=1e-5):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), atol=atol)


@pytest.mark.parametrize(
    "with_state", [False, pytest.param(True, marks=pytest.mark.every_backend)]
)
@pytest.mark.parametrize("rule", RULES)
def test_the_formula_token_by_token_and_in_chunks(rule, with_state):
    parts = inputs(19, rule, with_state=with_state)
    expected = by_loops(**parts)
    assert_close(recurrent_attention(**parts), expected)
    for size in (1, 6, 19, 64):  # 6 leaves a ragged chunk of 1
        assert_close(in_chunks(parts, chunk_size=size), expected)


def test_in_float64_all_three_forms_agree_to_its_last_digits():
    for length in (0, 1, 3, 64, 131):
        for rule in RULES:
            parts = inputs(length, rule, "float64", with_state=True)
            expected = recurrent_attention(**parts)
            found = in_chunks(parts)
            assert keras.backend.standardize_dtype(found[1].dtype) == "float64"
            assert_close(found, expected, atol=1e-12)
            del parts["state"]
            output, _ = recurrent_attention(**parts)
            value = parts.pop("value")
            weights = to_numpy(linear_attention_weights(**parts))
            assert (np.triu(weights, 1) == 0).all()
            found = np.einsum("bhts,bshv->bthv", weights, value)
            assert_close([found], [output], atol=1e-12)


def test_each_feature_may_have_a_decay_of_its_own():
    parts = inputs(13, "delta", with_state=True)
    parts["log_decay"] = -np.abs(draw(2, 13, 3, 5))
    assert_close(recurrent_attention(**parts), by_loops(**parts))


def test_the_state_of_one_part_goes_on_in_the_next():
    parts = inputs(23, with_state=True)
    whole = in_chunks(parts, chunk_size=4)
    first = {n: x if n == "state" else x[:, :9] for n, x in parts.items()}
    start, state = in_chunks(first, chunk_size=4)
    rest = {n: x[:, 9:] for n, x in parts.items() if n != "state"}
    end, state = in_chunks({**rest, "state": state}, chunk_size=4)
    output = np.concatenate([to_numpy(start), to_numpy(end)], axis=1)
    assert_close((output, state), whole)


@pytest.mark.parametrize("function", [recurrent_attention, linear_attention])
def test_a_gate_of_1_keeps_all_and_a_gate_of_0_nothing(function):
    parts = inputs(19, "linear")
    open_ = function(**parts, log_decay=np.zeros((2, 19, 3), "float32"))
    assert_close(open_, function(**parts))
    shut = np.full((2, 19, 3), -np.inf, "float32")
    found, _ = function(**parts, log_decay=shut)
    own = (parts["query"] * parts["key"]).sum(-1, keepdims=True)
    assert_close([found], [own * parts["value"]])


def test_a_strong_decay_takes_no_digits_from_those_after_it():
    """A difference of sums from the beginning would have lost them."""
    length = 40
    log_decay = np.full((1, length, 1), -1e-3, "float32")
    log_decay[0, 5] = -3e4
    ones = np.ones((1, length, 1, 1), "float32")
    found, _ = linear_attention(ones, ones, ones, log_decay)
    expected = np.exp(-1e-3 * np.arange(length - 5)).cumsum()
    np.testing.assert_allclose(
        to_numpy(found)[0, 5:, 0, 0], expected, rtol=1e-6
    )


def test_weak_writes_of_the_delta_rule_are_linear_attention():
    parts = inputs(19, "linear", "float64")
    weak = np.full((2, 19, 3), 1e-7)
    found, _ = delta_attention(**parts, strength=weak)
    assert_close([found / 1e-7], [linear_attention(**parts)[0]], atol=1e-4)


@pytest.mark.every_backend
def test_with_full_strength_the_last_key_gives_its_value():
    parts = inputs(19, "linear")
    strength = np.ones((2, 19, 3), "float32")
    found, _ = delta_attention(
        parts["key"], parts["key"], parts["value"], strength, chunk_size=6
    )
    np.testing.assert_allclose(to_numpy(found), parts["value"], atol=1e-5)


def test_one_key_over_and_over_loses_no_digits():
    """Powers of the chunk's matrix would: they grow to 10¹⁸."""
    key = np.ones((1, 64, 1, 1), "float32")
    value, strength = draw(1, 64, 1, 3), np.ones((1, 64, 1), "float32")
    found, state = delta_attention(key, key, value, strength)
    np.testing.assert_allclose(to_numpy(found), value, atol=4e-6)
    np.testing.assert_allclose(to_numpy(state)[0, 0, 0], value[0, -1, 0], 1e-5)


def test_recall_as_predicted():
    """Of n keys in 64 features the error is (n − 1)/64, or (1 − 1/64)ⁿ."""
    n, width, heads = 64, 64, 200
    random = np.random.default_rng(0)
    key = random.normal(size=(1, n, heads, width))
    key = key / np.linalg.norm(key, axis=-1, keepdims=True)
    value = random.normal(size=(1, n, heads, 5))
    _, state = linear_attention(key, key, value)
    found = np.einsum("bthk,bhkv->bthv", key, to_numpy(state))
    assert abs(((found - value) ** 2).mean() - 63 / 64) < 0.02
    target = random.normal(size=(1, heads, width, 5))
    value = np.einsum("bthk,bhkv->bthv", key, target)
    _, state = delta_attention(key, key, value, np.ones((1, n, heads)))
    left = ((to_numpy(state) - target) ** 2).sum() / (target**2).sum()
    assert abs(left - (1 - 1 / 64) ** n) < 0.01


def test_the_parity_of_5000_bits():
    bits = np.random.default_rng(0).integers(0, 2, 5000)
    one = np.ones((1, 5000, 1, 1))
    found, _ = delta_attention(
        one, one, 0 * one, 2.0 * bits[None, :, None], state=one[:, :1]
    )
    parity = 1 - 2 * (bits.cumsum() % 2)
    np.testing.assert_array_equal(np.sign(to_numpy(found).ravel()), parity)


@pytest.mark.every_backend
def test_as_transformers_computes_it():
    path = Path(__file__).parents[1] / "oracles" / "gated_delta_rule.npz"
    parts = dict(np.load(path))
    answers = {x: parts.pop(x) for x in [*parts] if "/" in x}
    for name in ("query", "key"):
        squares = (parts[name] ** 2).sum(-1, keepdims=True)
        parts[name] = parts[name] / np.sqrt(squares + 1e-6)
    parts["query"] = parts["query"] / parts["query"].shape[-1] ** 0.5
    for name in ("chunked", "recurrent"):
        expected = answers[f"{name}/output"], answers[f"{name}/state"]
        assert_close(in_chunks(parts), expected, atol=1e-6)
        assert_close(recurrent_attention(**parts), expected, atol=1e-6)


@pytest.mark.ci
def test_as_keras_hub_computes_it():
    rule = pytest.importorskip(
        "keras_hub.src.models.qwen3_5.qwen3_5_gated_delta_net"
    )
    x = draw(2, 83, 6)
    layer = GatedDeltaAttention(3, 5, value_dim=2)
    found = to_numpy(layer(x))
    projected = [layer.query_layer, layer.key_layer, layer.value_layer]
    query, key, value = (
        np.reshape(to_numpy(f(x)), (2, 83, 3, -1)) for f in projected
    )
    heads, _ = rule._chunk_gated_delta_rule(
        query, key, value, layer.log_decay(x), layer.strength(x)
    )
    assert_close([layer.join_heads(heads)], [found], atol=1e-6)


@pytest.mark.every_backend
def test_gradients_are_those_of_the_equation():
    parts = inputs(11, with_state=True)
    names, arrays = zip(*parts.items(), strict=True)

    def total(function):
        return input_gradients(
            lambda *x: sum(
                ops.sum(y * y)
                for y in function(dict(zip(names, x, strict=True)))
            ),
            *arrays,
        )

    found = total(lambda parts: in_chunks(parts, chunk_size=4))
    expected = total(lambda parts: recurrent_attention(**parts))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_the_layer_is_its_weights_times_the_values(make):
    layer, x = make(**SIZES), draw(2, 11, 7)
    found = layer(x)
    weights = linear_attention_weights(
        layer.project_query(x) / 5**0.5,
        layer.project_key(x),
        layer.log_decay(x),
        layer.strength(x),
    )
    value = to_numpy(layer.project_value(x))
    heads = np.einsum("bhts,bshv->bthv", to_numpy(weights), value)
    assert_close([layer.join_heads(heads)], [found])


def test_the_rates_of_the_fixed_decay():
    layer = DecayedAttention(3, 5)
    rates = np.exp(to_numpy(layer.log_decay(draw(1, 2, 7))))
    expected = [1 - 1 / 32, 1 - 1 / 64, 1 - 1 / 128]
    np.testing.assert_allclose(rates, [[expected] * 2], rtol=1e-6)


@pytest.mark.parametrize("make", on_every_backend(LAYERS, "gated delta"))
def test_padding_changes_no_state(make):
    """Before, between and after the tokens: as if it were not there."""
    layer, x = make(**SIZES), draw(1, 12, 7)
    layer.build(x.shape)
    tokens = np.array([[0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0]], bool)
    removed, last = layer.read_on(x[:, tokens[0]])
    found, state = layer.read_on(x, tokens)
    found = to_numpy(found)
    assert_close((found[:, tokens[0]], state), (removed, last))
    assert (found[:, 0] == 0).all()  # nothing to attend to yet
    for masks in ({"query_mask": tokens}, {"key_mask": tokens}):
        assert_close([layer(x, **masks)], [found])


@pytest.mark.parametrize("make", on_every_backend(LAYERS, "gated delta"))
def test_token_by_token_equals_all_at_once(make):
    block = AttentionBlock(make(**SIZES), 7, 13)
    x = draw(2, 9, 7)
    whole = to_numpy(block(x))
    cache = block.make_cache(2, 1_000_000)
    assert to_numpy(cache["state"]).shape == (2, 3, 5, 2)
    first, cache = block.step(x[:, :4], np.array([[0, 1, 2, 3]] * 2), cache)
    assert_close([first], [whole[:, :4]])
    for t in range(4, 9):
        y, cache = block.step(x[:, t : t + 1], np.array([[t]] * 2), cache)
        assert_close([y[:, 0]], [whole[:, t]])


def make_model(*patterns):
    blocks = [AttentionBlock(pattern, 8, 16) for pattern in patterns]
    return BlockLanguageModel(11, 8, blocks, max_length=9)


def test_a_hybrid_with_prompts_of_several_lengths(tmp_path):
    model = make_model(GatedDeltaAttention(2, 4), RotaryAttention(2, 4))
    ids = np.array([[3, 1, 4, 6], [2, 7, 0, 0]])
    token = np.array([5, 5])
    found, state = model.step(token, model.start(ids))
    again, _ = model.step(np.array([8, 8]), state)
    for row, length in enumerate((4, 2)):
        alone = np.append(ids[row, :length], [5, 8])[None]
        expected = to_numpy(model(alone))[0]
        assert_close([found[row]], [expected[-2]])
        assert_close([again[row]], [expected[-1]])
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert_close([loaded(ids)], [model(ids)], atol=1e-6)


def test_a_model_returns_the_maps_of_blocks_that_form_weights():
    model = make_model(GatedDeltaAttention(2, 4), RotaryAttention(2, 4))
    ids = np.array([[3, 1, 4, 6]])
    logits, maps = model(ids, return_attention_scores=True)
    assert [*maps] == ["block_1/self_attention"]
    assert_close([logits], [model(ids)], atol=1e-6)
    for x in (draw(1, 3, 8), keras.KerasTensor((1, 3, 8))):
        with pytest.raises(ValueError, match="linear_attention_weights"):
            model.blocks[0](x, return_attention_scores=True)
    symbolic = keras.Input((None,), dtype="int32")
    _, maps = model(symbolic, return_attention_scores=True)
    assert [*maps] == ["block_1/self_attention"]


@pytest.mark.parametrize("make", on_every_backend(LAYERS, "gated delta"))
def test_the_contract_as_far_as_it_applies(make, tmp_path):
    """Compiled, in half precision, from a file, of unknown length."""
    layer, x = make(**SIZES), draw(2, 11, 7)
    expected = to_numpy(layer(x))
    before = dict(vars(layer))
    layer(x)
    assert before.keys() == vars(layer).keys()
    assert all(before[name] is vars(layer)[name] for name in before)
    for variable, gradient in zip(
        layer.trainable_variables,
        gradients(layer, x, {}, draw(2, 11, 7, seed=5)),
        strict=True,
    ):
        gradient = to_numpy(gradient)
        assert np.isfinite(gradient).all() and np.abs(gradient).max() > 0, (
            variable.path
        )
    query = keras.Input((None, 7))
    model = keras.Model(query, layer(query))
    assert model.output_shape == (None, None, 7)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_close([loaded(x)], [expected], atol=1e-6)
    assert loaded.layers[-1].get_config() == layer.get_config()
    model.compile(jit_compile=CAN_COMPILE)
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, atol=1e-5)
    for policy in ("mixed_float16", "mixed_bfloat16"):
        half = make(**SIZES, dtype=policy)
        output = half(x)
        compute = policy.removeprefix("mixed_")
        assert keras.backend.standardize_dtype(output.dtype) == compute
        assert half(query).dtype == compute
        assert np.isfinite(to_numpy(ops.cast(output, "float32"))).all()
        state = half.make_cache(1, 3)["state"]
        assert keras.backend.standardize_dtype(state.dtype) == "float32"
        _, cache = half.step(x[:1], None, {"state": state})
        assert (
            keras.backend.standardize_dtype(cache["state"].dtype) == "float32"
        )


@pytest.mark.parametrize("make", [DeltaAttention, GatedDeltaAttention])
def test_vectors_whose_squares_float16_does_not_hold(make):
    """They have length 1 all the same."""
    layer, half = make(**SIZES), make(**SIZES, dtype="float16")
    x = draw(2, 11, 7)
    half.build(x.shape)
    layer.build(x.shape)
    expected = to_numpy(layer(x))
    half.set_weights(layer.get_weights())
    for name in ("query", "key"):
        kernel = getattr(half, f"{name}_layer").kernel
        kernel.assign(1000 * kernel)
    assert np.abs(to_numpy(half.key_layer(x))).max() > 256
    assert_close([half(x)], [expected], atol=1e-2)


@pytest.mark.every_backend
@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_no_tokens_make_none(make):
    layer = make(**SIZES)
    layer(draw(2, 3, 7))
    assert tuple(layer(draw(2, 0, 7)).shape[:2]) == (2, 0)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda x: linear_attention(x, x, x, x),
            r"recurrent_attention takes one for each feature. Received: "
            r"log_decay \(2, 3, 4, 5\)",
        ),
        (lambda x: linear_attention(x, x, x, chunk_size=0), "chunk_size"),
        (lambda x: LinearAttention(0, 3), "num_heads=0"),
        (
            lambda x: DeltaAttention(2, 3)(x[0], use_causal_mask=False),
            "always causal. Received: use_causal_mask=False",
        ),
        (
            lambda x: AttentionBlock(LinearAttention(2, 3), 5, 8)(
                x[0], attention_mask=np.ones((4, 4), "bool")
            ),
            "the same for every query",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, told):
    x = draw(2, 3, 4, 5)
    with pytest.raises(ValueError, match=told):
        call(x)


def test_a_mask_of_pairs_is_refused_by_name():
    x, mask = draw(2, 4, 5), np.ones((4, 4), "bool")
    with pytest.raises(TypeError, match="takes no attention_mask"):
        LinearAttention(2, 3)(x, attention_mask=mask)
