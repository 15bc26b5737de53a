"""A paged cache is a list of tokens, wherever the tokens lie."""

from contract import draw, to_numpy
from d2l_attention import PagedKVCache, paged_attention
from d2l_attention.layers.paged import BlockManager, OutOfBlocksError
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops
import numpy as np
import pytest


def tokens(n, seed=0):
    """Keys and values of n tokens: G 2, K 4, V 3."""
    return draw(n, 2, 4, seed=seed), draw(n, 2, 3, seed=seed + 1)


def filled(lengths, block_size=3, num_blocks=20, **options):
    """A cache with a sequence of each length, and what was put in."""
    cache = PagedKVCache(num_blocks, block_size, 2, 4, value_dim=3, **options)
    kept = {}
    for i, n in enumerate(lengths):
        sequence = cache.add()
        kept[sequence] = tokens(n, seed=10 * i)
        cache.append(sequence, *kept[sequence])
    return cache, kept


def dense(query, key, value):
    """NumPy; the T queries are the last of S tokens, six heads on two."""
    t, s = len(query), len(key)
    output = np.zeros((t, 6, value.shape[-1]))
    for i in range(t):
        seen = s - t + i + 1
        for h in range(6):
            scores = key[:seen, h // 3] @ query[i, h] / key.shape[-1] ** 0.5
            weights = np.exp(scores - scores.max())
            output[i, h] = weights / weights.sum() @ value[:seen, h // 3]
    return output


@pytest.mark.parametrize(
    ("block_size", "num_queries"),
    [
        (1, 3),
        (2, 1),
        pytest.param(3, 3, marks=pytest.mark.every_backend),
        (16, 1),
    ],
)
def test_equals_dense_attention_to_the_gathered_keys(block_size, num_queries):
    cache, kept = filled((5, 9, 3), block_size)
    query = draw(3, num_queries, 6, 4)
    found = to_numpy(cache.attend(query, list(kept)))
    for row, (sequence, (key, value)) in enumerate(kept.items()):
        for a, b in zip(cache.gather(sequence), (key, value), strict=True):
            np.testing.assert_array_equal(to_numpy(a), b)
        expected = dense(query[row], key, value)
        np.testing.assert_allclose(found[row], expected, atol=1e-6)


def test_the_order_of_physical_blocks_is_nobodys_business():
    cache, kept = filled((5, 9, 3))
    query = draw(3, 2, 6, 4)
    before = to_numpy(cache.attend(query, list(kept)))
    old_to_new = np.random.default_rng(0).permutation(20)
    for pool in cache.pools:
        for name, x in pool.items():
            moved = to_numpy(x).copy()
            moved[old_to_new] = to_numpy(x)[:20]
            pool[name] = ops.convert_to_tensor(moved)
    for sequence, table in cache.tables.items():
        cache.tables[sequence] = [int(old_to_new[block]) for block in table]
    after = to_numpy(cache.attend(query, list(kept)))
    np.testing.assert_array_equal(before, after)


def test_poison_in_unused_slots_never_shows():
    cache, kept = filled((5, 9, 3))
    query = draw(3, 2, 6, 4)
    before = to_numpy(cache.attend(query, list(kept)))
    used = np.zeros((21, 3), bool)
    for sequence, table in cache.tables.items():
        for t in range(cache.lengths[sequence]):
            used[table[t // 3], t % 3] = True
    for pool in cache.pools:
        for name, x in pool.items():
            poisoned = np.where(used[..., None, None], to_numpy(x), np.nan)
            pool[name] = ops.convert_to_tensor(poisoned)
    after = to_numpy(cache.attend(query, list(kept)))
    np.testing.assert_array_equal(before, after)


def test_a_fork_shares_blocks_until_somebody_writes():
    cache, kept = filled((5,))
    parent = next(iter(kept))
    child = cache.fork(parent)
    assert cache.tables[child] == cache.tables[parent]
    assert len(cache.free_blocks) == 18, "a fork copies nothing"
    one, other = tokens(1, seed=77), tokens(1, seed=88)
    cache.append(child, *one)
    assert cache.tables[child][0] == cache.tables[parent][0]
    assert cache.tables[child][1] != cache.tables[parent][1]
    cache.append(parent, *other)
    assert len(cache.free_blocks) == 17, "the last owner needs no copy"
    for sequence, new in ((parent, other), (child, one)):
        for found, old, x in zip(
            cache.gather(sequence), kept[parent], new, strict=True
        ):
            np.testing.assert_array_equal(
                to_numpy(found), np.concatenate([old, x])
            )


def test_out_of_blocks_loses_nothing():
    cache, kept = filled((5, 9), num_blocks=6)
    first, second = kept
    with pytest.raises(OutOfBlocksError, match="Free: 1 of 6 blocks"):
        cache.append(first, *tokens(5))
    assert cache.lengths == {first: 5, second: 9}
    assert len(cache.free_blocks) == 1
    cache.append(first, *tokens(4, seed=5))
    for sequence, (key, value) in kept.items():
        found = cache.gather(sequence)
        n = len(key)
        np.testing.assert_array_equal(to_numpy(found[0])[:n], key)
        np.testing.assert_array_equal(to_numpy(found[1])[:n], value)
    child = cache.fork(second)
    with pytest.raises(OutOfBlocksError):
        cache.append(child, *tokens(1))
    cache.free(first)
    cache.append(child, *tokens(1))


@pytest.mark.parametrize("num_blocks, num_tokens", [(2, 1), (3, 2)])
def test_copy_on_write_needs_a_free_block_too(num_blocks, num_tokens):
    cache, kept = filled((5,), num_blocks=num_blocks)
    (parent,) = kept
    child = cache.fork(parent)
    with pytest.raises(OutOfBlocksError, match=f"for {num_tokens} tokens"):
        cache.append(child, *tokens(num_tokens))
    for sequence in (parent, child):
        for found, x in zip(cache.gather(sequence), kept[parent], strict=True):
            np.testing.assert_array_equal(to_numpy(found), x)
    assert cache.tables[child] == cache.tables[parent]


def test_a_fork_takes_no_block_that_is_only_reserved():
    cache, kept = filled((5,))
    (parent,) = kept
    cache.reserve(parent, 7)
    assert len(cache.tables[parent]) == 4
    child = cache.fork(parent)
    assert cache.tables[child] == cache.tables[parent][:2]
    cache.append(child, *tokens(4, seed=50))
    cache.append(parent, *tokens(4, seed=60))
    for sequence, seed in ((child, 50), (parent, 60)):
        key, _ = cache.gather(sequence)
        np.testing.assert_array_equal(to_numpy(key)[5:], tokens(4, seed)[0])


def test_layers_share_one_table():
    cache = PagedKVCache(8, 3, 2, 4, value_dim=3, num_layers=2)
    sequence = cache.add()
    key, value = (
        np.stack(x) for x in zip(tokens(5), tokens(5, seed=5), strict=True)
    )
    cache.append(sequence, key, value)
    child = cache.fork(sequence)
    cache.append(child, key[:, :1], value[:, :1])
    for layer in range(2):
        for found, x in zip(
            cache.gather(child, layer), (key, value), strict=True
        ):
            expected = np.concatenate([x[layer], x[layer, :1]])
            np.testing.assert_array_equal(to_numpy(found), expected)


def test_what_was_not_reserved_hurts_nobody():
    """A compiled loop that writes too far: the last block takes it."""
    from d2l_attention.layers.cache import write_cache

    cache, kept = filled((5, 9))
    first, second = kept
    (tensors,) = cache.caches([first])
    key, value = tokens(4, seed=99)
    positions = np.array([[5, 6, 7, 500]])
    tensors = write_cache(tensors, positions, key=key[None], value=value[None])
    with pytest.raises(ValueError, match="room for 6"):
        cache.accept([first], [tensors], 4)
    cache.accept([first], [tensors], 1)
    np.testing.assert_array_equal(
        to_numpy(cache.gather(second)[0]), kept[second][0]
    )
    np.testing.assert_array_equal(to_numpy(cache.gather(first)[0])[5], key[0])


OPERATION = st.tuples(
    st.sampled_from(["add", "append", "append", "append", "fork", "free"]),
    st.integers(0, 9),
    st.integers(0, 5),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(OPERATION, max_size=25), st.integers(1, 4))
def test_any_history_is_that_of_plain_lists(history, block_size):
    """Against a model of lists: no block leaked, none shared wrongly."""
    cache, lists, number = PagedKVCache(12, block_size, 1, 1), {}, 0.0
    for name, which, count in history:
        sequence = list(lists)[which % len(lists)] if lists else None
        if name == "add" or sequence is None:
            lists[cache.add()] = []
        elif name == "fork":
            lists[cache.fork(sequence)] = list(lists[sequence])
        elif name == "free":
            cache.free(sequence)
            del lists[sequence]
        else:
            new = number + 1 + np.arange(count)
            number += count
            x = new.reshape(-1, 1, 1).astype("float32")
            try:
                cache.append(sequence, x, -x)
            except OutOfBlocksError:
                continue
            lists[sequence].extend(new)
        for sequence, expected in lists.items():
            key, value = cache.gather(sequence)
            np.testing.assert_array_equal(to_numpy(key).ravel(), expected)
            np.testing.assert_array_equal(
                to_numpy(value).ravel(), -to_numpy(key).ravel()
            )
        owned = [block for table in cache.tables.values() for block in table]
        counted = np.bincount(owned, minlength=12)
        np.testing.assert_array_equal(cache.references, counted)
        assert sorted(cache.free_blocks) == list(np.flatnonzero(counted == 0))
    for sequence in lists:
        cache.free(sequence)
    assert sorted(cache.free_blocks) == list(range(12)), "a block leaked"


def test_attention_needs_no_equal_lengths_when_compiled():
    import keras

    cache, kept = filled((5, 9, 3))
    (tensors,) = cache.caches(list(kept))

    class Attend(keras.Model):
        def call(self, query):
            return paged_attention(query, tensors, np.array([5, 9, 3]))

    query = draw(3, 2, 6, 4)
    model = Attend()
    model.compile(jit_compile=True)
    found = model.predict(query, verbose=0, batch_size=3)
    expected = to_numpy(cache.attend(query, list(kept)))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    "sizes", [(0, 3, 2, 4), (5, 0, 2, 4), (5, 3, 0, 4), (5, 3, 2, 0)]
)
def test_sizes_must_be_positive(sizes):
    with pytest.raises(ValueError, match="=0"):
        PagedKVCache(*sizes)


def test_mistakes_are_named():
    cache, kept = filled((5,))
    (sequence,) = kept
    with pytest.raises(KeyError, match="No sequence 7"):
        cache.append(7, *tokens(1))
    with pytest.raises(KeyError, match=r"It holds: \[0\]"):
        cache.attend(draw(1, 1, 6, 4), [3])
    with pytest.raises(ValueError, match=r"key \(2, 2, 4\)"):
        cache.append(sequence, draw(2, 3, 4), draw(2, 2, 3))
    with pytest.raises(ValueError, match=r"value \(1, 2, 3\)"):
        cache.append(sequence, draw(2, 2, 4), draw(1, 2, 3))
    assert cache.lengths[sequence] == 5
    manager = BlockManager(4, 2)
    with pytest.raises(ValueError, match="num_tokens=1"):
        manager.advance(manager.add(), 1)
