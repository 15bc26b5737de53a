"""Several workers on this machine, each a process of its own."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import tensorflow as tf

GRACE = 20  # seconds for the others to end by themselves
LOST_PEERS = 3  # exit status of a worker whose others are gone


def free_ports(number):
    """Ports that nobody listens on now."""
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def check_port(address):
    """Refuse an address on which somebody listens already.

    Raises:
        OSError: If it cannot be taken.
    """
    host, port = address.rsplit(":", 1)
    with socket.socket() as one:
        if os.name != "nt":  # a port of a run that just ended is free
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        local = host in ("127.0.0.1", "localhost")
        one.bind((host if local else "", int(port)))


def run_workers(number, arguments):
    """Start `number` workers with the same arguments; wait for all.

    When one fails, the others get some seconds to notice and are stopped.

    Returns:
        0, or the exit status of the one that failed.
    """
    addresses = [f"127.0.0.1:{port}" for port in free_ports(number)]
    threads = max((os.cpu_count() or 1) // number, 1)
    command = [sys.executable, "-m", "d2l_attention.train", *arguments]
    workers = []
    try:
        for index in range(number):
            task = {"type": "worker", "index": index}
            cluster = {"cluster": {"worker": addresses}, "task": task}
            environment = {
                "TF_CPP_MIN_LOG_LEVEL": "2",  # many lines from each
                **os.environ,
                "TF_CONFIG": json.dumps(cluster),
                "D2L_ATTENTION_THREADS": str(threads),
                "CUDA_VISIBLE_DEVICES": _gpu_of(index, number),
            }
            worker = subprocess.Popen(
                [*command, "--workers=1"],
                env=environment,
                stdin=subprocess.PIPE,  # see `end_with_launcher`
            )
            workers.append(worker)
        return _wait(workers)
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()


def end_with_launcher():
    """End this worker when the process that started it is gone.

    Then its standard input ends, on every system and however it was killed.
    """

    def watch():
        os.read(0, 1)
        os._exit(LOST_PEERS)

    threading.Thread(target=watch, daemon=True).start()


def _gpu_of(index, number):
    """A GPU of its own for each worker, or none for all."""
    if len(tf.config.list_physical_devices("GPU")) < number:
        return ""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",")[index] if visible else str(index)


def _wait(workers):
    while True:
        codes = [worker.poll() for worker in workers]
        failed = [i for i, code in enumerate(codes) if code not in (None, 0)]
        if failed:
            # One that only lost the others may end in the same moment.
            first = min(failed, key=lambda i: codes[i] == LOST_PEERS)
            print(
                f"Worker {first} ended with status {codes[first]}; the others "
                "are being stopped. The same command goes on from the last "
                "checkpoint.",
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
