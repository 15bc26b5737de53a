"""The operations that torch runs, told to a `Tracker` of axes.

A `TorchDispatchMode` hears each. Its module has no public name, seen on torch
2.13; where it is gone, nothing is heard, and layers are read by their softmax.
"""

import contextlib
from functools import partial

from d2l_attention.heatmaps.operations import Listener
from d2l_attention.heatmaps.roles import Traced, fresh
import numpy as np

NO_DATA = {
    *("arange", "zeros", "ones", "full", "empty", "eye", "linspace"),
    *("zeros_like", "ones_like", "full_like", "empty_like", "scalar_tensor"),
    *("new_zeros", "new_ones", "new_full", "new_empty", "empty_strided"),
}
RANDOM = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like"),
    *("bernoulli", "uniform", "normal", "random"),
}
SHAPES = {
    *("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "flatten"),
    *("unflatten", "view_as", "_reshape_alias"),
}
REDUCTIONS = {
    *("sum", "mean", "amax", "amin", "max", "min", "prod", "argmax", "argmin"),
    *("any", "all", "var", "std", "var_mean", "linalg_vector_norm"),
}
# Each number comes of those in the same place.
ELEMENTWISE = {
    *("abs", "neg", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "square"),
    *("sigmoid", "tanh", "relu", "leaky_relu", "elu", "gelu", "silu", "mish"),
    *("softplus", "hardtanh", "hardswish", "hardsigmoid", "sign", "sgn", "erf"),
    *("erfc", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh"),
    *("floor", "ceil", "round", "reciprocal", "isnan", "isinf", "isfinite"),
    *("clone", "detach", "alias", "_to_copy", "lift_fresh", "copy"),
    *("lift_fresh_copy", "add", "sub", "rsub", "mul", "div", "remainder"),
    *("fmod", "floor_divide", "maximum", "minimum", "pow", "eq", "ne", "lt"),
    *("le", "gt", "ge", "logical_and", "logical_or", "logical_not"),
    *("logical_xor", "bitwise_and", "bitwise_or", "bitwise_not", "where"),
    *("masked_fill", "clamp", "clamp_min", "clamp_max", "addcmul", "addcdiv"),
    *("nan_to_num", "atan2", "lerp", "threshold", "tril", "triu", "xlogy"),
}
# Axes that do not change, and are not read across but in their own place.
IN_PLACE = {
    *(
        "cumsum",
        "cumprod",
        "flip",
        "roll",
        "constant_pad_nd",
        "native_layer_norm",
    ),
    *("native_batch_norm", "_native_batch_norm_legit", "native_group_norm"),
    *(
        "max_pool2d_with_indices",
        "avg_pool2d",
        "_native_batch_norm_legit_no_training",
    ),
}
# As `roles` names what they do.
NAMES = {
    "add": "AddV2",
    "sub": "Sub",
    "rsub": "Sub",
    "mul": "Mul",
    "div": "RealDiv",
    "exp": "Exp",
    "pow": "Pow",
    "square": "Square",
    "maximum": "Maximum",
    "minimum": "Minimum",
    "sum": "Sum",
    "mean": "Mean",
    "where": "SelectV2",
    "masked_fill": "SelectV2",
    "tril": "SelectV2",
    "triu": "SelectV2",
    **dict.fromkeys(("clone", "detach", "alias", "_to_copy"), "Identity"),
    **dict.fromkeys(("lift_fresh", "lift_fresh_copy", "copy"), "Identity"),
}

RULES = {
    **dict.fromkeys(SHAPES, "reshape"),
    **dict.fromkeys(("transpose", "t", "swapaxes"), "transpose"),
    **dict.fromkeys(("_softmax", "_safe_softmax"), "softmax_"),
    **dict.fromkeys(("expand", "repeat"), "repeat"),
    **dict.fromkeys(("split", "split_with_sizes", "unbind"), "split"),
    **dict.fromkeys(REDUCTIONS, "reduce"),
    **dict.fromkeys(IN_PLACE, "in_place"),
}


class TorchListener(Listener):
    """Tensors are told apart by where their numbers stand.

    Autograd copies the tensor of a view, which is another one then. A place
    that is free again is another's, which the operation that gives it notes.
    """

    ELEMENTWISE, RULES = ELEMENTWISE, RULES

    def key(self, tensor):
        return tensor.data_ptr(), tuple(tensor.shape), tensor.stride()

    def is_tensor(self, x):
        import torch

        if not isinstance(x, torch.Tensor) or x.layout != torch.strided:
            return False
        try:
            x.data_ptr()
        except RuntimeError:  # of `torch.vmap`, which has none
            return False
        return not x.is_nested

    def number(self, x):
        return None  # Python's numbers are told as such

    def kind(self, x):
        import torch

        if x.dtype == torch.bool:
            return "bool"
        return "float" if x.dtype.is_floating_point else "int"

    @contextlib.contextmanager
    def hearing(self):
        try:
            import torch
            from torch.utils._python_dispatch import TorchDispatchMode
        except ImportError:
            yield False
            return
        listener = self

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                kwargs = kwargs or {}
                if torch.is_inference_mode_enabled():  # which keeps them whole
                    with self:
                        parts = function.decompose(*args, **kwargs)
                    if parts is not NotImplemented:
                        return parts
                result = function(*args, **kwargs)
                if not listener._is_paused:
                    listener.hear(function, args, kwargs, result)
                return result

        with Mode():
            yield True

    def hear(self, function, args, kwargs, result):
        name = function.overloadpacket.__name__
        is_in_place = name.endswith("_") and not name.startswith("_")
        name = name.rstrip("_") if is_in_place else name
        results = result if isinstance(result, (tuple, list)) else [result]
        outputs = [x for x in results if self.is_tensor(x)]
        flat = [
            x
            for a in args
            for x in (a if isinstance(a, (list, tuple)) else [a])
        ]
        tensors = [x for x in [*flat, *kwargs.values()] if self.is_tensor(x)]
        with self.paused():
            rule = partial(self._rule, name, args, kwargs, flat, outputs)
            if is_in_place and any(self.of(x).weights for x in tensors):
                rule = _no_rule  # what it is written into has no rule
                numbers = (self.of(x).weights for x in tensors[:1])
                for weights in filter(None, numbers):
                    self.tracker.altered.update(weights.softmaxes)
            source = "constant" if name in NO_DATA else None
            source = "random" if name in RANDOM else source
            self.note(name, tensors, outputs, rule, source)

    def _rule(self, name, args, kwargs, flat, outputs):
        x = [self.of(t) for t in flat if self.is_tensor(t)]
        return self.by_rule(name, x, args, kwargs, outputs)

    def _elementwise(self, name, x, args, kwargs, outputs):
        # A number stands where a tensor may.
        x = [
            self.of(a) if self.is_tensor(a) else _constant(a)
            for a in args
            if self.is_tensor(a) or isinstance(a, (int, float))
        ]
        if name in ("_to_copy", "tril", "triu", "clamp", "copy", "clone"):
            x = x[-1:] if name == "copy" else x[:1]
        if name == "where":
            x = [*x[1:], x[0]] if x[1].weights else x
        shape = tuple(outputs[0].shape)
        if np.broadcast_shapes(*(t.shape for t in x)) != shape:
            return None
        name = NAMES.get(name, name)
        return self.tracker.elementwise(x, shape, name)

    def _softmax_(self, name, x, args, kwargs, outputs):
        return self.tracker.softmax(x[0], args[1])

    def _reshape(self, name, x, args, kwargs, outputs):
        return self.tracker.reshape(x[0], tuple(outputs[0].shape))

    def _permute(self, name, x, args, kwargs, outputs):
        rank = len(x[0].axes)
        return self.tracker.transpose(x[0], [i % rank for i in args[1]])

    def _transpose(self, name, x, args, kwargs, outputs):
        order = list(range(len(x[0].axes)))
        i, j = args[1:3] if args[1:] else (0, len(order) - 1)
        order[i], order[j] = order[j], order[i]
        return self.tracker.transpose(x[0], order)

    def _repeat(self, name, x, args, kwargs, outputs):
        return self.tracker.repeat(x[0], tuple(outputs[0].shape))

    def _mm(self, name, x, args, kwargs, outputs):
        return self.tracker.contract(x, ["ij", "jk"], "ik")

    def _bmm(self, name, x, args, kwargs, outputs):
        return self.tracker.contract(x, ["bij", "bjk"], "bik")

    def _mv(self, name, x, args, kwargs, outputs):
        return self.tracker.contract(x, ["ij", "j"], "i")

    def _addmm(self, name, x, args, kwargs, outputs):
        return self.tracker.contract(x[1:], ["ij", "jk"], "ik")

    def _baddbmm(self, name, x, args, kwargs, outputs):
        return self.tracker.contract(x[1:], ["bij", "bjk"], "bik")

    def _reduce(self, name, x, args, kwargs, outputs):
        over = args[1] if args[1:] else kwargs.get("dim")
        if over is None or self.is_tensor(over):
            over = list(range(len(x[0].axes)))
        over = np.atleast_1d(over).tolist() or list(range(len(x[0].axes)))
        keepdims = len(outputs[0].shape) == len(x[0].axes)
        name = NAMES.get(name, name)
        return [
            self.tracker.reduce(x[0], over, keepdims, name) for _ in outputs
        ]

    def _cat(self, name, x, args, kwargs, outputs):
        axis = args[1] if args[1:] else kwargs.get("dim", 0)
        x = [t for t in x if t.shape != (0,)]
        return self.tracker.join(x, axis % len(outputs[0].shape))

    def _stack(self, name, x, args, kwargs, outputs):
        axis = args[1] if args[1:] else kwargs.get("dim", 0)
        return self.tracker.stack(x, axis % len(outputs[0].shape))

    def _slice(self, name, x, args, kwargs, outputs):
        axis, *part = (*args[1:], *(0, None, None, None)[len(args) - 1 :])
        axis %= len(x[0].axes)
        cuts = [None] * len(x[0].axes)
        cuts[axis] = slice(*part).indices(x[0].shape[axis])
        return self.tracker.cut(x[0], cuts)

    def _select(self, name, x, args, kwargs, outputs):
        axis = args[1] % len(x[0].axes)
        at = args[2] % x[0].shape[axis]
        one = self.part(x[0], axis, at, 1)
        return self.tracker.reshape(one, tuple(outputs[0].shape))

    def _split(self, name, x, args, kwargs, outputs):
        place = 1 if name == "unbind" else 2
        axis = args[place] if args[place:] else kwargs.get("dim", 0)
        axis %= len(x[0].axes)
        sizes = [1 if name == "unbind" else y.shape[axis] for y in outputs]
        pairs = zip(self.parts(x[0], axis, sizes), outputs, strict=True)
        return [self.tracker.reshape(p, tuple(y.shape)) for p, y in pairs]

    def _embedding(self, name, x, args, kwargs, outputs):
        return self.tracker.take(x[0], x[1], 0)

    def _index_select(self, name, x, args, kwargs, outputs):
        return self.tracker.take(x[0], x[1], args[1] % len(x[0].axes))

    def _convolution(self, name, x, args, kwargs, outputs):
        """`(B, C, …)`, whatever Keras's order is."""
        if args[6]:
            return None  # transposed
        shape = tuple(outputs[0].shape)
        kept = self.tracker.keep(x[0], (shape[0], x[0].shape[1], *shape[2:]))
        kept.axes[1] = fresh((shape[1],)).axes[0]
        return kept

    def _in_place(self, name, x, args, kwargs, outputs):
        shape = tuple(outputs[0].shape)
        if len(x[0].axes) != len(shape):
            return None
        first = self.tracker.keep(x[0], shape)
        return [first, *(fresh(tuple(y.shape)) for y in outputs[1:])]

    def _native_dropout(self, name, x, args, kwargs, outputs):
        same = Traced(x[0].axes, x[0].data, x[0].weights)
        return [same, fresh(tuple(outputs[1].shape))]


def _constant(number):
    made = fresh(())
    made.number = float(number)
    return made


def _no_rule():
    return None
