"""The steps of a generation are one map, and it is the true one.

What a model looked at while it wrote equals what it looks at when it reads
the whole text at once.
"""

from contract import to_numpy
from d2l_attention import (
    AttentionBlock,
    BahdanauSeq2Seq,
    BeamDecoder,
    BlockLanguageModel,
    GatedDeltaAttention,
    GreedyDecoder,
    IndexedAttention,
    LanguageModel,
    LatentAttention,
    RotaryAttention,
    SelectedBlockAttention,
    StreamingAttention,
    Transformer,
    WindowAttention,
)
from d2l_attention.heatmaps import (
    animate_attention,
    attention_entropy,
    get_attention_weights,
    plot_attention_grid,
    view_attention,
)
import keras
from keras import ops
import numpy as np
import pytest

START, END, MOST = 1, 2, 5
NO_ID = 99  # no model has so many
PROMPT = np.array([[3, 4, 5, 0], [5, 6, 8, 9]])
LOWER = np.tri(9, dtype=bool)


@pytest.fixture(autouse=True)
def loops_of_python():
    """JAX compiles a decoder's loop unless it is told not to."""
    if keras.backend.backend() == "jax":
        import jax

        with jax.disable_jit():
            yield
    else:
        yield


def greedy(model):
    """A decoder whose model never ends by itself."""
    return GreedyDecoder(model, START, NO_ID, MOST)


def test_a_prompt_and_its_continuation_are_one_map():
    model = LanguageModel(
        12, dim=8, num_layers=2, num_heads=2, max_length=32, name="lm"
    )
    ids, maps = get_attention_weights(greedy(model), PROMPT)
    assert list(maps) == [f"lm/block_{i}/self_attention" for i in range(2)]
    for sample, length in enumerate((3, 4)):
        written = [START, *ops.convert_to_numpy(ids)[sample][:-1]]
        text = np.array([[*PROMPT[sample][:length], *written]])
        _, whole = model(text, return_attention_scores=True)
        size = length + MOST
        for (path, joined), (name, weights) in zip(
            maps.items(), whole.items(), strict=True
        ):
            assert path == f"lm/{name}"
            own = joined[sample]
            weights = to_numpy(weights)[0]
            expected = np.where(LOWER[:size, :size], weights, np.nan)
            np.testing.assert_allclose(
                own[:, :size, :size], expected, atol=1e-6
            )
            assert (
                np.isnan(own[:, size:]).all() & np.isnan(own[..., size:]).all()
            )


def test_padding_after_a_short_prompt_has_no_row():
    model = LanguageModel(12, dim=8, num_layers=1, num_heads=2, name="lm")
    decoder = GreedyDecoder(model, START, NO_ID, max_length=2)
    prompts = np.array([[3, 0, 0, 0, 0], [5, 6, 8, 9, 7]])
    _, maps = get_attention_weights(decoder, prompts)
    [joined] = maps.values()
    read = ~np.isnan(joined).all(-1)[:, 0]
    assert read.sum(-1).tolist() == [3, 7]


def test_a_translation_has_a_row_for_each_token_it_wrote():
    model = Transformer(
        12, 12, dim=8, num_layers=2, num_heads=2, name="transformer"
    )
    ids, maps = get_attention_weights(greedy(model), PROMPT)
    target = np.insert(ops.convert_to_numpy(ids)[:, :-1], 0, START, axis=1)
    inputs = {"source": PROMPT, "target": target}
    _, whole = model(inputs, return_attention_scores=True)
    assert len(maps) == len(whole) == 6
    for name, weights in whole.items():
        weights, joined = to_numpy(weights), maps[f"transformer/{name}"]
        if "decoder" in name and "self" in name:
            weights = np.where(LOWER[:MOST, :MOST], weights, np.nan)
        np.testing.assert_allclose(joined, weights, atol=1e-6)


