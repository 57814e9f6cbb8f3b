#!/usr/bin/python3
"""Faults behind the cache and in it: never wrong data, and I/O goes on or fails with an error.

The backing fails, stops, or dies; bits of the cache flip, its file is cut, its device fails, it is
full; the backing is exchanged or changed behind the cache's back. Each scenario ends with every
block read and judged.
"""

import os
import random
import shutil
import socket
import subprocess
import time

import nbd

from support import (BLOCK, MIB, PATIENCE, Bench, Failed, Ledger, Service, Tally, check, connect,
                     demand_connection, parser, read_all, run, table)

BLOCKS = 4096
LAZY = ["wb", "wo"]


class Traffic:
    """One request after another, half of them writes, all judged. Nothing crashes here, so that
    what was answered is owed at once."""

    def __init__(self, uri, seed, blocks=BLOCKS):
        self.uri = uri
        self.blocks = blocks
        self.source = random.Random(seed)
        self.ledger = Ledger(seed)
        self.tally = Tally()
        self.refused_writes = 0
        self.handle = connect(uri)

    def fill(self):
        for block in range(self.blocks):
            self.write(block)
        self.handle.flush()
        check(self.refused_writes == 0, "writes were refused before anything had failed")

    def requests(self, count, meanwhile=None):
        for number in range(count):
            if meanwhile and number == count // 3:
                meanwhile()
            block = self.source.randrange(self.blocks)
            if self.source.random() < 0.5:
                self.write(block)
            else:
                read_all(self.handle, self.ledger, [block], self.tally, settle=False)

    def write(self, block):
        data, sequence = self.ledger.next_write(block)
        try:
            self.handle.pwrite(data, block * BLOCK)
            self.ledger.promise(block, sequence)
        except nbd.Error as error:
            demand_connection(self.handle, error)
            self.refused_writes += 1

    def reconnect(self):
        self.handle = connect(self.uri)

    def read_everything(self):
        tally = Tally()
        read_all(self.handle, self.ledger, range(self.blocks), tally, settle=False)
        return tally

    def raw(self, path):
        """Judges the backing itself."""
        tally = Tally()
        with open(path, "rb") as file:
            for block in range(self.blocks):
                tally.add(self.ledger.judge(block, file.read(BLOCK)))
        return tally


def row(name, mode, traffic, last, refusals_allowed):
    """Checks what no scenario may bring about, and makes a row of the table."""
    wrong = traffic.tally.wrong + last.wrong
    check(wrong == 0, f"{name}, {mode}: wrong blocks: {traffic.tally.counts}, {last.counts}")
    refused = last.counts["refused"]
    check(refusals_allowed or refused == 0, f"{name}, {mode}: {refused} reads fail for good")
    meanwhile = traffic.tally.counts["refused"] + traffic.refused_writes
    return [name, mode, traffic.tally.counts["sound"], meanwhile, last.counts["sound"], refused, 0]


def backing_fails(arguments, mode):
    """One in ten requests to the backing fails for a while."""
    with Bench(arguments) as bench:
        file, trigger = bench.file("backing", BLOCKS * BLOCK), bench.file("trigger")
        _, path = bench.nbdkit("behind", [
            "file", file, "error=EIO", "error-pread-rate=10%", "error-pwrite-rate=10%",
            f"error-file={trigger}"], filters=["error"])
        service = Service(bench, f"nbd+unix:///?socket={path}", mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed)
        traffic.fill()
        trigger.touch()
        traffic.requests(6000)
        trigger.unlink()
        traffic.requests(1000)
        last = traffic.read_everything()
        finish(service, traffic)
        check(traffic.raw(file).wrong == 0, f"{mode}: the backing is wrong at the end")
    return row("backing fails 1 in 10", mode, traffic, last, refusals_allowed=False)


def backing_is_slow(arguments, mode):
    """Every request to the backing takes 20 ms."""
    with Bench(arguments) as bench:
        file = bench.file("backing", BLOCKS * BLOCK)
        _, path = bench.nbdkit("behind", ["file", file, "rdelay=20ms", "wdelay=20ms"],
                               filters=["delay"])
        service = Service(bench, f"nbd+unix:///?socket={path}", mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed, blocks=64)
        traffic.fill()
        traffic.requests(200)
        last = traffic.read_everything()
        finish(service, traffic)
        check(traffic.raw(file).wrong == 0, f"{mode}: the backing is wrong at the end")
    return row("backing slow", mode, traffic, last, refusals_allowed=False)


