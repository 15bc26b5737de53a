"""The operations that TensorFlow runs, told to a `Tracker` of axes.

An eager operation can be heard through `op_callbacks` alone, which is no
public module of TensorFlow, seen on 2.21. Where it is gone, nothing is heard,
and layers are read by their softmax, as on other backends.
"""

import contextlib
from functools import partial

from d2l_attention.heatmaps.operations import Listener
from d2l_attention.heatmaps.roles import Traced, fresh
import numpy as np

NO_DATA = {
    *("Const", "Fill", "Range", "LinSpace", "Shape", "ShapeN", "Size", "Rank"),
    *("ZerosLike", "OnesLike", "ReadVariableOp", "VarHandleOp", "Empty"),
    *("BroadcastArgs", "BroadcastGradientArgs", "InvertPermutation", "Eye"),
}
PRODUCTS = {"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"}
REDUCTIONS = {
    *("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "ArgMax", "ArgMin"),
    *("EuclideanNorm",),
}
# Each number comes of those in the same place.
ELEMENTWISE = {
    *("Abs", "Neg", "Exp", "Expm1", "Log", "Log1p", "Sqrt", "Rsqrt", "Square"),
    *("Sigmoid", "Tanh", "Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Sign"),
    *("Softplus", "Softsign", "Erf", "Erfc", "Sin", "Cos", "Tan", "Asin"),
    *("Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Floor"),
    *("Ceil", "Round", "Rint", "Reciprocal", "Inv", "IsNan", "IsInf"),
    *("IsFinite", "Identity", "Cast", "StopGradient", "CheckNumerics"),
    *("PreventGradient", "Add", "AddV2", "AddN", "Sub", "Mul", "MulNoNan"),
    *("RealDiv", "Div", "DivNoNan", "FloorDiv", "FloorMod", "TruncateDiv"),
    *("Maximum", "Minimum", "Pow", "SquaredDifference", "Equal", "NotEqual"),
    *("Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd"),
    *("LogicalOr", "LogicalNot", "Select", "SelectV2", "ClipByValue"),
    *(
        "MatrixBandPart",
        "Xlogy",
        "Xdivy",
        "Xlog1py",
        "Atan2",
        "Lgamma",
        "Digamma",
    ),
}
# Axes that do not change, and are not read across but in their own place.
IN_PLACE = {
    *("Cumsum", "Cumprod", "ReverseV2", "Roll", "PadV2"),
    *("Pad", "MirrorPad", "MatrixSetDiagV3", "FusedBatchNormV3"),
    *("Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool", "Conv3D"),
    *("MaxPool3D", "AvgPool3D", "Conv"),
}

RULES = {
    **dict.fromkeys(PRODUCTS, "matmul"),
    **dict.fromkeys(REDUCTIONS, "reduce"),
    **dict.fromkeys(("Reshape", "Squeeze", "ExpandDims"), "reshape"),
    **dict.fromkeys(("BroadcastTo", "Tile"), "repeat"),
    **dict.fromkeys(IN_PLACE, "in_place"),
    **dict.fromkeys(("GatherV2", "Gather"), "take"),
}


class TensorFlowListener(Listener):
    """Tensors have numbers, which are never used again."""

    ELEMENTWISE, RULES = ELEMENTWISE, RULES

    def key(self, tensor):
        return tensor._id

    def is_tensor(self, x):
        return hasattr(x, "_id") and hasattr(x, "numpy")

    def number(self, x):
        is_number = x.dtype.is_floating or x.dtype.is_integer
        return float(x.numpy()) if is_number and not len(x.shape) else None

    def kind(self, x):
        if x.dtype.is_bool:
            return "bool"
        return "float" if x.dtype.is_floating else "int"

    @contextlib.contextmanager
    def hearing(self):
        try:
            from tensorflow.python.framework import op_callbacks
        except ImportError:
            yield False
            return
        op_callbacks.add_op_callback(self)
        try:
            yield True
        finally:
            op_callbacks.remove_op_callback(self)

    def __call__(self, name, inputs, attrs, outputs, op_name=None, graph=None):
        """What TensorFlow calls after each operation."""
        if self._is_paused or graph is not None or not outputs:
            return
        name = _text(name)
        attrs = dict(zip(attrs[::2], attrs[1::2], strict=True)) if attrs else {}
        outputs = [x for x in outputs if self.is_tensor(x)]
        tensors = [x for x in inputs if self.is_tensor(x)]
        rule = partial(self._rule, name, inputs, attrs, outputs)
        source = "constant" if name in NO_DATA else None
        if name.startswith(("Random", "Stateless")):
            source = "random"
        self.note(name, tensors, outputs, rule, source)

    def _rule(self, name, inputs, attrs, outputs):
        traced = [self.of(x) for x in inputs if self.is_tensor(x)]
        return self.by_rule(name, traced, inputs, attrs, outputs)

    def _elementwise(self, name, x, inputs, attrs, outputs):
        shape = tuple(outputs[0].shape)
        if np.broadcast_shapes(*(y.shape for y in x)) != shape:
            return None
        return self.tracker.elementwise(x, shape, name)

    def _BiasAdd(self, name, x, inputs, attrs, outputs):
        return Traced(x[0].axes, True, x[0].weights)

    def _Softmax(self, name, x, inputs, attrs, outputs):
        return self.tracker.softmax(x[0], -1)

    def _reduce(self, name, x, inputs, attrs, outputs):
        over = np.atleast_1d(_number(inputs[1])).tolist()
        keepdims = bool(attrs.get("keep_dims", False))
        return self.tracker.reduce(x[0], over, keepdims, name)

    def _matmul(self, name, x, inputs, attrs, outputs):
        a, b = x
        is_turned = [
            bool(attrs.get(f"transpose_{side}") or attrs.get(adj))
            for side, adj in (("a", "adj_x"), ("b", "adj_y"))
        ]
        letters = _LETTERS[: len(outputs[0].shape) - 2]
        of_a = letters[len(letters) - len(a.axes) + 2 :]
        of_b = letters[len(letters) - len(b.axes) + 2 :]
        of_a += "ji" if is_turned[0] else "ij"
        of_b += "kj" if is_turned[1] else "jk"
        return self.tracker.contract(x, [of_a, of_b], letters + "ik")

    def _Einsum(self, name, x, inputs, attrs, outputs):
        equation = _text(attrs["equation"])
        left, kept = equation.replace(" ", "").split("->")
        letters = left.split(",")
        if "..." in equation:
            gaps = [
                len(y.axes) - len(names) + 3 if "..." in names else 0
                for y, names in zip(x, letters, strict=True)
            ]
            dots = "0123456789"[: max(gaps)]
            letters = [
                names.replace("...", dots[len(dots) - gap :])
                for names, gap in zip(letters, gaps, strict=True)
            ]
            kept = kept.replace("...", dots)
        if any(len({*names}) < len(names) for names in letters):
            return None  # a diagonal
        return self.tracker.contract(x, letters, kept)

    def _reshape(self, name, x, inputs, attrs, outputs):
        return self.tracker.reshape(x[0], tuple(outputs[0].shape))

    def _Transpose(self, name, x, inputs, attrs, outputs):
        return self.tracker.transpose(x[0], _number(inputs[1]).tolist())

    def _repeat(self, name, x, inputs, attrs, outputs):
        return self.tracker.repeat(x[0], tuple(outputs[0].shape))

    def _ConcatV2(self, name, x, inputs, attrs, outputs):
        axis = int(_number(inputs[-1])) % len(outputs[0].shape)
        return self.tracker.join(x[:-1], axis)

    def _OneHot(self, name, x, inputs, attrs, outputs):
        axis, shape = attrs["axis"], tuple(outputs[0].shape)
        axes = [*x[0].axes]
        place = len(axes) if axis == -1 else axis
        axes[place:place] = fresh((shape[place],)).axes
        return Traced(axes, True)

    def _Pack(self, name, x, inputs, attrs, outputs):
        return self.tracker.stack(x, attrs["axis"] % len(outputs[0].shape))

    def _Unpack(self, name, x, inputs, attrs, outputs):
        parts = self.parts(x[0], attrs["axis"], [1] * len(outputs))
        pairs = zip(parts, outputs, strict=True)
        return [self.tracker.reshape(p, tuple(y.shape)) for p, y in pairs]

    def _Split(self, name, x, inputs, attrs, outputs):
        return self._split(x[1], inputs[0], outputs)

    def _SplitV(self, name, x, inputs, attrs, outputs):
        return self._split(x[0], inputs[2], outputs)

    def _split(self, x, axis, outputs):
        axis = int(_number(axis)) % len(x.axes)
        return self.parts(x, axis, [y.shape[axis] for y in outputs])

    def _Slice(self, name, x, inputs, attrs, outputs):
        starts, sizes = _number(inputs[1]).tolist(), outputs[0].shape
        cuts = [(a, a + n, 1) for a, n in zip(starts, sizes, strict=True)]
        return self.tracker.cut(x[0], cuts)

    def _StridedSlice(self, name, x, inputs, attrs, outputs):
        begin, end, step = (_number(i).tolist() for i in inputs[1:4])
        names = "begin", "end", "ellipsis", "new_axis", "shrink_axis"
        begins, ends, dots, new, shrunk = (
            {i for i in range(len(begin)) if attrs[f"{n}_mask"] >> i & 1}
            for n in names
        )
        shape, cuts = x[0].shape, []
        rest = len(shape) - len(begin) + len(dots) + len(new)
        for i in range(len(begin)):
            if i in dots:
                cuts += [None] * rest
            elif i in shrunk:
                at = begin[i] % shape[len(cuts)]
                cuts.append((at, at + 1, 1))
            elif i not in new:
                part = slice(
                    None if i in begins else begin[i],
                    None if i in ends else end[i],
                    step[i],
                )
                cuts.append(part.indices(shape[len(cuts)]))
        cuts += [None] * (len(shape) - len(cuts))
        cut = self.tracker.cut(x[0], cuts)
        return self.tracker.reshape(cut, tuple(outputs[0].shape))

    def _take(self, name, x, inputs, attrs, outputs):
        if attrs.get("batch_dims"):
            return None
        axis = int(_number(inputs[2])) % len(x[0].axes) if inputs[2:] else 0
        return self.tracker.take(x[0], x[1], axis)

    def _ResourceGather(self, name, x, inputs, attrs, outputs):
        if attrs.get("batch_dims"):
            return None
        ids = x[0]  # the variable itself is no tensor
        rest = fresh(tuple(outputs[0].shape)[len(ids.axes) :])
        return Traced(ids.axes + rest.axes, ids.data)

    def _XlaDynamicUpdateSlice(self, name, x, inputs, attrs, outputs):
        return self.written(*x[:2])

    def _in_place(self, name, x, inputs, attrs, outputs):
        if _text(attrs.get("data_format", "NHWC")) not in ("NHWC", "NDHWC"):
            return None
        shape = tuple(outputs[0].shape)
        if len(x[0].axes) != len(shape):
            return None
        first = self.tracker.keep(x[0], shape)
        return [first, *(fresh(tuple(y.shape)) for y in outputs[1:])]


_LETTERS = "ABCDEFGH"


def _text(name):
    return name.decode() if isinstance(name, bytes) else name


def _number(tensor):
    return tensor.numpy()
