"""Latent attention: expanded and absorbed agree; a cache of R + P numbers."""

import json
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
    AttentionBlock,
    BlockLanguageModel,
    LatentAttention,
    PagedKVCache,
    absorbed_latent_attention,
    expanded_latent_attention,
    grouped_query_attention,
    rotate,
)
from d2l_attention.layers.latent import expand_keys, expand_values
import keras
import numpy as np
import pytest

SIZES = {
    "num_heads": 3,
    "key_dim": 5,
    "latent_dim": 7,
    "rotary_dim": 4,
    "value_dim": 2,
    "output_dim": 11,
}
LAYERS = {
    "latent": lambda **k: LatentAttention(**SIZES, **k),
    "no positions": lambda **k: LatentAttention(
        **{**SIZES, "rotary_dim": 0}, **k
    ),
    "biases": lambda **k: LatentAttention(
        frequencies=[0.5],
        interleaved=False,
        magnitude=1.2,
        use_bias=True,
        **SIZES,
        **k,
    ),
}

NAMES = {name: name for name in LAYERS}


@pytest.mark.parametrize("name", on_every_backend(NAMES, "latent"))
def test_contract(name):
    check_layer(
        LAYERS[name],
        attention_inputs(key_size=5, value_size=5),
        num_heads=3,
        output_dim=11,
        by_position=name != "no positions",
    )


def draw_inputs(rank=7, rotated=4, dtype="float64"):
    """Query, latent and the kernels: B 2, T 3, S 13, H 3, K 5, V 2."""
    shapes = (2, 3, 3, 5 + rotated), (2, 13, rank + rotated), (rank, 3, 5)
    arrays = [draw(*shape) for shape in (*shapes, (rank, 3, 2))]
    return [keras.ops.convert_to_tensor(x, dtype) for x in arrays]


def mask_with_an_empty_row():
    mask = np.random.default_rng(1).random((2, 3, 13)) < 0.6
    mask[1, 2] = False
    return mask


@pytest.mark.every_backend
@pytest.mark.parametrize("rotated", [0, 4])
@pytest.mark.parametrize(
    "attend", [expanded_latent_attention, absorbed_latent_attention]
)
def test_equals_a_loop_over_queries_and_heads(attend, rotated):
    inputs = draw_inputs(rotated=rotated, dtype="float32")
    mask = mask_with_an_empty_row()
    output, weights = map(to_numpy, attend(*inputs, mask))
    query, latent, key_kernel, value_kernel = map(to_numpy, inputs)
    for b, t, h in np.ndindex(2, 3, 3):
        seen = latent[b, mask[b, t]]
        key = np.hstack([seen[:, :7] @ key_kernel[:, h], seen[:, 7:]])
        scores = key @ query[b, t, h] / (5 + rotated) ** 0.5
        if not len(seen):
            assert (output[b, t] == 0).all() and (weights[b, :, t] == 0).all()
            continue
        expected = np.exp(scores - scores.max())
        expected /= expected.sum()
        found = weights[b, h, t]
        np.testing.assert_allclose(found[mask[b, t]], expected, atol=1e-5)
        value = seen[:, :7] @ value_kernel[:, h]
        np.testing.assert_allclose(output[b, t, h], expected @ value, atol=1e-5)


@pytest.mark.parametrize("rank", [3, 7, 19])
@pytest.mark.parametrize("dtype, near", [("float32", 1e-5), ("float64", 1e-13)])
def test_absorbed_equals_expanded(rank, dtype, near):
    if dtype == "float64" and keras.backend.backend() == "jax":
        pytest.skip("JAX computes in float32 unless it is told at its start")
    inputs, mask = draw_inputs(rank, dtype=dtype), mask_with_an_empty_row()
    one = expanded_latent_attention(*inputs, mask)
    other = absorbed_latent_attention(*inputs, mask)
    for a, b in zip(one, other, strict=True):
        assert keras.backend.standardize_dtype(b.dtype) == dtype
        largest = np.abs(to_numpy(a)).max()
        np.testing.assert_allclose(
            to_numpy(a), to_numpy(b), rtol=0, atol=near * largest
        )


