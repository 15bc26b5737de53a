"""Argument checks that many modules share."""

from numbers import Integral


def check_room(model, num_tokens):
    """Refuse more tokens than a model has positions."""
    most = getattr(model, "max_length", None)
    if None not in (most, num_tokens) and num_tokens > most:
        raise ValueError(
            "The model has too few positions. Received: "
            f"{num_tokens} tokens for {most} positions."
        )


def check_dict(inputs, *names):
    """Refuse model inputs other than a dict with these tensors."""
    if not isinstance(inputs, dict) or not {*names} <= {*inputs}:
        found = sorted(inputs) if isinstance(inputs, dict) else type(inputs)
        raise ValueError(
            f"The model takes a dict of {' and '.join(map(repr, names))}. "
            f"Received: {found}."
        )


def check_rate(name, value):
    """The rate as a float; refuse one outside [0, 1)."""
    if not 0.0 <= value < 1.0:
        raise ValueError(
            f"`{name}` must be in [0, 1). Received: {name}={value}."
        )
    return float(value)


def check_positive(name, value):
    """The size as an int; refuse anything but a positive integer."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or value < 1:
        raise ValueError(
            f"`{name}` must be a positive integer. Received: {name}={value!r}."
        )
    return int(value)  # of NumPy's integers too, which JSON does not know