def test_a_recurrent_decoder_is_read_step_by_step():
    model = BahdanauSeq2Seq(12, 12, dim=8, num_layers=1)
    ids, maps = get_attention_weights(greedy(model), PROMPT)
    target = np.insert(ops.convert_to_numpy(ids)[:, :-1], 0, START, axis=1)
    inputs = {"source": PROMPT, "target": target}
    _, whole = model(inputs, return_attention_scores=True)
    [joined] = maps.values()
    expected = to_numpy(whole["decoder/attention"])
    np.testing.assert_allclose(joined, expected, atol=1e-6)


class AttentionWithCache(keras.layers.Layer):
    """Attention as a reader writes it, with a cache that grows."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.qkv = keras.layers.Dense(24)

    def call(self, x, cache=None):
        shape = (ops.shape(x)[0], ops.shape(x)[1], 2, 4)
        q, k, v = (
            ops.reshape(part, shape) for part in ops.split(self.qkv(x), 3, -1)
        )
        if cache is not None:
            k = ops.concatenate([cache[0], k], axis=1)
            v = ops.concatenate([cache[1], v], axis=1)
        t, s = q.shape[1], k.shape[1]
        scores = ops.einsum("bthk,bshk->bhts", q, k) / 2.0
        seen = ops.arange(s) <= ops.arange(t)[:, None] + s - t
        weights = ops.softmax(ops.where(seen, scores, -1e9))
        output = ops.einsum("bhts,bshk->bthk", weights, v)
        return ops.reshape(output, (*shape[:2], 8)), (k, v)


class OfKeras(keras.layers.Layer):
    """The same with Keras's layer, which reads all again at each step."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.attention = keras.layers.MultiHeadAttention(2, 4)

    def call(self, x, cache=None):
        if cache is not None:
            x = ops.concatenate([cache, x], axis=1)
        return self.attention(x, x, use_causal_mask=True), x


class Writer(keras.Model):
    def __init__(self, layers, **kwargs):
        super().__init__(**kwargs)
        self.embedding = keras.layers.Embedding(12, 8)
        self.attention = layers
        self.head = keras.layers.Dense(12)

    def call(self, ids, caches=None):
        x, new = self.embedding(ids), []
        for i, attention in enumerate(self.attention):
            change, cache = attention(x, caches[i] if caches else None)
            x = x + change[:, -x.shape[1] :]
            new.append(cache)
        return self.head(x), new


def write(model, ids):
    """A loop as a reader writes it."""
    new, caches = ids, None
    for _ in range(MOST):
        logits, caches = model(new, caches)
        new = ops.argmax(logits[:, -1:], axis=-1)
        ids = ops.concatenate([ids, new], axis=1)
    return ids


@pytest.mark.parametrize("kind", [OfKeras, AttentionWithCache])
@pytest.mark.parametrize("shared", [False, True])
def test_a_loop_of_ones_own_is_joined(kind, shared):
    layer = kind(name="attention_0")
    others = [layer] if shared else [kind(name="attention_1")]
    model = Writer([layer, *others])
    prompt = PROMPT[1:, :3]
    model(prompt)
    ids, maps = get_attention_weights(
        model, prompt, run=lambda ids: write(model, ids)
    )
    (_, _), whole = get_attention_weights(model, np.array(ids)[:, :-1])
    assert list(maps) == list(whole) and len(maps) == 2
    for path, weights in whole.items():
        size = weights.shape[-1]
        expected = np.where(LOWER[:size, :size], weights, np.nan)
        np.testing.assert_allclose(maps[path], expected, atol=1e-6)


class Reader(keras.Model):
    """Pools a memory by one query at a time, as a recurrent decoder does."""

    def __init__(self):
        super().__init__()
        self.attention = keras.layers.AdditiveAttention(name="attention")

    def call(self, query, memory):
        return self.attention([query, memory])


