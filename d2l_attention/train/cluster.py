"""Who takes part in a training, and which of them this is: `TF_CONFIG`."""

import json
import os
import re

from d2l_attention.train.launch import check_port
from d2l_attention.train.run_folder import RunError
import tensorflow as tf

# What a worker gets to see when another one is gone.
LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
    tf.errors.InternalError,
    tf.errors.UnavailableError,
)


def read_cluster():
    """The workers' addresses, and this one's index; `([], 0)` when alone.

    Raises:
        RunError: If `TF_CONFIG` tells anything but one list of workers. Of a
            chief, a parameter server or an evaluator nothing is known here.
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
            'TF_CONFIG must be as {"cluster": {"worker": ["host:port", …]}, '
            '"task": {"type": "worker", "index": 0}}, each address once. '
            f"Received: {text}"
        )
    return addresses, index


def make_strategy(addresses, index):
    """One process's GPUs, or all workers'.

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
        return tf.distribute.MultiWorkerMirroredStrategy()
    if len(tf.config.list_physical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def check_same(strategy, step):
    """Refuse workers that would go on from different steps.

    Raises:
        RunError: If they read different checkpoints, or some of them none.
    """
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return
    numbers = tf.constant([1, step, step**2], "float64")
    number, total, squares = strategy.reduce("SUM", numbers, axis=None).numpy()
    if number * squares != total**2:
        raise RunError(
            f"This worker goes on from step {step}, others from another. Is "
            "the run folder the same for all of them?"
        )


def reason(error):
    """The line of TensorFlow's long message that tells what happened."""
    lines = error.message.strip().splitlines() or [type(error).__name__]
    return next((line for line in lines[1:] if "aborted" in line), lines[0])