@pytest.mark.parametrize(
    "attend", [expanded_latent_attention, absorbed_latent_attention]
)
def test_what_drops_weights_changes_the_output_alone(attend):
    inputs = draw_inputs()
    output, weights = attend(*inputs, None, lambda x: 0.5 * x)
    plain, same = attend(*inputs)
    np.testing.assert_array_equal(to_numpy(weights), to_numpy(same))
    np.testing.assert_allclose(output, 0.5 * to_numpy(plain), atol=1e-12)


def test_keys_and_values_of_all_heads_have_the_rank_of_the_latent():
    """A cached matrix `(S, H(K + V))` of 21 columns has rank min(R, 21)."""
    for rank in (2, 7, 30):
        latent = np.random.default_rng(rank).normal(size=(1, 50, rank))
        _, _, *kernels = draw_inputs(rank, rotated=0)
        seen = [
            to_numpy(expand(latent, kernel)).reshape(50, -1)
            for expand, kernel in zip(
                (expand_keys, expand_values), kernels, strict=True
            )
        ]
        assert np.linalg.matrix_rank(np.hstack(seen)) == min(rank, 21)


@pytest.mark.every_backend
def test_grouped_heads_are_latents_of_which_heads_select():
    """R = 2GK: a latent that holds the keys and values of G heads."""
    query, key, value = draw(2, 3, 6, 4), draw(2, 13, 2, 4), draw(2, 13, 2, 4)
    latent = np.concatenate(
        [x.reshape(2, 13, 8) for x in (key, value)], axis=-1
    )
    kernels = np.zeros((2, 16, 6, 4), "float32")
    for h in range(6):
        for i in range(2):
            rows = 8 * i + 4 * (h // 3) + np.arange(4)
            kernels[i, rows, h, np.arange(4)] = 1
    expected = grouped_query_attention(query, key, value)
    for attend in (expanded_latent_attention, absorbed_latent_attention):
        found = attend(query, latent, *kernels)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(to_numpy(a), to_numpy(b), atol=1e-6)


def test_absorbed_is_attention_of_all_heads_to_one():
    query, latent, key_kernel, value_kernel = map(to_numpy, draw_inputs())
    moved = np.einsum("bthk,rhk->bthr", query[..., :5], key_kernel)
    moved = np.concatenate([moved, query[..., 5:]], axis=-1)
    keys = latent[:, :, None]  # one head
    moved *= (keys.shape[-1] / query.shape[-1]) ** 0.5  # not by √(R + P)
    means, weights = grouped_query_attention(moved, keys, keys[..., :7])
    output = np.einsum("bthr,rhv->bthv", to_numpy(means), value_kernel)
    found = absorbed_latent_attention(query, latent, key_kernel, value_kernel)
    for a, b in zip(found, (output, weights), strict=True):
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), atol=1e-12)


def test_a_rotated_latent_could_not_be_absorbed():
    """U^Kᵀ R_Δ U^K depends on the distance Δ, so no one kernel holds it."""
    kernel = draw(8, 3, seed=1).astype("float64")
    turned = [
        to_numpy(rotate(kernel.T[:, None, None], [1.0, 0.3, 0.1, 0.03], delta))
        for delta in (0, 1, 5)
    ]
    products = [kernel.T @ x[:, 0, 0].T for x in turned]
    assert np.abs(products[0] - products[1]).max() > 0.1
    assert np.abs(products[1] - products[2]).max() > 0.1