@pytest.mark.parametrize("same", [True, False])
def test_queries_to_one_memory_are_rows_and_to_several_are_maps(same):
    rng = np.random.default_rng(0)
    memories = rng.normal(size=(3, 2, 5, 8)).astype("float32")
    queries = rng.normal(size=(3, 2, 1, 8)).astype("float32")
    model = Reader()
    model(queries[0], memories[0])

    def read(queries):
        return [
            model(query, memory.copy())
            for query, memory in zip(
                queries, memories[[0, 0, 0]] if same else memories, strict=True
            )
        ]

    if not same:
        with pytest.warns(UserWarning, match="attention: its 3 calls do not"):
            _, maps = get_attention_weights(model, list(queries), run=read)
        assert list(maps) == ["attention", "attention#2", "attention#3"]
        return
    _, maps = get_attention_weights(model, list(queries), run=read)
    for i, query in enumerate(queries):
        _, one = get_attention_weights(model, query, memories[0])
        np.testing.assert_allclose(
            maps["attention"][:, :, i : i + 1], one["attention"], atol=1e-6
        )


@pytest.mark.parametrize("kind", [OfKeras, AttentionWithCache])
def test_a_loop_that_fills_padding_is_joined(kind):
    model = Writer([kind(name="attention_0"), kind(name="attention_1")])
    prompt = np.pad(PROMPT[:, :3], [(0, 0), (0, 6)])

    def fill(ids):
        ids = ids.copy()
        for length in range(3, 7):
            logits, _ = model(ids)
            ids[:, length] = to_numpy(ops.argmax(logits[:, length - 1], -1))
        return ids

    model(prompt)
    ids, maps = get_attention_weights(model, prompt, run=fill)
    _, whole = get_attention_weights(model, ids[:, :6])
    assert list(maps) == list(whole)
    for path, weights in whole.items():
        expected = np.where(LOWER[:6, :6], weights, np.nan)
        np.testing.assert_allclose(maps[path], expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Not joined")
def test_what_is_no_generation_is_not_joined():
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    layer = keras.layers.MultiHeadAttention(2, 4, name="attention")

    class Twice(keras.Model):
        def __init__(self):
            super().__init__()
            self.attention = layer

        def call(self, pairs):
            return [
                self.attention(a, b, use_causal_mask=a is b) for a, b in pairs
            ]

    x, other = ops.convert_to_tensor(x), ops.convert_to_tensor(x[::-1] ** 2)
    query, short = x[:, :1], x[:, :4]
    for pairs in (
        [(query, x), (query, other)],  # pooling of two sentences
        [(query, short), (query, other)],  # of two lengths
        [(x, x), (other, other)],  # two causal sentences of one length
        [(short, short), (other, other)],  # of two lengths
        [(x, x), (query, x)],  # a sentence, and one query to it
    ):
        model = Twice()
        model(pairs)
        for run in (None, model):
            _, maps = get_attention_weights(model, pairs, run=run)
            assert list(maps) == ["attention", "attention#2"]


def test_beams_change_their_order_and_are_not_joined():
    model = LanguageModel(
        12, dim=8, num_layers=1, num_heads=2, max_length=32, name="lm"
    )
    decoder = BeamDecoder(model, START, END, MOST, width=3)
    with pytest.warns(UserWarning, match="several beams"):
        _, maps = get_attention_weights(decoder, PROMPT)
    assert {len(w) for path, w in maps.items() if "#" in path} == {6}
    with pytest.raises(ValueError, match="window"):
        plot_attention_grid(maps)


def test_each_picture_takes_a_joined_map():
    model = LanguageModel(
        12, dim=8, num_layers=1, num_heads=2, max_length=32, name="lm"
    )
    _, maps = get_attention_weights(greedy(model), PROMPT)
    [joined] = maps.values()
    tokens = [f"token {i}" for i in range(9)]
    figure = plot_attention_grid(
        maps, query_tokens=tokens, key_tokens=tokens, sample=1
    )
    hidden = figure.axes[0].images[0].get_array().mask
    assert np.array_equal(hidden, ~LOWER)
    animation = animate_attention(joined[1, 0], query_tokens=tokens)
    assert animation._save_count == 9
    page = view_attention(maps, query_tokens=tokens, key_tokens=tokens)
    assert "token 8" in page.to_html()
    entropy = attention_entropy(joined)
    assert np.isnan(entropy[0, :, 8]).all() and np.isfinite(entropy[1]).all()


def test_run_needs_a_model_that_has_layers():
    with pytest.raises(ValueError, match="Call it once before"):
        get_attention_weights(Writer([AttentionWithCache()]), PROMPT, run=print)
    with pytest.raises(TypeError, match="run="):
        get_attention_weights(write, PROMPT)


class Stepwise(keras.Model):
    """A decoder of one attention layer, with what may go wrong in it."""

    def __init__(self, hops=1, moves=False, encodes=False, **kwargs):
        super().__init__(**kwargs)
        self.hops, self.moves, self.encodes = hops, moves, encodes
        self.embedding = keras.layers.Embedding(12, 8)
        self.attention = keras.layers.MultiHeadAttention(2, 4, name="look")
        self.head = keras.layers.Dense(12)

    def start(self, source):
        memory = self.embedding(source)
        if self.encodes:
            for _ in range(2):
                memory = memory + self.attention(memory, memory)
        return {"memory": memory}

    def step(self, token, state):
        memory = state["memory"]
        x = self.embedding(token)[:, None]
        for _ in range(self.hops):
            x = x + self.attention(x, memory)
        if self.moves:
            memory = ops.roll(memory, 1, axis=1)
        return self.head(x)[:, 0], {"memory": memory}

    def call(self, source):
        state = self.start(source)
        return self.step(source[:, 0], state)[0]


def look(model, run=None, inputs=(PROMPT,)):
    model(PROMPT)
    decoder = greedy(model)
    return get_attention_weights(decoder, *inputs, run=run)[1]


def shapes(maps):
    return {path.split("/")[-1]: w.shape[2] for path, w in maps.items()}


def test_several_looks_in_a_step_are_several_maps():
    assert shapes(look(Stepwise())) == {"look": MOST}
    assert shapes(look(Stepwise(hops=2))) == {"look": MOST, "look#2": MOST}


@pytest.mark.filterwarnings("ignore:Not joined")
@pytest.mark.parametrize("wrong", ["moves", "encodes"])
def test_a_memory_that_moves_or_is_made_by_the_layer_is_not_joined(wrong):
    found = [*shapes(look(Stepwise(**{wrong: True}))).values()]
    before = [4, 4] if wrong == "encodes" else []
    assert found[:3] == [*before, 1, 1, 1][:3] and set(found[2:]) == {1}


@pytest.mark.filterwarnings("ignore:Not joined")
@pytest.mark.parametrize(
    "model",
    [
        LanguageModel(12, 8, 1, num_heads=2, max_length=32),
        Transformer(12, 12, 8, 1, num_heads=2),
        BahdanauSeq2Seq(12, 12, 8, 1),
    ],
)
def test_two_texts_of_one_run_are_not_joined(model):
    other = PROMPT[::-1] % 9 + 1
    decoder = greedy(model)
    short = GreedyDecoder(model, START, END, max_length=1)
    for run in (
        lambda ids: (decoder(ids), decoder(other)),
        lambda ids: (short(ids), decoder(other)),
        lambda ids: BeamDecoder(model, START, END, MOST, width=2)(ids),
    ):
        decoder(PROMPT)
        _, maps = get_attention_weights(
            model,
            [*PROMPT.tolist()],
            run=lambda ids, run=run: run(np.array(ids)),
        )
        assert {w.shape[2] for p, w in maps.items() if "encoder" not in p} <= {
            *range(1, MOST)
        }


@pytest.mark.filterwarnings("ignore:Not joined")
def test_a_query_that_does_not_see_itself_is_not_put_a_row_too_high():
    layer = keras.layers.MultiHeadAttention(2, 4, name="attention")
    x = np.random.default_rng(0).normal(size=(2, 6, 8)).astype("float32")
    seen = np.tri(6, k=-1, dtype=bool)
    seen[0, 0] = True

    def write(x):
        layer(x[:, :2], x[:, :2], attention_mask=seen[:2, :2])
        for t in range(2, 6):
            mask = seen[t : t + 1, : t + 1]
            layer(x[:, t : t + 1], x[:, : t + 1], attention_mask=mask)

    layer(x, x)
    _, maps = get_attention_weights(layer, x, run=write)
    assert len(maps) == 5


def test_a_memory_that_is_fetched_anew_has_a_map_for_each_query():
    class Fetching(keras.Model):
        def __init__(self):
            super().__init__()
            self.own = keras.layers.MultiHeadAttention(2, 4, name="own")
            self.others = keras.layers.MultiHeadAttention(2, 4, name="others")

        def call(self, x, text, memory):
            return self.others(x + self.own(x, text), memory)

    rng = np.random.default_rng(0)
    text = rng.normal(size=(2, 4, 8)).astype("float32")
    memories = rng.normal(size=(4, 2, 3, 8)).astype("float32")
    model = Fetching()

    def write(text):
        for t in range(1, 4):
            model(text[:, t : t + 1], text[:, : t + 1], memories[t])

    model(text[:, :1], text, memories[0])
    with pytest.warns(UserWarning, match="others: its 3 calls"):
        _, maps = get_attention_weights(model, text, run=write)
    assert {"others", "others#2", "others#3"} < maps.keys()


def test_a_layer_may_have_a_start_and_a_step_of_another_kind():
    class Counting(keras.Model):
        def __init__(self):
            super().__init__()
            self.attention = keras.layers.MultiHeadAttention(2, 4, name="look")
            self.count = 0

        def start(self):
            self.count = 0

        def step(self):
            self.count += 1

        def call(self, x):
            self.start()
            for _ in range(2):
                self.step()
            return self.attention(x, x)

    model = Counting()
    _, maps = get_attention_weights(model, np.ones((2, 3, 8), "float32"))
    assert shapes(maps) == {"look": 3} and model.count == 2


@pytest.mark.parametrize(
    "unread",
    [
        WindowAttention(2, 4, 3, name="a"),
        StreamingAttention(2, 4, 3, 1, name="a"),
        GatedDeltaAttention(2, 4, name="a"),
        SelectedBlockAttention(2, 4, block_size=2, top=2, name="a"),
        IndexedAttention(2, 4, top=3, index_heads=1, index_dim=3, name="a"),
    ],
)
def test_steps_that_do_not_read_all_tokens_are_named(unread):
    """And layers beside them, with a cache in the order of the tokens, read."""
    patterns = RotaryAttention(2, 4), unread, LatentAttention(2, 4, 5, 2)
    blocks = [
        AttentionBlock(pattern, 8, 16, name=f"block_{i}")
        for i, pattern in enumerate(patterns)
    ]
    model = BlockLanguageModel(12, 8, blocks, max_length=32, name="lm")
    model(PROMPT)
    with pytest.warns(UserWarning, match="block_1/self_attention.* a ring or"):
        ids, maps = get_attention_weights(model, PROMPT, run=greedy(model))
    paths = [f"block_{i}/self_attention" for i in range(3)]
    assert [*maps] == [paths[0], paths[2]] and [*maps.skipped] == [paths[1]]
    written = [START, *ops.convert_to_numpy(ids)[1][:-1]]
    text = np.array([[*PROMPT[1][:4], *written]])
    _, whole = model(text, return_attention_scores=True)
    size = 4 + MOST
    weights = to_numpy(whole[paths[0]])[0]
    expected = np.where(LOWER[:size, :size], weights, np.nan)
    found = maps[paths[0]][1, :, :size, :size]
    np.testing.assert_allclose(found, expected, atol=1e-6)
