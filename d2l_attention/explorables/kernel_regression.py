"""Which width? Fifty points, a query with its bell, and a bet.

prediction(q) = Σ_s α_s v_s,  α_s ∝ exp(−(q − k_s)²/(2 width²))
prediction − truth = bias + noise
bias = Σ_s α_s f(k_s) − f(q),  noise = Σ_s α_s (v_s − f(k_s))
"""

from d2l_attention.explorables.arrays import finite, nearest
from d2l_attention.explorables.page import Explorable
from d2l_attention.layers.kernel_regression import nadaraya_watson
import numpy as np

# Numbers that lie evenly on a logarithmic scale, two digits each (IEC 60063).
_E24 = (
    "10 11 12 13 15 16 18 20 22 24 27 30 33 36 39 43 47 51 56 62 68 75 82 91"
).split()


def explore_kernel_regression(
    key, value, query, truth=None, *, width=None, start=None, still=True
):
    """A page on which a reader chooses the width of a bell, and bets on it.

    It shows the points as large as their weights for one query, the
    prediction, how many keys share it and, with `truth`, how much of its
    error is bias and how much is noise. After a bet it draws the leave-one-out
    error of all widths, with and without each point's own key.

    Args:
        key: Float array `(S,)`, where something was observed.
        value: Float array `(S,)`, what was observed.
        query: Float array `(T,)`, where to predict; the reader moves among
            these.
        truth: Function of an array `(N,)` that returns the true values
            `(N,)`, if they are known.
        width: Float, the width that is shown first, or one near it. A fifth
            of the keys' range by default.
        start: Float, the query that is shown first, or one near it. The
            middle one by default.
        still: As in `explore_flash_attention`.

    Returns:
        An `Explorable`.

    Raises:
        ValueError: If an array has another shape, fewer than two different
            keys, or a number that is not finite.

    Example:
        >>> import numpy as np
        >>> from d2l_attention.explorables import explore_kernel_regression
        >>> x = np.linspace(0, 5, 20)
        >>> explore_kernel_regression(x, np.sin(x), x, np.sin)
        Explorable('Which width?')
    """
    key, value = finite("key", key), finite("value", value)
    query = np.sort(finite("query", query))
    if key.shape != value.shape:
        raise ValueError(
            "There must be one value for each key. Received: key of shape "
            f"{key.shape}, value of shape {value.shape}."
        )
    reach = float(np.ptp(key))
    if not reach:
        raise ValueError(
            f"There must be two different keys. Received: key={key}."
        )
    widths = _widths(reach / 100, 0.3 * reach)
    first = nearest(widths, reach / 5 if width is None else width)
    middle = (query[0] + query[-1]) / 2
    data = {
        "keys": key.tolist(),
        "values": value.tolist(),
        "queries": query.tolist(),
        "query": nearest(query, middle if start is None else start),
        "widths": widths,
        "width": first,
        "truth": None,
    }
    if truth is not None:
        data["truth"] = {
            "keys": _of_all("truth", truth, key),
            "queries": _of_all("truth", truth, query),
        }
    columns = (x[None, :, None] for x in (query, key, value))
    _, weights = nadaraya_watson(
        *columns, widths[first], return_attention_scores=True
    )
    return Explorable(
        "kernel_regression",
        "Which width?",
        ["softmax", "kernel_regression"],
        data,
        np.array(weights[0]) if still else None,
    )


def _of_all(name, function, places):
    found = finite(name, function(places))
    if found.shape != places.shape:
        raise ValueError(
            f"`{name}` must return a number for each of {len(places)}. "
            f"Received: shape {found.shape}."
        )
    return found.tolist()


def _widths(low, high):
    """The preferred numbers from about `low` to `high`."""
    powers = range(int(np.floor(np.log10(low))) - 1, 16)
    found = (float(f"{digits}e{p - 1}") for p in powers for digits in _E24)
    return [width for width in found if 0.99 * low <= width <= 1.01 * high]