@pytest.mark.every_backend
def test_equals_the_attention_of_deepseek_v3():
    """But for the order of columns: theirs have keys and values by head."""
    path = Path(__file__).parents[1] / "oracles/deepseek_v3_attention.npz"
    theirs = np.load(path)
    options = json.loads(str(theirs["options"]))
    x = theirs["query"]
    layer = LatentAttention(**options)
    layer.build(x.shape)
    kernels = {
        name: theirs[f"state_dict/{name}.weight"].T
        for name in ("q_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj")
    }
    k, v = options["key_dim"], options["value_dim"]
    rank, heads = options["latent_dim"], options["num_heads"]
    up = kernels["kv_b_proj"].reshape(rank, heads, k + v)
    down = kernels["kv_a_proj_with_mqa"]
    layer.query_layer.kernel.assign(kernels["q_proj"])
    layer.latent_layer.kernel.assign(down[:, :rank])
    layer.position_layer.kernel.assign(down[:, rank:])
    layer.norm.scale.assign(theirs["state_dict/kv_a_layernorm.weight"])
    layer.key_kernel.assign(up[..., :k].reshape(rank, heads * k))
    layer.value_kernel.assign(up[..., k:].reshape(rank, heads * v))
    layer.output_layer.kernel.assign(kernels["o_proj"])
    output, weights = layer(
        x, use_causal_mask=True, return_attention_scores=True
    )
    np.testing.assert_allclose(to_numpy(weights), theirs["weights"], atol=1e-6)
    np.testing.assert_allclose(to_numpy(output), theirs["output"], atol=1e-5)


def test_keys_and_values_may_be_of_two_tensors():
    """Weights come from the one, what is averaged from the other."""
    layer, inputs = LAYERS["latent"](), attention_inputs(7, 5, 5)
    output, weights = layer(**inputs, return_attention_scores=True)
    _, same = layer(
        inputs["query"], inputs["key"], return_attention_scores=True
    )
    np.testing.assert_allclose(weights, same, atol=1e-6)
    latent = inputs["value"] @ to_numpy(layer.latent_layer.kernel)
    latent /= np.sqrt((latent**2).mean(-1, keepdims=True))
    values = (latent @ to_numpy(layer.value_kernel)).reshape(2, 13, 3, 2)
    heads = np.einsum("bhts,bshv->bthv", to_numpy(weights), values)
    expected = heads.reshape(2, 11, 6) @ to_numpy(layer.output_layer.kernel)
    np.testing.assert_allclose(output, expected, atol=1e-4)


def test_the_magnitude_is_that_of_what_turns():
    x = draw(2, 5, 7)
    plain, larger = (
        LatentAttention(**SIZES, magnitude=magnitude)
        for magnitude in (1.0, 1.5)
    )
    for layer in (plain, larger):
        layer.build(x.shape)
    larger.set_weights(plain.get_weights())
    for project, size in (("project_query", 5), ("project_key", 7)):
        one, other = (
            to_numpy(getattr(layer, project)(x)) for layer in (plain, larger)
        )
        np.testing.assert_array_equal(one[..., :size], other[..., :size])
        np.testing.assert_allclose(
            1.5 * one[..., size:], other[..., size:], atol=1e-6
        )


def test_a_step_makes_no_keys_of_heads(monkeypatch):
    from d2l_attention.layers import latent

    layer, x = LAYERS["latent"](), draw(2, 1, 7)
    layer.build(x.shape)
    for name in ("expand_keys", "expand_values"):
        monkeypatch.setattr(latent, name, None)
    cache = layer.make_cache(2, 9)
    layer.step(x, np.zeros((2, 1), "int32"), cache)
    with pytest.raises(TypeError):
        layer(x)


def test_a_step_of_many_tokens_expands_where_that_takes_less(monkeypatch):
    """T (2R − K − V) > R (K + V), here 4 T > 30."""
    from d2l_attention.layers import latent

    layer, x = LatentAttention(2, 3, 5, 2), draw(2, 8, 7)
    whole, positions = layer(x, use_causal_mask=True), np.arange(8)[None]
    y, cache = layer.step(x, np.repeat(positions, 2, 0), layer.make_cache(2, 9))
    assert_all_close([y], [whole])
    monkeypatch.setattr(latent, "expand_keys", None)
    layer.step(x[:, :7], np.repeat(positions[:, :7], 2, 0), cache)
    with pytest.raises(TypeError):
        layer.step(x, np.repeat(positions, 2, 0), cache)