def backing_pauses(arguments, mode):
    """The backing answers nothing for two seconds; what is cached is answered meanwhile."""
    with Bench(arguments) as bench:
        file, control = bench.file("backing", BLOCKS * BLOCK), bench.file("control")
        _, path = bench.nbdkit("behind", ["file", file, f"pause-control={control}"],
                               filters=["pause"])
        service = Service(bench, f"nbd+unix:///?socket={path}", mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed, blocks=512)
        traffic.fill()
        traffic.read_everything()
        tell(control, b"p")
        begun = time.monotonic()
        if mode != "pt" and not arguments.stand_in:
            # Blocks just read are cached; none of these reads may need the backing.
            for block in range(0, 512, 8):
                read_all(traffic.handle, traffic.ledger, [block], traffic.tally, settle=False)
            check(time.monotonic() - begun < 2, f"{mode}: cached reads waited for the backing")
        # Without a thread: the request is under way while the backing goes on again.
        buffer = nbd.Buffer(BLOCK)
        other = connect(service.uri) if mode in LAZY else traffic.handle
        cookie = other.aio_pread(buffer, 511 * BLOCK)
        time.sleep(max(0, 2 - (time.monotonic() - begun)))
        tell(control, b"r")
        while not other.aio_command_completed(cookie):
            other.poll(-1)
        verdict = traffic.ledger.judge(511, bytes(buffer.to_bytearray()))
        check(verdict == "sound", f"{mode}: the read that waited found a {verdict} block")
        traffic.requests(500)
        last = traffic.read_everything()
        finish(service, traffic)
        check(traffic.raw(file).wrong == 0, f"{mode}: the backing is wrong at the end")
    return row("backing pauses 2 s", mode, traffic, last, refusals_allowed=False)


def backing_restarts(arguments, mode):
    """The server of the backing is killed under load and comes back."""
    with Bench(arguments) as bench:
        file = bench.file("backing", BLOCKS * BLOCK)
        behind, path = bench.nbdkit("behind", ["file", file])
        service = Service(bench, f"nbd+unix:///?socket={path}", mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed)
        traffic.fill()

        def restart():
            behind.kill()
            bench.nbdkit("behind", ["file", file])

        traffic.requests(6000, meanwhile=restart)
        last = traffic.read_everything()
        finish(service, traffic)
        check(traffic.raw(file).wrong == 0, f"{mode}: the backing is wrong at the end")
    return row("backing killed, restarted", mode, traffic, last, refusals_allowed=False)


def bits_flip(arguments, mode):
    """Bits of the cache flip while it runs, while it is stopped and after a kill."""
    with Bench(arguments) as bench:
        file = bench.file("backing", BLOCKS * BLOCK)
        service = Service(bench, file, mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed)
        traffic.fill()
        if mode in LAZY:
            # What is dirty has no other copy: here only clean blocks are spoilt.
            service.write_back()
        traffic.read_everything()
        flip(service.cache, 400, traffic.source)
        traffic.read_everything()
        traffic.requests(500)
        traffic.handle.flush()
        service.write_back()
        for end in [service.stop, service.kill]:
            end()
            flip(service.cache, 400, traffic.source)
            service.start()
            traffic.reconnect()
            last = traffic.read_everything()
            check(last.wrong == 0, f"bits flip, {mode}: {last.counts}")
        finish(service, traffic)
    return row("bits of the cache flip", mode, traffic, last, refusals_allowed=mode in LAZY)


def dirty_bits_flip(arguments, mode):
    """Bits of dirty blocks flip: they have no other copy and are refused, or the start is."""
    with Bench(arguments) as bench:
        file = bench.file("backing", BLOCKS * BLOCK)
        service = Service(bench, file, mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed)
        traffic.fill()
        service.kill()
        flip(service.cache, 200, traffic.source)
        # A start without the volume is a refusal too.
        last = read_or_refuse(service, traffic) or Tally()
    return row("dirty bits flip", mode, traffic, last, refusals_allowed=True)


