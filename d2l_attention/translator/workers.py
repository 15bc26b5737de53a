"""The workers of a training: on this machine, or each on one of its own."""

from contextlib import contextmanager
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from d2l_attention._quiet import hold_stderr
from d2l_attention.translator.settings import RunError
import tensorflow as tf

GRACE = 20  # seconds in which the other workers may end by themselves
LOST_PEERS = 3  # exit status of a worker that lost another worker
LEFT = 128 + signal.SIGTERM  # of one that was told to leave, and saved
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
    """The addresses of all workers and the index of this one, by `TF_CONFIG`.

    A process that runs alone gets `([], 0)`. A chief, a parameter server or an
    evaluator is refused.
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
    """The strategy over all workers, or over the GPUs of one process."""
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
    """The number of the first worker, for all; the others give None."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return value
    number = tf.constant(0.0 if value is None else value, "float64")
    return float(strategy.reduce("SUM", number, axis=None))


def reason(error):
    """The line of TensorFlow's long message that says what happened."""
    lines = error.message.strip().splitlines() or [type(error).__name__]
    return next((line for line in lines[1:] if "aborted" in line), lines[0])


def count_gpus():
    with hold_stderr():
        return len(tf.config.list_physical_devices("GPU"))


def free_ports(number):
    """A list of ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def check_port(address):
    """Raise an OSError if this process cannot listen on `"host:port"`."""
    host, port = address.rsplit(":", 1)
    with socket.socket() as one:
        if os.name != "nt":  # reuse the port of a run that just ended
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        local = host in ("127.0.0.1", "localhost")
        one.bind((host if local else "", int(port)))


def run_workers(number, arguments):
    """Start workers with the same arguments of `train`, and wait for all.

    When one worker fails, the others have `GRACE` seconds to notice. Then
    they are stopped. SIGTERM and Ctrl-C are passed on to all of them. What
    comes back is 0, or the exit status of the worker that failed.
    """
    addresses = [f"127.0.0.1:{port}" for port in free_ports(number)]
    threads = max((os.cpu_count() or 1) // number, 1)
    command = [sys.executable, "-m", "d2l_attention", "train", *arguments]
    workers = []
    try:
        for index in range(number):
            task = {"type": "worker", "index": index}
            cluster = {"cluster": {"worker": addresses}, "task": task}
            environment = {
                **os.environ,
                "TF_CONFIG": json.dumps(cluster),
                "D2L_ATTENTION_THREADS": str(threads),
                "CUDA_VISIBLE_DEVICES": _gpu_of(index, number),
            }
            worker = subprocess.Popen(
                [*command, "--workers=1"],
                env=environment,
                stdin=subprocess.PIPE,  # its end tells: `end_with_launcher`
            )
            workers.append(worker)
        with told_to_leave(lambda: _terminate(workers)):
            return _wait(workers)
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()


@contextmanager
def told_to_leave(act):
    """Call a function at SIGTERM or Ctrl-C, in place of what they do.

    A cluster sends SIGTERM to a process before it takes the machine away. The
    second Ctrl-C interrupts as usual. Other threads than the main one get no
    signals; there nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number, _):
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)
        act()

    before = {
        number: signal.signal(number, handle)
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminate(workers):
    for worker in workers:
        worker.terminate()


def end_with_launcher():
    """End this worker when the process that started it is gone.

    The worker's standard input ends at that moment, on every system and
    however the launcher was killed.
    """

    def watch():
        os.read(0, 1)
        os._exit(LOST_PEERS)

    threading.Thread(target=watch, daemon=True).start()


def _gpu_of(index, number):
    """One GPU for each worker. With too few GPUs, no worker has one."""
    if count_gpus() < number:
        return ""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[index] if visible else str(index)


def _wait(workers):
    """Wait for all workers; 0, or the exit status of the one that failed."""
    while True:
        codes = [worker.poll() for worker in workers]
        failed = [i for i, code in enumerate(codes) if code not in (None, 0)]
        if failed:
            # A worker that lost this one may end in the same moment.
            first = min(failed, key=lambda i: codes[i] == LOST_PEERS)
            if codes[first] != LEFT:  # the chief has said it
                print(
                    f"Worker {first} ended with status {codes[first]}; the "
                    "other workers are being stopped. The same command goes "
                    "on from the last checkpoint.",
                    file=sys.stderr,
                )
            deadline = time.monotonic() + GRACE
            while time.monotonic() < deadline and any(
                worker.poll() is None for worker in workers
            ):
                time.sleep(0.2)
            return abs(codes[first])
        if all(code == 0 for code in codes):
            return 0
        time.sleep(0.2)
