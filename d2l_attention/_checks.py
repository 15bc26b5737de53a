"""Checks of arguments that many modules share."""


def check_positive(name, value):
    """Refuse a size that is not a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(
            f"`{name}` must be a positive integer. Received: {name}={value!r}."
        )
