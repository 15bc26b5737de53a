"""A model of one stack: its future is hidden, its cache changes nothing."""

from collections import Counter
from functools import partial

from contract import (
    CAN_COMPILE,
    compile_for_training,
    draw,
    in_a_graph,
    note_dropout,
    to_numpy,
)
from d2l_attention import (
    AttentionBlock,
    BlockLanguageModel,
    CausalBlock,
    GreedyDecoder,
    GroupedQueryAttention,
    LanguageModel,
    ModernLanguageModel,
    PagedKVCache,
)
from every_layer import OWN_PATTERN, SELF_ATTENTION, public_layers
from every_layer import make as make_layer
import keras
from keras import ops
import numpy as np
import pytest

IDS = np.array([[5, 3, 9, 2, 7, 0, 0], [7, 1, 4, 8, 6, 2, 10]], "int32")
LENGTHS = np.array([5, 7])


def make(**options):
    keras.utils.set_random_seed(0)
    options = {"dim": 24, "num_layers": 2, "max_length": 17, **options}
    model = LanguageModel(vocab_size=11, **options)
    model.build((None, None))
    return model


OPTIONS = [{}, {"num_kv_heads": 2}, {"num_kv_heads": 1, "num_heads": 6}]


def test_weights_are_causal_and_look_at_no_padding():
    model = make(num_heads=3)
    _, maps = model(IDS, return_attention_scores=True)
    assert list(maps) == ["block_0/self_attention", "block_1/self_attention"]
    for weights in map(to_numpy, maps.values()):
        assert weights.shape == (2, 3, 7, 7)
        assert (np.triu(weights, 1) == 0).all(), "sees the future"
        assert (weights[0, :, :, 5:] == 0).all(), "attends to padding"
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


@pytest.mark.parametrize("options", [*OPTIONS, {"dropout": 0.3}])
@pytest.mark.parametrize("asked", [True, False])
def test_later_tokens_move_no_earlier_logits(options, asked):
    changed = IDS.copy()
    changed[1, 4:] = [3, 9, 1]
    # A new model each time, which drops the same places.
    before, after = (
        to_numpy(out[0] if asked else out)
        for out in (
            make(**options)(ids, training=True, return_attention_scores=asked)
            for ids in (IDS, changed)
        )
    )
    np.testing.assert_array_equal(before[1, :4], after[1, :4])
    assert np.abs(before[1, 4:] - after[1, 4:]).min(-1).max() > 1e-4


def test_dropout_acts_on_tokens_weights_and_sublayers(monkeypatch):
    shapes = note_dropout(monkeypatch)
    make(dropout=0.1)(IDS, training=True)
    assert Counter(shapes) == {(2, 7, 24): 1 + 2 * 2, (2, 4, 7, 7): 2}


def test_tokens_without_room_are_refused():
    model = make(max_length=12)
    with pytest.raises(ValueError, match="13 tokens.*12 positions"):
        model.start(np.ones((1, 13), "int32"))
    with pytest.raises(ValueError, match="13 tokens.*12 positions"):
        GreedyDecoder(model, 3, 2, max_length=6)(IDS)
    GreedyDecoder(model, 3, 2, max_length=5)(IDS)


@pytest.mark.parametrize(
    ("options", "prompt"), zip(OPTIONS, [1, 3, 4], strict=True)
)
def test_with_the_cache_token_by_token_equals_all_at_once(options, prompt):
    """Prompts of two lengths, so the rows stand at different positions."""
    model = make(**options)
    logits = to_numpy(model(IDS))
    source = IDS[:, :prompt].copy()
    source[0, -1] *= prompt == 1  # one shorter than the other
    lengths = (source != 0).sum(1)
    state = model.start(source)
    for t in range(2):
        token = IDS[[0, 1], lengths + t]
        found, state = model.step(token, state)
        np.testing.assert_allclose(
            to_numpy(found), logits[[0, 1], lengths + t], atol=1e-5
        )


def test_fewer_heads_of_keys_make_a_smaller_cache():
    """Exactly G/H of the bytes."""
    sizes = {}
    for groups in (None, 2, 1):
        state = make(num_heads=4, num_kv_heads=groups).start(IDS)
        sizes[groups] = sum(
            to_numpy(x).nbytes for c in state["caches"] for x in c.values()
        )
    assert sizes[None] == 2 * 2 * 2 * 17 * 24 * 4  # layers, k and v, B, …
    assert sizes[None] == 2 * sizes[2] == 4 * sizes[1]
    block = make(num_kv_heads=2).blocks[0]
    assert isinstance(block.self_attention, GroupedQueryAttention)


