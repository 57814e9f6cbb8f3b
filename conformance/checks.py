"""What scripts of all directories share: what does not hold, and waiting for what is to come."""

import socket
import time


class Failed(Exception):
    """Something did not hold."""


def check(truth, sentence):
    """Fails the script with `sentence` unless `truth` holds."""
    if not truth:
        raise Failed(sentence)


def until(what, condition, seconds=60):
    """Waits until `condition` gives something true, which it returns."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise Failed(f"expected within {seconds} s: {what}")


def free_port():
    """A port of the loopback interface on which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
