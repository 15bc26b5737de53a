"""Checks of arguments that many modules share."""


def check_room(model, num_tokens):
    """Refuse more tokens than a model has positions."""
    most = getattr(model, "max_length", None)
    if None not in (most, num_tokens) and num_tokens > most:
        raise ValueError(
            "The model has too few positions for so many tokens. Received: "
            f"{num_tokens} tokens, and the model has {most} positions."
        )


def check_rate(name, value):
    """Refuse a rate outside [0, 1)."""
    if not 0.0 <= value < 1.0:
        raise ValueError(
            f"`{name}` must be in [0, 1). Received: {name}={value}."
        )


def check_positive(name, value):
    """Refuse a size that is not a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(
            f"`{name}` must be a positive integer. Received: {name}={value!r}."
        )