def cache_is_cut(arguments, mode):
    """The file of the cache is cut short while it runs, and again while it is stopped."""
    with Bench(arguments) as bench:
        file = bench.file("backing", BLOCKS * BLOCK)
        service = Service(bench, file, mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed)
        traffic.fill()
        traffic.handle.flush()
        service.write_back()
        traffic.read_everything()
        cut(service)
        traffic.requests(1000)
        last = traffic.read_everything()
        check(service.process.runs(), f"{mode}: the server ended:\n{service.process.output()}")
        service.kill()
        cut(service)
        try:
            service.start()
            traffic.reconnect()
            again = traffic.read_everything()
            check(again.wrong == 0, f"cache cut, {mode}: {again.counts}")
            service.kill()
        except nbd.Error as failure:
            # It listens before it opens its cache.
            service.process.popen.wait(PATIENCE)
            said = service.process.output()
            check("was made for" in said, f"{failure}; the server ended:\n{said}")
        except Failed as failure:
            check("does not listen" not in str(failure), f"the server hung: {failure}")
            check("Failed" not in str(failure) or mode in LAZY, str(failure))
    return row("cache cut short", mode, traffic, last, refusals_allowed=mode in LAZY)


def cut(service):
    if not service.arguments.stand_in:
        os.truncate(service.cache, 1 * MIB)


def cache_device_fails(arguments, mode):
    """The device of the cache fails every request from some moment on."""
    with Bench(arguments) as bench:
        file, trigger = bench.file("backing", BLOCKS * BLOCK), bench.file("trigger")
        store, mount = bench.file("store", 64 * MIB), bench.file("cache-device", 0)
        _, path = bench.nbdkit("cache-server", ["file", store, "error=EIO", "error-rate=100%",
                                                f"error-file={trigger}"], filters=["error"])
        fuse = bench.start("fuse", ["nbdfuse", mount, f"nbd+unix:///?socket={path}"])
        bench.mounts.append(mount)
        end = time.monotonic() + 20
        while os.path.getsize(mount) == 0:
            check(fuse.runs() and time.monotonic() < end, f"nbdfuse: {fuse.output()}")
            time.sleep(0.05)
        service = Service(bench, file, mode=mode, cache=mount).start()
        traffic = Traffic(service.uri, arguments.seed)
        traffic.fill()
        traffic.handle.flush()
        service.write_back()
        traffic.read_everything()
        trigger.touch()
        traffic.requests(3000)
        last = traffic.read_everything()
        check(service.process.runs(), f"{mode}: the server ended:\n{service.process.output()}")
        service.kill()
        trigger.unlink()
        if mode not in LAZY:
            # It comes back with what it held before it failed: none of that may be believed.
            service.start()
            traffic.reconnect()
            again = traffic.read_everything()
            check(again.wrong == 0, f"cache device back, {mode}: {again.counts}")
            service.kill()
    return row("cache device fails", mode, traffic, last, refusals_allowed=mode in LAZY)


def cache_is_full(arguments, mode):
    """Four times more is written than the cache holds, faster than the backing takes it."""
    with Bench(arguments) as bench:
        blocks = 4 * arguments.small_cache_mib * MIB // BLOCK
        file = bench.file("backing", blocks * BLOCK)
        _, path = bench.nbdkit("behind", ["file", file, "wdelay=1ms"], filters=["delay"])
        uri = f"nbd+unix:///?socket={path}"
        service = Service(bench, uri, cache_bytes=arguments.small_cache_mib * MIB,
                          mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed, blocks=blocks)
        traffic.fill()
        traffic.requests(2000)
        last = traffic.read_everything()
        check(traffic.refused_writes == 0, f"{mode}: a full cache refused writes")
        finish(service, traffic)
        check(traffic.raw(file).wrong == 0, f"{mode}: the backing is wrong at the end")
    return row("cache full", mode, traffic, last, refusals_allowed=False)


def backing_is_exchanged(arguments, mode):
    """The backing is another file of the same name and size, then is changed in place."""
    with Bench(arguments) as bench:
        file = bench.file("backing", BLOCKS * BLOCK)
        service = Service(bench, file, mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed)
        traffic.fill()
        traffic.read_everything()
        service.write_back()
        service.stop()
        # Every block as a later write would have left it.
        changed = bench.file("changed", BLOCKS * BLOCK)
        rewrite_behind(changed, traffic)
        os.replace(changed, file)
        last = read_or_refuse(service, traffic)
        rewrite_behind(file, traffic)
        last = read_or_refuse(service, traffic) or last or Tally()
    return row("backing exchanged, changed", mode, traffic, last, refusals_allowed=True)


