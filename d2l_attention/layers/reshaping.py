"""Splitting a sequence into chunks, and joining them again."""

from keras import ops


def ceil_divide(a, b):
    """⌈a / b⌉ of positive ints or int tensors.

    Not −(−a // b): ONNX rounds a quotient of integers towards 0.
    """
    return (a + b - 1) // b


def even_blocks(n, block_size):
    """Size and number of blocks for n positions, equal where n is known."""
    number = ceil_divide(n, block_size)
    if isinstance(n, int):
        number = max(1, number)
        return ceil_divide(n, number), number
    return block_size, number


def reshape(x, shape):
    """`ops.reshape`, which computes the first unknown size by itself.

    With two sizes that are known only at run time, an exported ONNX file would
    fail when it runs.
    """
    shape = list(shape)
    unknown = (i for i, x in enumerate(shape) if not isinstance(x, int))
    first = next(unknown, None)
    if first is not None:
        shape[first] = -1
    return ops.reshape(x, shape)


def pad_to(x, axis, size):
    """Pad the end of an axis with zeros, or False, up to `size`."""
    if isinstance(size, int) and size == x.shape[axis]:
        return x
    shape = list(ops.shape(x))
    shape[axis] = size - shape[axis]
    return ops.concatenate([x, ops.zeros(shape, x.dtype)], axis=axis)


def split_into_chunks(x, size):
    """`(B, T, …)` as N chunks `(B, N, size, …)`, padded with zeros."""
    batch, length, *features = ops.shape(x)
    number = ceil_divide(length, size)
    x = pad_to(x, 1, number * size)
    return reshape(x, (batch, number, size, *features))


def join_chunks(x, length):
    """Chunks `(B, N, size, …)` as `(B, length, …)`."""
    batch, number, size, *features = ops.shape(x)
    return reshape(x, (batch, number * size, *features))[:, :length]


def with_neighbors(x, before, after):
    """Chunks `(B, N, size, …)`, each joined with its neighbors, `(B, N, S, …)`.

    The ends do not wrap around: the neighbors beyond them are zeros, or False
    in a mask.
    """
    batch, number, *chunk = ops.shape(x)
    first = ops.zeros((batch, before, *chunk), x.dtype)
    last = ops.zeros((batch, after, *chunk), x.dtype)
    x = ops.concatenate([first, x, last], axis=1)
    shifted = [x[:, i : i + number] for i in range(before + 1 + after)]
    return ops.concatenate(shifted, axis=2)


def take_rows(x, index):
    """The rows of `(B, T, …)` at the places `(B, M)`, as `(B, M, …)`."""
    batch, length, *features = ops.shape(x)
    starts = ops.expand_dims(ops.arange(batch, dtype=index.dtype), 1) * length
    rows = reshape(x, (batch * length, *features))
    taken = ops.take(rows, index + starts, axis=0)
    # JAX forgets the axes of `index` where there is nothing to take.
    return reshape(taken, (*ops.shape(index), *features))
