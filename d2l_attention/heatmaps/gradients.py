"""How much a chosen output depends on each weight of attention."""

from d2l_attention.heatmaps.capture import AttentionMaps, Run, beside, build
from d2l_attention.heatmaps.comparing import differs, float_arrays
from d2l_attention.heatmaps.softmaxes import to_heads
from d2l_attention.heatmaps.statistics import self_attention
import keras
from keras import ops
import numpy as np


def get_attention_gradients(model, *args, chosen_output, layers=None, **kwargs):
    """Weights, and the gradients of one output of the model by them.

    A weight can be large and change nothing. The gradient says how fast the
    chosen output grows with the weight, and weight × gradient how much of
    the output goes away with it, to first order.

    The model runs as in `get_attention_weights`, except that Keras's layers
    form their weights instead of taking a fused operation, so that the
    outputs can differ by rounding; and a query of theirs that may see nothing
    has weights 0, where the fused operation has even ones. A layer in a loop,
    one that forms no weights, or one whose weights come neither from this
    package nor from `keras.ops.softmax`, is named in `skipped`. It works
    eagerly.

    Source: Chefer, Gur and Wolf (2021), arXiv:2103.15679, section 3.

    Args:
        model: A `keras.Model` or layer.
        *args: Inputs of the model, as it is called.
        chosen_output: Function of the outputs that gives a number for each
            example, `(B,)`, such as `lambda logits: logits[:, 3]`.
        layers: As in `get_attention_weights`.
        **kwargs: Other arguments of the call.

    Returns:
        The outputs, `AttentionMaps` of the weights, and `AttentionMaps` of
        the gradients under the same paths.

    Raises:
        ValueError: If there is no gradient to be had, no layer matches, or
            `chosen_output` does not give one axis.

    Example:
        >>> layer = keras.layers.MultiHeadAttention(2, 4, name="attention")
        >>> x = np.ones((1, 3, 8), "float32")
        >>> _, maps, gradients = get_attention_gradients(
        ...     layer, x, x, chosen_output=lambda y: y[:, 0, 0]
        ... )
        >>> (maps["attention"] * gradients["attention"]).shape
        (1, 2, 3, 3)
    """
    build(model, args, kwargs)

    def run_with(change, added=None):
        run = Run(model, layers, change, added)
        with run.watch():
            outputs = model(*args, **kwargs)
        chosen = chosen_output(outputs)
        if len(chosen.shape) != 1:
            raise ValueError(
                "`chosen_output` must give a number for each example, (B,). "
                f"Received: shape {tuple(chosen.shape)}."
            )
        return ops.sum(chosen), outputs, run

    differentiate = _BACKENDS.get(keras.backend.backend())
    if differentiate is None:
        raise ValueError(
            f"There are gradients on the backends {list(_BACKENDS)}. "
            f"Received: {keras.backend.backend()!r}."
        )
    outputs, run, by_weights = differentiate(run_with, model)
    maps, skipped = run.maps(outputs), run.skipped()
    gradients = {}
    for path in [path for path in maps if "#" not in path]:
        names = [name for name in maps if name.split("#")[0] == path]
        of_path = [g for name, g in by_weights if name == path]
        if len(of_path) != len(names) or any(g is None for g in of_path):
            skipped[path] = "it has not one gradient for each map"
            continue
        # Softmaxes are changed as they are heard; others, as they are recorded.
        readers = run.readers.get(path) or [None] * len(names)
        for name, gradient, reader in zip(names, of_path, readers, strict=True):
            read = to_heads if reader is None else reader.read
            gradient = ops.convert_to_numpy(read(gradient))
            gradients[name] = np.reshape(gradient, maps[name].shape)
    if not gradients:
        raise ValueError(
            f"{type(model).__name__} {model.name!r} has no attention whose "
            f"gradients can be read. {skipped or ''}"
        )
    maps = {name: maps[name] for name in gradients}
    return (
        outputs,
        AttentionMaps(maps, skipped),
        AttentionMaps(gradients, skipped),
    )


def _by_tape(run_with, _):
    import tensorflow as tf

    with tf.GradientTape() as tape:

        def watch(weights):
            tape.watch(weights)
            return weights

        chosen, outputs, run = run_with(watch)
    gradients = tape.gradient(
        chosen,
        [weights for _, weights, _ in run.changed],
        unconnected_gradients=tf.UnconnectedGradients.ZERO,
    )
    return outputs, run, _named(run, gradients)


