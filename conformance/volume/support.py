"""What the scripts of this directory share: servers that are started and killed, backings with
faults, tables, and the ledger that says which contents of a block a reader may find.

Everything listens on Unix sockets in a temporary directory. Only processes that a script started
are ended, by their number.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import nbd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from checks import Failed, check  # noqa: E402

BLOCK = 4096
MIB = 1 << 20
MODES = ["wt", "wb", "wa", "wo", "pt"]
PATIENCE = 60.0


class Process:
    """A program in the background, with its output in a file."""

    def __init__(self, words, log, **more):
        self.words = [str(word) for word in words]
        self.log = log
        with open(log, "ab") as output:
            self.popen = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **more)

    @property
    def pid(self):
        return self.popen.pid

    def runs(self):
        return self.popen.poll() is None

    def wait_for_socket(self, path, patience=PATIENCE):
        """Waits until something listens at `path`."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if not self.runs():
                raise Failed(f"{self} ended with {self.popen.returncode}:\n{self.output()}")
            with socket.socket(socket.AF_UNIX) as client:
                try:
                    client.connect(str(path))
                    return
                except OSError:
                    time.sleep(0.02)
        raise Failed(f"{self} does not listen at {path} after {patience} s:\n{self.output()}")

    def kill(self):
        self._end(signal.SIGKILL)

    def stop(self):
        """Asks it to end and returns its exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, number):
        if self.runs():
            self.popen.send_signal(number)
        try:
            return self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise Failed(f"{self} did not end within {PATIENCE} s:\n{self.output()}")

    def output(self, lines=15):
        text = pathlib.Path(self.log).read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def __str__(self):
        return " ".join(self.words[:3])


class Bench:
    """A temporary directory with all that runs in it."""

    def __init__(self, arguments):
        self.arguments = arguments
        parent = arguments.directory
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="volume-", dir=parent))
        self.processes = []
        self.mounts = []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for process in reversed(self.processes):
            if process.runs():
                process.kill()
        for mount in self.mounts:
            subprocess.run(["umount", "-l", mount], check=False)
        if kind is None or not self.arguments.keep:
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            print(f"kept: {self.path}", file=sys.stderr)

    def file(self, name, size=None):
        """The path of a file; of `size` bytes, all zero, if that is given."""
        path = self.path / name
        if size is not None:
            with open(path, "wb") as file:
                file.truncate(size)
        return path

    def start(self, name, words, listens_at=None, **more):
        process = Process(words, self.file(f"{name}.log"), **more)
        self.processes.append(process)
        if listens_at is not None:
            process.wait_for_socket(listens_at)
        return process

    def nbdkit(self, name, words, filters=()):
        """An nbdkit in the foreground; returns it with its socket."""
        path = self.file(f"{name}.sock")
        path.unlink(missing_ok=True)
        filters = [f"--filter={one}" for one in filters]
        command = ["nbdkit", "-f", "--exit-with-parent", "-U", path, *filters, *words]
        return self.start(name, command, listens_at=path), path

    def remains(self, name):
        """What a program wrote so far."""
        return self.file(f"{name}.log").read_text(errors="replace")


class Service:
    """The server under test: a volume `disk` of one backing in one mode, on a Unix socket.

    With `--stand-in qemu-nbd`, a server without a cache takes its place, to show that a script asks
    for nothing that a right server does not do; with `--stand-in forgetful`, one that loses
    acknowledged writes when it is killed, to show that the script notices.
    """

    def __init__(self, bench, backing, cache_bytes=64 * MIB, mode="wt", name="disk",
                 cache=None, more=()):
        self.bench = bench
        self.arguments = bench.arguments
        self.backing = str(backing)
        self.mode = mode
        self.name = name
        self.socket = bench.file(f"{name}.sock")
        self.cache = cache or bench.file(f"{name}.cache", cache_bytes)
        self.process = None
        if not self.arguments.stand_in:
            self.volume("create", name, "--cache", self.cache, "--backing", backing,
                        "--mode", mode, *more)

    @property
    def uri(self):
        return f"nbd+unix:///{self.name}?socket={self.socket}"

    @property
    def pid(self):
        return self.process.pid

    def volume(self, *words, ok=True):
        """Calls `entresol volume`; returns what it printed and its status."""
        command = [self.arguments.entresol, "volume", *map(str, words)]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE * 5, check=False)
        text = ended.stdout + ended.stderr
        check(not ok or ended.returncode == 0, f"{' '.join(command)}: {ended.returncode}\n{text}")
        return text, ended.returncode

    def command(self):
        stand_in = self.arguments.stand_in
        if stand_in == "qemu-nbd":
            return ["qemu-nbd", "-t", "-f", "raw", "--shared=0", "-x", self.name,
                    "--discard=unmap", "-k", self.socket, self.backing]
        if stand_in == "forgetful":
            return ["nbdkit", "-f", "-U", self.socket, "--filter=cache", "file", self.backing,
                    "cache=unsafe"]
        control = ["--control", self.control]
        return [self.arguments.entresol, "volume", "serve", "--cache", self.cache,
                "--unix", self.socket, *control]

    @property
    def control(self):
        return self.bench.file(f"{self.name}.control")

    def start(self):
        self.socket.unlink(missing_ok=True)
        self.process = self.bench.start(self.name, self.command(), listens_at=self.socket)
        return self

    def kill(self):
        self.process.kill()

    def stop(self):
        status = self.process.stop()
        right = status == 0 or self.arguments.stand_in
        check(right, f"the server ended with {status}:\n{self.process.output()}")

    def restart_killed(self):
        self.kill()
        return self.start()

    def ask(self, **question):
        """One question over the socket for administrators."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE * 5)
            client.connect(str(self.control))
            client.sendall(json.dumps(question).encode() + b"\n")
            line = b""
            while not line.endswith(b"\n"):
                more = client.recv(1 << 16)
                check(more, f"no answer to {question}")
                line += more
        answer = json.loads(line)
        check(answer["ok"], f"{question}: {answer}")
        return answer

    def write_back(self):
        """Everything dirty goes to the backing."""
        if not self.arguments.stand_in:
            self.ask(command="flush", volume=self.name)

    def figures(self):
        """What the volume counted."""
        if self.arguments.stand_in:
            return {}
        return self.ask(command="stat")["volumes"]


