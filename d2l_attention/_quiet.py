"""Keep TensorFlow's native log lines away from a notebook's reader.

TensorFlow 2.21 writes to file descriptor 2 while it is imported and when it
first meets a device or XLA, whatever `TF_CPP_MIN_LOG_LEVEL` says, and a
Jupyter kernel shows those lines as if the reader's cell had failed.
"""

import contextlib
import os
import sys
import tempfile


def in_notebook():
    """Whether this process is an IPython kernel (and not a plain script)."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


@contextlib.contextmanager
def hold_stderr():
    """Hold back what is written to descriptor 2; replay it on an error."""
    with tempfile.TemporaryFile() as held:
        sys.stderr.flush()
        original = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(original, 2)
            held.seek(0)
            os.write(2, held.read())
            raise
        finally:
            os.dup2(original, 2)
            os.close(original)


def import_backend():
    """Import Keras and wake its backend, without log lines in a notebook.

    Outside a notebook nothing is redirected and nothing is woken.
    """
    if not in_notebook() or "d2l_attention.masking" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with hold_stderr():
        import keras

        # The first compiled function is what makes TensorFlow announce XLA.
        model = keras.Sequential([keras.layers.Identity()])
        model.compile(jit_compile=True)
        model.predict(keras.ops.ones((1, 1)), verbose=0)
