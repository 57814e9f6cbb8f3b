#!/usr/bin/python3
"""Small caches under ordinary random writes never hang, and whatever becomes of them they open.

A writer that knows for every block which writes were answered loads a volume much larger than what
the cache may hold dirty, on a file of its own and, for root, on the file system of a loop device,
which is slower than memory. The server is killed in the middle, round after round. Then no server
is there: `stat` and `flush` open the cache as it was left, and every write that was answered must
be on the backing. At the end fio writes as its users do, in every mode.
"""

import json
import os
import random
import subprocess
import time

import nbd

from support import (BLOCK, MIB, MODES, Bench, Ledger, Service, Tally, check, connect, parser, run,
                     table)

BLOCKS = 50 * MIB // BLOCK
IN_FLIGHT = 16
# Longer than a device of a busy machine takes for what one write may wait for.
HANG_SECONDS = 45
SIZES = [64, 96, 128, 192, 256]
MEDIA = ["file", "loop"]
# Blocks of a write: 64 KiB mostly, as file systems write.
LENGTHS = [16, 16, 16, 16, 1, 4, 32]


class Load:
    """Random writes over one connection, each of whole blocks, no two at a time of one block."""

    def __init__(self, uri, ledger, source):
        self.handle = connect(uri)
        self.ledger = ledger
        self.source = source
        self.busy = set()
        self.flights = 0
        self.answered = 0
        self.last = time.monotonic()

    def run_until_killed(self, service, wanted):
        """Keeps writes in flight; kills the server once so many bytes were answered."""
        try:
            while self.answered < wanted:
                while self.flights < IN_FLIGHT and self.begin():
                    pass
                self.handle.poll(1000)
                silent = time.monotonic() - self.last
                check(silent < HANG_SECONDS,
                      f"no write was answered for {silent:.0f} s, {self.answered >> 20} MiB were")
        finally:
            service.kill()

    def begin(self):
        length = self.source.choice(LENGTHS)
        first = self.source.randrange(BLOCKS - length + 1)
        blocks = range(first, first + length)
        if not self.busy.isdisjoint(blocks):
            return False
        self.busy.update(blocks)
        self.flights += 1
        parts = [self.ledger.next_write(block) for block in blocks]
        buffer = nbd.Buffer.from_bytearray(bytearray(b"".join(data for data, _ in parts)))
        numbers = [sequence for _, sequence in parts]
        done = lambda error: self.written(error, blocks, numbers)
        self.handle.aio_pwrite(buffer, first * BLOCK, completion=done)
        return True

    def written(self, error, blocks, numbers):
        self.flights -= 1
        self.busy.difference_update(blocks)
        self.last = time.monotonic()
        if error.value == 0:
            self.answered += len(blocks) * BLOCK
            # A kill takes nothing that was answered.
            for block, sequence in zip(blocks, numbers):
                self.ledger.promise(block, sequence)
        return 1


class Place:
    """A directory on a medium."""

    def __init__(self, bench, medium):
        self.path = bench.path
        if medium == "loop":
            image = bench.file("loop.fs", 1 << 30)
            subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
            self.path = bench.path / "mounted"
            self.path.mkdir()
            subprocess.run(["mount", "-o", "loop", str(image), str(self.path)], check=True)
            bench.mounts.append(str(self.path))

    def file(self, name, size=None):
        path = self.path / name
        if size is not None:
            with open(path, "wb") as file:
                file.truncate(size)
        return path


def make(bench, medium, mode, mib):
    """A volume of 50 MiB on a cache of `mib`, both on the medium."""
    place = Place(bench, medium)
    backing = place.file("backing", BLOCKS * BLOCK)
    more = ("--capacity", f"{mib}MiB")
    return Service(bench, backing, mode=mode, cache=place.file("cache"), more=more), backing


def compare(ledger, backing, where):
    """Every block of the backing is what may be there."""
    tally = Tally()
    raw = backing.read_bytes()
    for block in range(BLOCKS):
        data = raw[block * BLOCK:(block + 1) * BLOCK]
        verdict = ledger.judge(block, data)
        tally.add(verdict)
        if verdict == "sound":
            ledger.settle(block, data)
    check(tally.wrong == 0, f"{where}: on the backing are {tally.counts}")


def life(arguments, medium, mode, mib):
    """Kills under load; returns a row of the table."""
    source = random.Random(f"{arguments.seed} {medium} {mode} {mib}")
    ledger = Ledger(arguments.seed)
    answered, longest = 0, 0.0
    with Bench(arguments) as bench:
        service, backing = make(bench, medium, mode, mib)
        for number in range(arguments.rounds):
            where = f"{medium}, mode {mode}, {mib} MiB, round {number}"
            service.start()
            load = Load(service.uri, ledger, source)
            load.run_until_killed(service, source.randrange(1, 2 * arguments.mib) * MIB)
            answered += load.answered
            begun = time.monotonic()
            text, _ = service.volume("stat", "--json", "--cache", service.cache)
            absent = json.loads(text[text.index("{"):text.rindex("}") + 1])["absent"]
            check(not absent, f"{where}: {absent}")
            service.volume("flush", service.name, "--cache", service.cache)
            longest = max(longest, time.monotonic() - begun)
            compare(ledger, backing, where)
        service.volume("check", "--cache", service.cache)
    return [medium, mode, mib, arguments.rounds, answered >> 20, f"{longest:.1f}"]


def by_fio(arguments, medium, mode):
    """600 MB of random writes of 64 KiB to 50 MB, as a user writes them; returns a row."""
    with Bench(arguments) as bench:
        service, _ = make(bench, medium, mode, 64)
        service.start()
        job = ["fio", "--name=x", "--ioengine=nbd", f"--uri={service.uri}", "--rw=randwrite",
               "--bs=64k", "--iodepth=16", "--size=50m", f"--io_size={arguments.fio_mib}m",
               f"--randseed={arguments.seed}"]
        begun = time.monotonic()
        limit = HANG_SECONDS + arguments.fio_mib
        try:
            ended = subprocess.run(job, capture_output=True, text=True, cwd=bench.path,
                                   timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            check(False, f"{medium}, mode {mode}: fio does not end within {limit} s")
        check(ended.returncode == 0, f"{medium}, mode {mode}: fio:\n{ended.stdout}{ended.stderr}")
        seconds = time.monotonic() - begun
        service.stop()
    return [medium, mode, f"{seconds:.0f}"]


def main(arguments):
    media = arguments.media
    if "loop" in media and os.geteuid() != 0:
        print("loop devices are left out: they need root")
        media = [medium for medium in media if medium != "loop"]
    places = [(medium, mode) for medium in media for mode in arguments.modes]
    rows = [life(arguments, *place, mib) for place in places for mib in arguments.sizes]
    table("killed under load, opened without a server, written back and compared",
          ["medium", "mode", "MiB", "kills", "MiB answered", "longest rescue s"], rows)
    rows = [by_fio(arguments, *place) for place in places] if arguments.fio_mib else []
    table("fio on a cache of 64 MiB", ["medium", "mode", "seconds"], rows)


def words(of):
    """An argument that is a list with commas."""
    return lambda text: [of(word) for word in text.split(",")]


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=2, help="kills of each cache")
    options.add_argument("--mib", type=int, default=24, help="mean MiB written before a kill")
    options.add_argument("--fio-mib", type=int, default=600, help="0: without fio")
    options.add_argument("--sizes", type=words(int), default=SIZES, help="of caches, MiB")
    options.add_argument("--modes", type=words(str), default=MODES)
    options.add_argument("--media", type=words(str), default=MEDIA)
    run(main, options.parse_args())