def rewrite_behind(path, traffic):
    with open(path, "r+b") as file:
        for block in range(traffic.blocks):
            data, sequence = traffic.ledger.next_write(block)
            file.write(data)
            traffic.ledger.promise(block, sequence)


def read_or_refuse(service, traffic):
    """What a start now finds; None if it is refused, or the volume is not exported."""
    try:
        service.start()
    except Failed:
        return None
    try:
        traffic.reconnect()
        found = traffic.read_everything()
    except nbd.Error:
        found = None
    service.kill()
    return found


def cache_is_lost(arguments, mode):
    """The cache is gone at a start; a new one is made."""
    with Bench(arguments) as bench:
        file = bench.file("backing", BLOCKS * BLOCK)
        service = Service(bench, file, mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed)
        traffic.fill()
        service.write_back()
        service.stop()
        shutil.move(service.cache, bench.file("lost"))
        service = Service(bench, file, mode=mode).start()
        traffic.reconnect()
        traffic.requests(500)
        last = traffic.read_everything()
        finish(service, traffic)
    return row("cache lost", mode, traffic, last, refusals_allowed=False)


def used_twice(arguments, mode):
    """A second server on the same cache is refused, and does no harm."""
    with Bench(arguments) as bench:
        file = bench.file("backing", BLOCKS * BLOCK)
        service = Service(bench, file, mode=mode).start()
        traffic = Traffic(service.uri, arguments.seed)
        traffic.fill()
        if not arguments.stand_in:
            words = [arguments.entresol, "volume", "serve", "--cache", service.cache,
                     "--unix", bench.file("second.sock")]
            second = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                                    timeout=30, check=False)
            check(second.returncode != 0, "two servers run on one cache")
        traffic.requests(500)
        last = traffic.read_everything()
        finish(service, traffic)
    return row("cache used twice", mode, traffic, last, refusals_allowed=False)


def finish(service, traffic):
    """A clean end: all written back, nothing left behind."""
    traffic.handle.shutdown()
    service.write_back()
    service.stop()


def flip(path, count, source):
    """Flips single bits at random places of a file."""
    size = os.path.getsize(path)
    with open(path, "r+b", buffering=0) as file:
        for _ in range(count):
            offset = source.randrange(size)
            byte = os.pread(file.fileno(), 1, offset)
            os.pwrite(file.fileno(), bytes([byte[0] ^ 1 << source.randrange(8)]), offset)


def tell(control, letter):
    """Tells nbdkit's pause filter to pause or to go on."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(control))
        client.sendall(letter)
        check(client.recv(1) == letter.upper(), "nbdkit's pause filter did not answer")


SCENARIOS = [
    (backing_fails, ["wt", "wb", "wa", "wo", "pt"]),
    (backing_is_slow, ["wt", "wb", "pt"]),
    (backing_pauses, ["wt", "wb", "pt"]),
    (backing_restarts, ["wt", "wb", "wa", "wo", "pt"]),
    (bits_flip, ["wt", "wb", "wa"]),
    (dirty_bits_flip, LAZY),
    (cache_is_cut, ["wt", "wb", "wa"]),
    (cache_device_fails, ["wt", "wb", "wa"]),
    (cache_is_full, ["wt", "wb", "wo"]),
    (backing_is_exchanged, ["wt", "wb"]),
    (cache_is_lost, ["wt", "wb"]),
    (used_twice, ["wt"]),
]


def main(arguments):
    rows, failures = [], []
    for scenario, modes in SCENARIOS:
        if arguments.only and scenario.__name__ not in arguments.only.split(","):
            continue
        for mode in modes:
            try:
                rows.append(scenario(arguments, mode))
            except (Failed, nbd.Error) as failure:
                failures.append(f"{scenario.__name__}, {mode}: {failure}")
                rows.append([scenario.__name__, mode, "FAILED", "", "", "", ""])
            print(".", end="", flush=True)
    table("faults: blocks read under them, requests refused, blocks read at the end",
          ["fault", "mode", "sound", "refused", "sound at end", "refused at end", "wrong"], rows)
    check(not failures, "\n\n".join(failures))


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--only", help="names of scenarios, comma between them")
    options.add_argument("--small-cache-mib", type=int, default=32)
    run(main, options.parse_args())
