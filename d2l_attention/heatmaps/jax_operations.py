"""The operations that JAX runs, told to a `Tracker` of axes.

A `Trace` hears each, and what a compiled function does is read from its jaxpr.
It has no public name, seen on JAX 0.10; where it is gone, nothing is heard.
"""

import contextlib
from functools import partial
import string
import weakref

from d2l_attention.heatmaps.operations import Listener
from d2l_attention.heatmaps.roles import fresh
import numpy as np

SHAPES = {"reshape", "squeeze", "expand_dims"}
RANDOM = {
    *("random_bits", "random_seed", "random_wrap", "random_unwrap"),
    *("random_fold_in", "random_gamma", "threefry2x32", "rng_bit_generator"),
    *("rng_uniform",),
}
REDUCTIONS = {
    *("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and"),
    *("reduce_or", "argmax", "argmin"),
}
# Each number comes of those in the same place.
ELEMENTWISE = {
    *("abs", "neg", "exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt"),
    *("square", "logistic", "tanh", "erf", "erfc", "erf_inv", "sin", "cos"),
    *("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
    *("floor", "ceil", "round", "sign", "is_finite", "cbrt", "not", "lgamma"),
    *("digamma", "convert_element_type", "reduce_precision", "stop_gradient"),
    *("copy", "copy_p", "add", "add_any", "sub", "mul", "div", "rem", "max"),
    *("min", "pow", "atan2", "nextafter", "eq", "ne", "lt", "le", "gt", "ge"),
    *("and", "or", "xor", "clamp", "select_n", "integer_pow", "real"),
    *("shift_left", "shift_right_logical", "shift_right_arithmetic"),
}
# Axes that do not change, and are not read across but in their own place.
IN_PLACE = {
    *("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "rev", "pad"),
    *("reduce_window", "reduce_window_sum", "reduce_window_max"),
    *("reduce_window_min", "select_and_gather_add"),
}
# Functions that were compiled, or have a derivative of their own.
FUNCTIONS = {
    *("jit", "pjit", "closed_call", "core_call", "remat", "remat2"),
    *("checkpoint", "custom_jvp_call", "custom_vjp_call"),
}
# As `roles` names what they do.
NAMES = {
    "add": "AddV2",
    "add_any": "AddV2",
    "sub": "Sub",
    "mul": "Mul",
    "div": "RealDiv",
    "exp": "Exp",
    "pow": "Pow",
    "integer_pow": "Pow",
    "square": "Square",
    "max": "Maximum",
    "min": "Minimum",
    "reduce_sum": "Sum",
    "select_n": "SelectV2",
    **dict.fromkeys(("convert_element_type", "copy", "copy_p"), "Identity"),
    **dict.fromkeys(("stop_gradient", "reduce_precision"), "Identity"),
}
RULES = {
    **dict.fromkeys(SHAPES, "reshape"),
    **dict.fromkeys(REDUCTIONS, "reduce"),
    **dict.fromkeys(IN_PLACE, "in_place"),
}
KEEP_A_NUMBER = SHAPES | {"convert_element_type", "broadcast_in_dim"}


class JaxListener(Listener):
    """Arrays are told apart by their `id`, as long as they live."""

    ELEMENTWISE, RULES = ELEMENTWISE, RULES

    def __init__(self, tracker):
        super().__init__(tracker)
        self._alive = {}  # id → reference
        self._num_heard = 0
        self._depth = 0  # of functions that are heard within
        self._places = {}  # id → place of the operation that gave it

    def key(self, tensor):
        return id(tensor)

    def put(self, tensor, traced):
        if not self.is_tensor(tensor):
            return
        key = id(tensor)

        def forget(_):
            for told in (self._known, self._alive, self._places):
                told.pop(key, None)

        self._alive[key] = weakref.ref(tensor, forget)
        super().put(tensor, traced)

    def place_of(self, tensor):
        """Which operation gave it; 0 if it was not one that is counted."""
        return self._places.get(id(tensor), 0)

    def is_tensor(self, x):
        import jax

        return isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer)

    def number(self, x):
        is_key = str(getattr(x, "dtype", "")).startswith("key")
        return None if np.ndim(x) or is_key else float(x)

    def kind(self, x):
        if x.dtype == bool:
            return "bool"
        return "float" if x.dtype.kind in "fV" else "int"  # V: bfloat16

    @contextlib.contextmanager
    def hearing(self):
        try:
            from jax._src import core

            parent = core.trace_ctx.trace
            is_eager = parent is core.eval_trace
            trace = _trace(core, parent, self._heard)
            self._as_before = partial(core.set_current_trace, parent)
        except (ImportError, AttributeError, TypeError):
            yield False
            return
        if not is_eager and self.added is None:
            yield False
            return
        with core.set_current_trace(trace):
            yield True

    def _heard(self, operation, run, by_parts=None):
        """Run an operation, and note it: primitive, arguments, parameters.

        None is a function that is heard as it runs. A compiled one that may
        weigh values is run once more, `by_parts`: weights that do not leave it
        would not be seen.
        """
        if self._is_paused:
            return run()
        self._num_heard += not self._depth
        place = self._num_heard
        self._depth += 1
        try:
            result = run()
            parts = by_parts() if by_parts and self.added is None else None
        finally:
            self._depth -= 1
        is_list = isinstance(result, (list, tuple))
        results = list(result) if is_list else [result]
        if self.added is not None:
            if self._depth or place not in self.added:
                return result
            with self._as_before():
                changed = results[0] + self.added[place]
            return [changed] if is_list else changed
        if parts is not None:
            for x, same in zip(results, parts, strict=True):
                self.put(x, self.of(same))
        elif operation is not None:
            self.hear(*operation, results)
        if not self._depth and len(results) == 1:
            self._places[id(results[0])] = place
        return result

    def hear(self, primitive, args, params, results):
        name = primitive.name
        with self.paused():
            traced = [self.of(x) for x in args]
            values = [None if self._is_large(x) else x for x in args]
            rule = partial(self._rule, name, traced, params, results, values)
            source = "random" if name in RANDOM else None
            self.note(name, args, results, rule, source)

    def _is_large(self, x):
        return np.ndim(x) > 0 or self.of(x).data

    def _rule(self, name, x, params, outputs, values=()):
        """`outputs` have a shape, and `values` are those of numbers."""
        shapes = [tuple(y.shape) for y in outputs]
        if name in FUNCTIONS:
            return self._function(x, params, shapes)
        return self.by_rule(name, x, params, shapes, values)

    def _function(self, x, params, shapes):
        closed = _inner(params)
        if params.get("name") == "_mean" and _operations_in(closed) <= _MEAN:
            return self._mean(x, closed, shapes)
        constants = [self.of(c) for c in getattr(closed, "consts", ())]
        jaxpr = getattr(closed, "jaxpr", closed)
        known = dict(zip(jaxpr.constvars, constants, strict=True))
        known |= zip(jaxpr.invars, x, strict=True)

        def of(variable):
            if not hasattr(variable, "val"):
                return known[variable]
            literal = fresh(np.shape(variable.val))
            literal.number = self.number(variable.val)
            return literal

        for equation in jaxpr.eqns:
            name, params = equation.primitive.name, equation.params
            outputs = [v.aval for v in equation.outvars]
            inputs = [of(v) for v in equation.invars]
            values = [y.number for y in inputs]
            rule = partial(self._rule, name, inputs, params, outputs, values)
            source = "random" if name in RANDOM else None
            made_shapes = [getattr(y, "shape", ()) for y in outputs]
            made = self.trace(name, inputs, made_shapes, rule, source)
            if name in KEEP_A_NUMBER:
                made[0].number = inputs[0].number
            known |= zip(equation.outvars, made, strict=True)
        return [of(v) for v in jaxpr.outvars]

    def _mean(self, x, closed, shapes):
        """A sum and a quotient, which is what a mean is called."""
        over = [
            equation.params["axes"]
            for equation in closed.jaxpr.eqns
            if equation.primitive.name == "reduce_sum"
        ]
        keepdims = len(shapes[0]) == len(x[0].axes)
        return [self.tracker.reduce(x[0], over[0], keepdims, "Mean")]

    def _elementwise(self, name, x, params, shapes, values):
        (shape,) = shapes
        if name == "select_n":  # which, and what there is
            x = [*x[1:], x[0]]
        elif name == "clamp":
            x = x[1:2]
        elif name == "integer_pow":
            x = [*x, fresh(())]
        narrow = [y.narrow or y for y in x]
        for options in (narrow, x):
            if np.broadcast_shapes(*(y.shape for y in options)) == shape:
                name = NAMES.get(name, name)
                return self.tracker.elementwise(options, shape, name)
        return None

    def _reshape(self, name, x, params, shapes, values):
        return self.tracker.reshape(x[0], shapes[0])

    def _transpose(self, name, x, params, shapes, values):
        return self.tracker.transpose(x[0], params["permutation"])

    def _broadcast_in_dim(self, name, x, params, shapes, values):
        """What is repeated is, in arithmetic, as narrow as it was."""
        shape = [1] * len(shapes[0])
        places = params["broadcast_dimensions"]
        for place, size in zip(places, x[0].shape, strict=True):
            shape[place] = size
        narrow = self.tracker.reshape(x[0], shape)
        if tuple(shape) == shapes[0]:
            return narrow
        made = self.tracker.repeat(narrow, shapes[0])
        made.narrow = narrow
        return made

    def _tile(self, name, x, params, shapes, values):
        return self.tracker.repeat(x[0], shapes[0])

    def _dot_general(self, name, x, params, shapes, values):
        summed, batch = params["dimension_numbers"]
        waiting = iter(string.ascii_letters)
        names, kept = [[None] * len(y.axes) for y in x], ""
        for pairs in (batch, summed):
            for i, j in zip(*pairs, strict=True):
                names[0][i] = names[1][j] = letter = next(waiting)
                kept += letter if pairs is batch else ""
        for letters in names:
            for i, letter in enumerate(letters):
                if letter is None:
                    letters[i] = letter = next(waiting)
                    kept += letter
        return self.tracker.contract(x, ["".join(n) for n in names], kept)

    def _reduce(self, name, x, params, shapes, values):
        name = NAMES.get(name, name)
        return self.tracker.reduce(x[0], params["axes"], False, name)

    def _concatenate(self, name, x, params, shapes, values):
        return self.tracker.join(x, params["dimension"])

    def _stack(self, name, x, params, shapes, values):
        return self.tracker.stack(x, params["axis"] % len(shapes[0]))

    def _slice(self, name, x, params, shapes, values):
        steps = params["strides"] or (1,) * len(shapes[0])
        cuts = params["start_indices"], params["limit_indices"], steps
        return self.tracker.cut(x[0], [*zip(*cuts, strict=True)])

    def _dynamic_slice(self, name, x, params, shapes, values):
        cuts = []
        for i, (size, before) in enumerate(
            zip(shapes[0], x[0].shape, strict=True)
        ):
            start = values[i + 1]
            if size == before:
                cuts.append(None)
            elif start is None:
                return None
            else:
                start = min(max(int(start), 0), before - size)
                cuts.append((start, start + size, 1))
        return self.tracker.cut(x[0], cuts)

    def _dynamic_update_slice(self, name, x, params, shapes, values):
        return self.written(*x[:2])

    def _split(self, name, x, params, shapes, values):
        return self.parts(x[0], params["axis"], [*map(int, params["sizes"])])

    def _unstack(self, name, x, params, shapes, values):
        parts = self.parts(x[0], params["axis"], [1] * len(shapes))
        pairs = zip(parts, shapes, strict=True)
        return [self.tracker.reshape(part, shape) for part, shape in pairs]

    def _gather(self, name, x, params, shapes, values):
        """Rows at indices, if they are whole."""
        rows, ids = x
        numbers = params["dimension_numbers"]
        axes = numbers.start_index_map
        if len(axes) != 1 or numbers.operand_batching_dims:
            return None
        (axis,) = axes
        whole = [*rows.shape]
        whole[axis] = 1
        if [*params["slice_sizes"]] != whole:
            return None
        ids = self.tracker.reshape(ids, ids.shape[:-1])
        is_kept = not numbers.collapsed_slice_dims
        if is_kept and ids.axes:
            return None
        taken = self.tracker.take(rows, ids, axis)
        places = [i for i in range(len(rows.axes)) if i != axis or is_kept]
        moved = [i if i <= axis else i + len(ids.axes) - 1 for i in places]
        moved = places if is_kept else moved
        if taken is None or [*numbers.offset_dims] != moved:
            return None
        return self.tracker.reshape(taken, shapes[0]) if is_kept else taken

    def _conv_general_dilated(self, name, x, params, shapes, values):
        numbers = params["dimension_numbers"]
        if any(n != 1 for n in params["lhs_dilation"]):
            return None  # transposed
        first = self.tracker.transpose(x[0], numbers.lhs_spec)
        batch, features, *size = (shapes[0][i] for i in numbers.out_spec)
        kept = self.tracker.keep(first, (batch, first.shape[1], *size))
        kept.axes[1] = fresh((features,)).axes[0]
        return self.tracker.transpose(kept, np.argsort(numbers.out_spec))

    def _in_place(self, name, x, params, shapes, values):
        return [self.tracker.keep(x[0], shapes[0])]


def _trace(core, parent, heard):
    """Hears operations, and has its parent run them."""

    class Trace(core.Trace):
        def stage_value(self, value):
            return parent.stage_value(value)

        def process_primitive(self, primitive, args, params, /):
            def run():
                with core.set_current_trace(parent):
                    return primitive.bind(*args, **params)

            def by_parts():
                closed = _inner(params)
                jaxpr = getattr(closed, "jaxpr", closed)
                constants = getattr(closed, "consts", ())
                with core.set_current_trace(self):
                    return core.eval_jaxpr(jaxpr, constants, *args)

            is_heard = primitive.name in FUNCTIONS and _may_weigh(params)
            operation = primitive, args, params
            return heard(operation, run, by_parts if is_heard else None)

        def process_custom_jvp_call(self, primitive, *args, **options):
            return self._function("jvp", primitive, *args, **options)

        def process_custom_vjp_call(self, primitive, *args, **options):
            return self._function("vjp", primitive, *args, **options)

        def _function(self, kind, primitive, function, *others, **options):
            args = others[-1]

            def run():
                if parent is core.eval_trace:
                    with core.set_current_trace(self):
                        return function.call_wrapped(*args)
                call = getattr(parent, f"process_custom_{kind}_call")
                return call(primitive, function, *others, **options)

            return heard(None, run)

    return Trace()


_MEAN = {"reduce_sum", "div", "broadcast_in_dim", "convert_element_type"}


def _inner(params):
    """The jaxpr of a function."""
    names = "jaxpr", "call_jaxpr", "fun_jaxpr"
    return next(params[name] for name in names if name in params)


def _may_weigh(params):
    """Whether there may be a softmax in a function, and a sum over values."""
    inside = _operations_in(_inner(params))
    return "exp" in inside and not inside.isdisjoint(("dot_general", "mul"))


def _operations_in(value):
    """Names of the operations in a jaxpr, and in those of its parameters."""
    if isinstance(value, (tuple, list)):
        return set().union(*map(_operations_in, value))
    equations = getattr(getattr(value, "jaxpr", value), "eqns", ())
    names = {equation.primitive.name for equation in equations}
    parts = [[*equation.params.values()] for equation in equations]
    return names | _operations_in(parts)