def generate(model, prompts, caches=None, num_tokens=6):
    state = model.start(prompts, caches)
    token, ids = np.full(len(prompts), 3, "int32"), []
    for _ in range(num_tokens):
        logits, state = model.step(token, state)
        words = logits[:, 1:]  # as the decoders: 0 is no word
        token = ops.cast(ops.argmax(words, -1) + 1, "int32")
        ids.append(to_numpy(token))
    return np.stack(ids, 1), state


@pytest.mark.parametrize(
    ("options", "block_size"), zip(OPTIONS, [1, 4, 4], strict=True)
)
def test_generation_through_pages_equals_that_through_one_piece(
    options, block_size
):
    model = make(**options)
    attention = model.blocks[0].self_attention
    cache = PagedKVCache(
        40,
        block_size,
        attention.num_kv_heads,
        attention.key_dim,
        num_layers=2,
    )
    other = cache.add()  # somebody else's tokens lie between ours
    first, second = cache.add(), cache.add()
    for i, sequence in enumerate((first, other, second)):
        cache.reserve(sequence, (5 + 6, 2, 7 + 6)[i])
    expected, _ = generate(model, IDS)
    found, state = generate(model, IDS, cache.caches([first, second]))
    np.testing.assert_array_equal(found, expected)
    for sequence, length in zip((first, second), LENGTHS, strict=True):
        cache.advance(sequence, int(length))
    cache.accept([first, second], state["caches"], 6)
    assert [cache.lengths[s] for s in (first, second)] == [11, 13]
    contiguous = generate(model, IDS)[1]["caches"]
    for row, sequence in enumerate((first, second)):
        for layer in range(2):
            key, value = cache.gather(sequence, layer)
            for name, x in (("key", key), ("value", value)):
                one_piece = to_numpy(contiguous[layer][name])[row, : len(x)]
                np.testing.assert_allclose(to_numpy(x), one_piece, atol=1e-5)


@pytest.mark.every_backend
def test_the_greedy_decoder_continues_prompts():
    """Id 3 separates the prompt from what follows."""
    model = make()
    found = to_numpy(GreedyDecoder(model, 3, 2, max_length=6)(IDS))
    expected, _ = generate(model, IDS)
    for row, ids in zip(found, expected, strict=True):
        ended = list(row).index(2) + 1 if 2 in row else len(row)
        np.testing.assert_array_equal(row[:ended], ids[:ended])
        assert (row[ended:] == 0).all()


def test_trains_saves_and_loads(tmp_path):
    model = make(dropout=0.1, num_kv_heads=2)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    compile_for_training(model, "adam", loss)
    data = np.tile(IDS, (16, 1))
    history = model.fit(data[:, :-1], data[:, 1:], epochs=8, verbose=0)
    losses = history.history["loss"]
    assert losses[-1] < losses[0]
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(to_numpy(again(IDS)), to_numpy(model(IDS)))


def kinds():
    """Each layer that decodes with a cache, in a block."""
    for name in {**SELF_ATTENTION, **OWN_PATTERN}:
        # What a stream dropped, no pass over the whole text drops; layers of
        # contexts are called with one, and have no steps.
        others = "StreamingAttention" == name or "Context" in name
        if hasattr(public_layers()[name], "step") and not others:
            yield name


def model_of(name, max_length=13):
    """All weights are drawn: tables and biases of zeros would hide a slip."""
    layer = make_layer(name)
    block = layer if hasattr(layer, "ffn") else AttentionBlock(layer, 4, 7)
    model = BlockLanguageModel(11, 4, [block], max_length=max_length)
    model.build((None, None))
    for i, weight in enumerate(model.trainable_weights):
        weight.assign(weight + 0.3 * draw(*weight.shape, seed=i))
    return model


# No id twice: an indexer's scores of both would be equal up to rounding.
PROMPTS = np.array(
    [
        [3, 1, 4, 7, 5, 9, 2],
        [6, 5, 3, 0, 0, 0, 0],
        [0, 0, 0, 0, 7, 4, 8],
        [0, 10, 0, 7, 4, 0, 0],
    ]
)
MORE = np.array([[8, 10, 6], [9, 1, 2], [5, 3, 1], [9, 6, 3]])


@pytest.mark.parametrize("name", kinds())
def test_prompts_go_on_as_each_would_alone_wherever_their_padding_is(name):
    model = model_of(name)
    state = model.start(PROMPTS)
    for t in range(3):
        logits, state = model.step(MORE[:, t], state)
        for prompt, more, found in zip(
            PROMPTS, MORE, to_numpy(logits), strict=True
        ):
            text = np.append(prompt[prompt > 0], more[: t + 1])[None]
            np.testing.assert_allclose(
                found, to_numpy(model(text))[0, -1], atol=2e-5
            )


CUT_BY_SLOT = ("NativeSparseAttention", "SelectedBlockAttention")


