"""The workers of a training, and which of them this process is."""

import json
import os
import re

from d2l_attention._quiet import hold_stderr
from d2l_attention.translator.launch import check_port, count_gpus
from d2l_attention.translator.run_folder import RunError
import tensorflow as tf

# The errors that a worker sees when another worker is gone.
LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
    tf.errors.UnavailableError,
)


def read_cluster():
    """Read `TF_CONFIG`.

    Returns:
        List of the workers' addresses, and the index of this worker. A
        process that runs alone gets `([], 0)`.

    Raises:
        RunError: If `TF_CONFIG` is not one list of workers. A chief, a
            parameter server or an evaluator is refused.
    """
    text = os.environ.get("TF_CONFIG", "").strip()
    if text in ("", "{}"):
        return [], 0
    try:
        config = json.loads(text)
        addresses = [str(a) for a in config["cluster"]["worker"]]
        index = int(config["task"]["index"])
        fits = (
            [*config["cluster"]] == ["worker"]
            and config["task"]["type"] == "worker"
            and 0 <= index < len(addresses) == len({*addresses})
            and all(re.fullmatch(r".+:[0-9]+", a) for a in addresses)
        )
    except (ValueError, KeyError, TypeError):
        fits = False
    if not fits:
        raise RunError(
            'TF_CONFIG must look like {"cluster": {"worker": ["host:port", '
            '…]}, "task": {"type": "worker", "index": 0}}, with no address '
            "twice. "
            f"Received: {text}"
        )
    return addresses, index


def make_strategy(addresses, index):
    """The strategy over all workers, or over the GPUs of one process.

    Args:
        addresses: List of str, the addresses of all workers; empty = alone.
        index: Int, position of this worker among them.

    Returns:
        A `tf.distribute.Strategy`.

    Raises:
        RunError: If this worker cannot listen on its own address.
    """
    if len(addresses) > 1:
        try:
            check_port(addresses[index])
        except OSError as error:
            raise RunError(
                f"Worker {index} cannot listen on {addresses[index]}: {error}"
            ) from error
        with hold_stderr():
            return tf.distribute.MultiWorkerMirroredStrategy()
    if count_gpus() > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def check_same(strategy, step):
    """Refuse to train where the workers would continue from different steps.

    All steps are equal where (number of workers) Σ step² = (Σ step)².

    Args:
        strategy: A `tf.distribute.Strategy`.
        step: Int, the step of this worker's checkpoint; 0 without one.

    Raises:
        RunError: If the workers read different checkpoints, or some workers
            found none.
    """
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return
    numbers = tf.constant([1, step, step**2], "float64")
    number, total, squares = strategy.reduce("SUM", numbers, axis=None).numpy()
    if number * squares != total**2:
        raise RunError(
            f"This worker goes on from step {step}, others from another. Do "
            "all workers use the same run folder?"
        )


def from_chief(strategy, value):
    """The number of the first worker, for all of them.

    Args:
        strategy: A `tf.distribute.Strategy`.
        value: Float of the first worker; None in the others.
    """
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return value
    number = tf.constant(0.0 if value is None else value, "float64")
    return float(strategy.reduce("SUM", number, axis=None))


def reason(error):
    """The line of TensorFlow's long message that says what happened."""
    lines = error.message.strip().splitlines() or [type(error).__name__]
    return next((line for line in lines[1:] if "aborted" in line), lines[0])
