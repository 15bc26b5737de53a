"""Keep TensorFlow's native log lines away from readers.

TensorFlow 2.21 writes to file descriptor 2 while it is imported and when it
first meets a device or XLA, whatever `TF_CPP_MIN_LOG_LEVEL` says. A Jupyter
kernel shows those lines as if the reader's cell had failed, and in the log of
a command they hide what the command says.
"""

import contextlib
import os
import sys
import tempfile

from d2l_attention._extras import MissingPackage, import_keras


def in_notebook():
    """Whether this process is an IPython kernel (and not a plain script)."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


def in_command():
    """Whether this process is beginning as `python -m d2l_attention …`."""
    return sys.argv[:1] == ["-m"] and "d2l_attention" in sys.orig_argv


@contextlib.contextmanager
def hold_stderr():
    """Hold back what is written to descriptor 2; replay it on an error.

    Ctrl-C is no error. Who sets `TF_CPP_MIN_LOG_LEVEL` to 0 wants to see all.
    """
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        yield
        return
    with tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        original = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Exception:
            os.dup2(original, 2)
            held.seek(0)
            os.write(2, held.read())
            raise
        finally:
            os.dup2(original, 2)
            os.close(original)


def import_backend():
    """Import Keras without log lines, in a notebook and in our commands.

    In a notebook its backend is woken too. Elsewhere nothing is redirected.
    """
    if "d2l_attention.layers.masking" in sys.modules:
        return
    if in_command():
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        try:
            with hold_stderr():
                import_keras()
        except KeyboardInterrupt:
            sys.exit(130)
        except MissingPackage as error:
            print(error, file=sys.stderr)
            sys.exit(2)
    if not in_notebook():
        return import_keras()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with hold_stderr():
        import_keras()
        import keras

        keras.ops.ones(())  # the backend meets its devices
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            # The first compiled function makes TensorFlow announce XLA.
            tf.function(tf.identity, jit_compile=True)(0.0)