@pytest.mark.parametrize("name", [*kinds(), "LanguageModel"])
def test_padding_before_a_text_moves_no_logits(name):
    model = make() if name == "LanguageModel" else model_of(name)
    left = PROMPTS[[0, 2]]
    whole, alone = (to_numpy(model(x)) for x in (left[:1], left[1:, 4:]))
    if name not in CUT_BY_SLOT:
        found = to_numpy(model(left))
        np.testing.assert_allclose(found[:1], whole, atol=2e-5)
        np.testing.assert_allclose(found[1:, 4:], alone, atol=2e-5)
        return
    with pytest.raises(ValueError, match="4 hidden keys.*post"):
        model(left)
    if CAN_COMPILE:
        found = in_a_graph(model, left)
        np.testing.assert_allclose(found[:1], whole, atol=2e-5)
        assert np.isnan(found[1, 4:]).all()


# Of a window of 3, or a state.
ENDLESS = (
    *("DecayedAttention", "DeltaAttention", "GatedDeltaAttention"),
    *("GatedLinearAttention", "LinearAttention"),
    *("SinkAttention", "ModernAttention", "WindowAttention"),
)


@pytest.mark.parametrize("name", [*kinds(), "LanguageModel"])
def test_a_step_without_a_slot_is_no_answer(name):
    """Of two sentences the first has no slot for its last token."""
    make_one = partial(model_of, name) if name != "LanguageModel" else make
    short, long = (make_one(max_length=n) for n in (4, 13))
    long.set_weights(short.get_weights())
    ids = np.array([[3, 1, 4, 7, 5], [6, 0, 0, 5, 3]])

    def write(model, ids):
        state = model.start(ids[:, :3])
        for t in (3, 4):
            logits, state = model.step(ids[:, t], state)
        return logits

    wanted = to_numpy(write(long, ids))
    if name in ENDLESS:
        found = to_numpy(write(short, ids))
        np.testing.assert_allclose(found, wanted, atol=2e-5)
    else:
        with pytest.raises(ValueError, match="at position 4|0 … 4"):
            write(short, ids)
    if CAN_COMPILE:
        found = in_a_graph(partial(write, short), ids)
        np.testing.assert_allclose(found[1:], wanted[1:], atol=2e-5)
        if name in ENDLESS:
            np.testing.assert_allclose(found[:1], wanted[:1], atol=2e-5)
        else:
            assert np.isnan(found[0]).all()


@pytest.mark.parametrize("dtype", ["mixed_float16", "bfloat16"])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_products_in_float32(tied, dtype):
    """In half precision many of a thousand words would have equal ones."""
    model = ModernLanguageModel(
        97, 8, 1, 2, 7, tie_embeddings=tied, dtype=dtype
    )
    ids = np.arange(1, 97)[None]
    found = to_numpy(model(ids))
    x = model.final_norm(model.blocks[0](model.embed(ids)))
    assert found.dtype == "float32"
    kernel = to_numpy(model.output_layer.weights[0]).astype("float32")
    expected = to_numpy(x).astype("float32") @ (kernel.T if tied else kernel)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision(dtype):
    model = make(dtype=dtype)
    assert keras.backend.standardize_dtype(model(IDS).dtype) == "float32"
    state = model.start(IDS)
    kept = state["caches"][0]["key"].dtype
    assert keras.backend.standardize_dtype(kept) == dtype.removeprefix("mixed_")
    logits, _ = model.step(IDS[:, 0], state)
    assert np.isfinite(to_numpy(logits)).all()


@pytest.mark.parametrize(
    "name", ["vocab_size", "dim", "num_layers", "num_heads", "max_length"]
)
def test_sizes_must_be_positive(name):
    sizes = {"vocab_size": 11, "dim": 12, "num_layers": 1, name: 0}
    with pytest.raises(ValueError, match=f"{name}=0"):
        LanguageModel(**sizes)


def test_the_prompt_may_be_the_first_that_a_model_sees():
    model = LanguageModel(11, 12, 1)
    state = model.start(IDS)
    np.testing.assert_array_equal(to_numpy(state["position"]), LENGTHS)
    assert len(model.weights) == len(make(num_layers=1).weights)


def test_too_many_tokens_are_refused():
    with pytest.raises(ValueError, match="17 positions"):
        make()(np.ones((2, 18), "int32"))


def test_a_block_of_fewer_key_heads_has_one_attention():
    """A layer that was made first and replaced would be tracked for ever."""
    block = CausalBlock(12, 6, 5, num_kv_heads=np.int64(2))
    block.build((None, None, 12))
    parts = block._flatten_layers(include_self=False, recursive=False)
    attentions = [x for x in parts if x.name == "self_attention"]
    assert [type(x) for x in attentions] == [GroupedQueryAttention]
    config = block.get_config()
    assert type(config["num_kv_heads"]) is int
    assert CausalBlock.from_config(config).get_config() == config