def _by_autograd(run_with, _):
    import torch

    if torch.is_inference_mode_enabled():
        raise ValueError(
            "There are no gradients in `torch.inference_mode()`. Call "
            "`get_attention_gradients` outside it."
        )

    def watch(weights):
        # Where nothing before them has a gradient, they are the first.
        return weights if weights.requires_grad else weights.requires_grad_()

    with torch.enable_grad():
        chosen, outputs, run = run_with(watch)
        weights = [weights for _, weights, _ in run.changed]
        if weights and chosen.requires_grad:
            gradients = torch.autograd.grad(
                chosen, weights, retain_graph=True, materialize_grads=True
            )
        else:
            gradients = [torch.zeros_like(w) for w in weights]
    return outputs, run, _named(run, gradients)


def _by_addition(run_with, model):
    """JAX has gradients by arguments only: zeros that are added, here."""
    import jax

    variables = model.non_trainable_variables
    before = [v.value for v in variables]
    _, outputs, run = run_with(lambda weights: weights)
    after = [v.value for v in variables]
    # Without a place, they are changed where Keras forms them; of place 0 no
    # operation is known to which zeros could be added.
    arrays = [
        None if place == 0 else beside(outputs, weights)
        for _, weights, place in run.changed
    ]
    zeros = [None if w is None else ops.zeros_like(w) for w in arrays]
    places = [place for *_, place in run.changed]

    def chosen(zeros):
        put_back(before)  # dropout draws the same again
        pairs = list(zip(places, zeros, strict=True))
        added = iter([zero for place, zero in pairs if place is None])
        at = {place: zero for place, zero in pairs if place}

        def add(weights):
            zero = next(added)
            return weights if zero is None else weights + zero

        return run_with(add, at)[:2]

    def put_back(values):
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    try:
        gradients, again = jax.grad(chosen, has_aux=True)(zeros)
    finally:
        put_back(after)
    pairs = zip(float_arrays(outputs), float_arrays(again), strict=True)
    if any(differs(*pair).any() for pair in pairs):
        raise ValueError(
            "On JAX the model runs twice, and its outputs differed, as with a "
            "dropout that draws from no seed generator of the model. Give "
            "`keras.random.dropout` a `keras.random.SeedGenerator` of a layer."
        )
    return outputs, run, _named(run, gradients)


def _named(run, gradients):
    return [
        (path, None if g is None else ops.convert_to_numpy(g))
        for (path, *_), g in zip(run.changed, gradients, strict=True)
    ]


_BACKENDS = {
    "tensorflow": _by_tape,
    "jax": _by_addition,
    "torch": _by_autograd,
}


def gradient_rollout(weights, gradients):
    """How much each input adds to a chosen output, through all layers.

        Ā_l = mean over heads of max(0, weights_l × gradients_l)
        rollout_l = rollout_(l − 1) + Ā_l rollout_(l − 1),  rollout_0 = I

    Source: Chefer, Gur and Wolf (2021), arXiv:2103.15679, equations 5 and 6,
    for self-attention.

    Args:
        weights, gradients: Mappings or sequences of the layers of one encoder,
            first to last, each a float array `(…, H, T, T)`.

    Returns:
        Float array `(L, …, 1, T, T)`, the rollout after each of the L layers,
        as maps of one head. Row t belongs to position t of the last layer.

    Raises:
        ValueError: If a layer has not as many keys as queries, or there are
            not as many gradients as weights.
    """
    weights, gradients = (
        list(layers.values() if hasattr(layers, "values") else layers)
        for layers in (weights, gradients)
    )
    if len(weights) != len(gradients):
        raise ValueError(
            "There must be gradients for each layer. Received: "
            f"{len(weights)} weights and {len(gradients)} gradients."
        )
    rollout = np.eye(np.shape(weights[0])[-1])
    rollouts = []
    for w, g in zip(weights, gradients, strict=True):
        added = np.maximum(self_attention(w) * self_attention(g), 0.0)
        rollout = rollout + added.mean(-3, keepdims=True) @ rollout
        rollouts.append(rollout)
    return np.stack(rollouts)