def connect(uri):
    """A connection of libnbd that lets requests through as they are."""
    handle = nbd.NBD()
    handle.connect_uri(uri)
    return handle


def demand_connection(handle, error):
    """A request may fail; the connection must not."""
    alive = not (handle.aio_is_dead() or handle.aio_is_closed())
    check(alive, f"the server broke the connection off: {error}")


class Ledger:
    """Which writes of each block a reader may find.

    A written block says which block it is and which write; its other bytes follow from that. What
    is *owed* is the last write that was acknowledged with a promise; newer ones may be there, older
    ones may not.
    """

    HEAD = 20

    def __init__(self, seed):
        self.seed = seed
        self.sequence = 0
        self.owed = {}
        self.pending = {}
        self.issued = {}
        self.filler = random.Random(seed).randbytes(2 * BLOCK)

    def next_write(self, block):
        """The bytes of a new write of `block`, and its number."""
        self.sequence += 1
        self.issued[block] = self.sequence
        return self.contents(block, self.sequence), self.sequence

    def contents(self, block, sequence):
        start = (block * 31 + sequence * 17) % BLOCK
        body = self.filler[start:start + BLOCK - self.HEAD]
        head = (self.seed & 0xFFFFFFFF).to_bytes(4, "big") + block.to_bytes(8, "big")
        head += sequence.to_bytes(4, "big")
        return head + zlib.crc32(head + body).to_bytes(4, "big") + body

    def acknowledge(self, block, sequence):
        """The write was answered; it is owed after a later flush."""
        self.pending[block] = max(sequence, self.pending.get(block, 0))

    def promise(self, block, sequence):
        """The write was answered with a promise of its own (FUA)."""
        self.owed[block] = max(sequence, self.owed.get(block, 0))

    def flushed(self, pending):
        """A flush was answered; `pending` is what had been acknowledged as it was begun."""
        for block, sequence in pending.items():
            self.promise(block, sequence)

    def judge(self, block, data):
        """`sound`, or what is wrong with a block: `stale`, `foreign`, `damaged` or `future`."""
        owed = self.owed.get(block, 0)
        if data == bytes(BLOCK):
            return "sound" if owed == 0 else "stale"
        head, found = data[:16], data[16:20]
        if zlib.crc32(head + data[20:]).to_bytes(4, "big") != found:
            return "damaged"
        where, sequence = int.from_bytes(head[4:12], "big"), int.from_bytes(head[12:16], "big")
        if where != block or int.from_bytes(head[:4], "big") != self.seed & 0xFFFFFFFF:
            return "foreign"
        if sequence < owed:
            return "stale"
        return "sound" if sequence <= self.issued.get(block, 0) else "future"

    def settle(self, block, data):
        """After a crash: what was found is what there is from now on."""
        sequence = 0 if data == bytes(BLOCK) else int.from_bytes(data[12:16], "big")
        self.pending.pop(block, None)
        if sequence:
            self.owed[block] = sequence
        self.issued[block] = max(sequence, self.owed.get(block, 0))