@pytest.mark.parametrize("rotated", [0, 4])
def test_the_cache_holds_latents_and_nothing_else(rotated):
    layer = LatentAttention(**{**SIZES, "rotary_dim": rotated})
    cache = layer.make_cache(2, 9)
    assert [*cache] == ["key"]
    assert tuple(cache["key"].shape) == (2, 9, 1, 7 + rotated)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_steps_and_caches_in_half_precision(dtype):
    layer = LatentAttention(2, 3, 5, 2, dtype=dtype)
    x = draw(1, 4, 7)
    whole = layer(x, use_causal_mask=True)
    cache = layer.make_cache(1, 4)
    y, cache = layer.step(x, np.arange(4)[None], cache)
    half = dtype.removeprefix("mixed_")
    for found in (y, cache["key"]):
        assert keras.backend.standardize_dtype(found.dtype) == half
    y, whole = (to_numpy(keras.ops.cast(a, "float32")) for a in (y, whole))
    np.testing.assert_allclose(y, whole, atol=3e-2)


def make_model(**options):
    pattern = LatentAttention(2, 4, latent_dim=5, rotary_dim=2)
    blocks = [AttentionBlock(pattern, 8, 16) for _ in range(2)]
    return BlockLanguageModel(11, 8, blocks, **options)


def test_a_language_model_saves_and_decodes(tmp_path):
    model = make_model(max_length=9)
    ids = np.array([[3, 1, 4, 1, 5], [2, 7, 0, 0, 0]])
    logits, maps = model(ids, return_attention_scores=True)
    for weights in maps.values():
        weights = to_numpy(weights)
        assert weights.shape == (2, 2, 5, 5)
        assert (np.triu(weights, 1) == 0).all()
        assert (weights[1, :, :, 2:] == 0).all()
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    logits = to_numpy(logits)
    np.testing.assert_allclose(to_numpy(loaded(ids)), logits, atol=1e-6)
    state = loaded.start(ids[:, :2])
    for t in range(2, 5):
        found, state = loaded.step(ids[:, t], state)
        found_row = to_numpy(found)[0]
        np.testing.assert_allclose(found_row, logits[0, t], atol=1e-5)


@pytest.mark.every_backend
def test_pages_of_latents():
    model = make_model()
    ids = np.array([[3, 1, 4, 1, 5], [2, 7, 6, 9, 8]])
    logits = to_numpy(model(ids))
    cache = PagedKVCache(
        12, block_size=2, num_kv_heads=1, key_dim=7, value_dim=0, num_layers=2
    )
    rows = [cache.add(), cache.add()]
    for row in rows:
        cache.reserve(row, 5)
    state = model.start(ids[:, :3], cache.caches(rows))
    cache.accept(rows, state["caches"], 3)
    fork = cache.fork(rows[0])
    cache.reserve(rows[0], 2)  # a copy of the page that is half full
    state = {**state, "caches": cache.caches(rows)}
    for t in (3, 4):
        found, state = model.step(ids[:, t], state)
        np.testing.assert_allclose(to_numpy(found), logits[:, t], atol=1e-5)
    cache.accept(rows, state["caches"], 2)
    assert all([*pool] == ["key"] for pool in cache.pools)
    assert cache.lengths == {rows[0]: 5, rows[1]: 5, fork: 3}


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: LatentAttention(2, 4, 0, 2), "latent_dim=0"),
        (lambda: LatentAttention(2, 4, 3, -2), "rotary_dim=-2"),
        (lambda: LatentAttention(2, 4, 3, 5), "even. Received: width=5"),
        (
            lambda: LatentAttention(2, 4, 3, 2, frequencies=[1, 1]),
            "Received: 2 frequencies",
        ),
        (
            lambda: LatentAttention(2, 4, 3, 2).build(
                (2, 3, 7), (2, 3, 5), (2, 3, 6)
            ),
            r"key \(2, 3, 6\), value \(2, 3, 5\)",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
