"""A decoder's cache of keys and values.

A contiguous cache is a dict of `"key"` and `"value"`, each
`(B, max_length, G, ·)`. A paged cache holds pools
`(num_blocks, block_size, G, ·)` and a `"block_table"` `(B, blocks)`. Where
values are a part of the keys, as in latent attention, there is no `"value"`.
"""

from d2l_attention._checks import refuse
from d2l_attention.layers.compiled_loops import over_filled_slots
from d2l_attention.layers.reshaping import reshape
from keras import ops


def contiguous_cache(key_shape, value_dim=0, dtype="float32"):
    """An empty cache of keys `(B, max_length, G, K)`, and values alike.

    With a `value_dim` of 0 there are no values.
    """
    cache = {"key": ops.zeros(key_shape, dtype)}
    if value_dim:
        cache["value"] = ops.zeros((*key_shape[:-1], value_dim), dtype)
    return cache


def write_cache(cache, positions, **new):
    """The cache with arrays `(B, T, …)` written at `positions` `(B, T)`.

        slot[b, t] = block_table[b, ⌊p / size⌋] size + p mod size,
            p = positions[b, t]

    Without a table, each row is one block of `max_length` slots, and the slot
    is b max_length + p. A position beyond the last slot overwrites another
    token, so a layer passes its output through `refuse_beyond`.
    """
    slots_per_block = cache[next(iter(new))].shape[1]
    positions = ops.cast(positions, "int32")
    if "block_table" in cache:
        table = cache["block_table"]
        columns = ops.minimum(positions // slots_per_block, table.shape[1] - 1)
        blocks = ops.take_along_axis(table, columns, axis=1)
    else:
        blocks = ops.arange(ops.shape(positions)[0], dtype="int32")[:, None]
    slots = blocks * slots_per_block + positions % slots_per_block
    slots = ops.reshape(slots, (-1, 1))
    written = dict(cache)
    for name, array in new.items():
        old = cache[name]
        tail = tuple(old.shape[2:])
        flat = ops.reshape(old, (-1, *tail))
        array = ops.cast(ops.reshape(array, (-1, *tail)), old.dtype)
        flat = ops.scatter_update(flat, slots, array)
        written[name] = ops.reshape(flat, ops.shape(old))
    return written


def read_cache(cache):
    """Keys `(B, S, G, K)` and values `(B, S, G, V)`, in order of position.

    The values are None where the cache has none. Mask the slots that were
    never written: they may hold anything.
    """
    arrays = cache["key"], cache.get("value")
    if "block_table" not in cache:
        return arrays
    table = cache["block_table"]
    read = []
    for array in arrays:
        if array is None:
            read.append(None)
            continue
        blocks = ops.take(array, table, axis=0)
        rows, width, size, *tail = ops.shape(blocks)
        read.append(reshape(blocks, (rows, width * size, *tail)))
    return tuple(read)


def refuse_beyond(output, positions, num_slots):
    """The output `(B, T, D)` of tokens whose positions have slots."""
    return refuse(
        ops.greater_equal(positions, num_slots),
        output,
        lambda: (
            f"The cache has {num_slots} slots, one for each position. "
            "Received: a token at position "
            f"{int(ops.max(positions))}. Make a cache of a larger `max_length`."
        ),
    )


def attend_with_cache(attention, x, positions, cache, **options):
    """Self-attention of new tokens to themselves and to what the cache holds.

    A token at position p of `positions` `(B, T)`, which rise by 1, attends to
    those up to p. `options` go to `attend`. What comes back is `(B, T, D)`,
    and the cache with the new tokens.
    """
    query = attention.project_query(x, positions[:, 0])  # (B, T, H, K)
    new = {"key": attention.project_key(x, positions[:, 0])}
    if "value" in cache:
        new["value"] = attention.project_value(x)
    cache = write_cache(cache, positions, **new)
    key, value = read_cache(cache)  # (B, S, G, K)
    num_slots = ops.shape(key)[1]
    slots = ops.arange(num_slots, dtype="int32")
    positions = ops.cast(positions, "int32")

    def attend_to_first(n):
        seen = slots[:n] <= positions[..., None]  # (B, T, S)
        values = None if value is None else value[:, :n]
        return attention.attend(query, key[:, :n], values, seen, **options)[0]

    num_filled = ops.minimum(ops.max(positions) + 1, num_slots)
    output = over_filled_slots(attend_to_first, num_filled, num_slots)
    return refuse_beyond(output, positions, num_slots), cache