class Tally:
    """How many blocks were judged what."""

    NAMES = ["sound", "stale", "foreign", "damaged", "future", "refused"]

    def __init__(self):
        self.counts = dict.fromkeys(self.NAMES, 0)

    def add(self, verdict):
        self.counts[verdict] += 1

    @property
    def wrong(self):
        return sum(self.counts[name] for name in ["stale", "foreign", "damaged", "future"])

    def cells(self):
        return [self.counts[name] for name in self.NAMES]


def read_all(handle, ledger, blocks, tally, settle=True):
    """Reads every block of `blocks` and judges it; an error of the server counts as `refused`."""
    for block in blocks:
        try:
            data = bytes(handle.pread(BLOCK, block * BLOCK))
        except nbd.Error as error:
            demand_connection(handle, error)
            tally.add("refused")
            continue
        verdict = ledger.judge(block, data)
        tally.add(verdict)
        if settle and verdict == "sound":
            ledger.settle(block, data)


class Lateness:
    """How late the machine itself is: within `with`, a thread sleeps 2 ms again and again.

    Where processors are shared with strangers, they are gone for whole seconds now and then, and
    the mean latency of an open load tells of nothing else. A turn that saw this is `disturbed`:
    one sleep in a hundred took more than twice its time.
    """

    SLEEP = 0.002

    def __init__(self):
        self.over = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def _watch(self):
        while not self.ended.is_set():
            begun = time.perf_counter()
            time.sleep(self.SLEEP)
            self.over.append(time.perf_counter() - begun - self.SLEEP)

    @property
    def milliseconds(self):
        """What the latest sleep in a hundred took too long."""
        return sorted(self.over)[len(self.over) * 99 // 100] * 1000

    @property
    def disturbed(self):
        return self.milliseconds > self.SLEEP * 1000


def table(title, head, rows):
    """Prints rows under a head."""
    cells = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    print(f"\n{title}")
    for number, row in enumerate(cells):
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)))
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))
    sys.stdout.flush()


def parser(description):
    """The arguments that all scripts take."""
    made = argparse.ArgumentParser(description=description)
    root = pathlib.Path(__file__).resolve().parents[2]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    made.add_argument("--entresol", default=str(target / "checked" / "entresol"),
                      help="the program under test")
    made.add_argument("--stand-in", choices=["qemu-nbd", "forgetful"],
                      help="run against another server, to judge the script")
    made.add_argument("--directory", help="where temporary directories are made")
    made.add_argument("--keep", action="store_true", help="leave the directory of a failure")
    made.add_argument("--seed", type=int, default=None)
    return made


def run(main, arguments):
    """Runs `main(arguments)`; prints what failed and exits with 1."""
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1 << 31)
    print(f"seed {arguments.seed}", flush=True)
    try:
        main(arguments)
    except (Failed, nbd.Error) as failure:
        print(f"\nFAILED: {failure}\nagain: {sys.argv[0]} --seed {arguments.seed}",
              file=sys.stderr)
        sys.exit(1)
    print("\npassed")
