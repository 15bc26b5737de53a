"""The arguments that `help` shows of a class that inherits its constructor."""

import inspect


class ConstructorSignature:
    """As `__signature__` of a base class: the arguments of `__init__`.

    Debian 12's Python 3.11.2 would show `(*args, **kwargs)`: it looks at the
    `__new__` that a class inherits from Keras before its `__init__`.
    """

    def __get__(self, instance, cls):
        if instance is not None:  # an instance is called, not constructed
            raise AttributeError("__signature__")
        signature = inspect.signature(cls.__init__)
        _, *arguments = signature.parameters.values()
        return signature.replace(parameters=arguments)
