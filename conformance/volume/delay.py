#!/usr/bin/python3
"""A backing that takes 2 ms: what our cache costs cold and brings warm, also after a restart.

Compared, in turns within the same minute, with no cache and with the cache filter of nbdkit over
the same backing. What is read warm is twenty times what our write buffers hold, so that it comes
from the cache device, before a restart as after it. Both caches are files in the same directory, in
memory unless `--directory` names another: then latency is set by the backing and not by a disk, and
ratios mean something on a shared machine. Each is the median of several rounds.
"""

import json
import os
import pathlib
import statistics
import subprocess

from support import MIB, Bench, Failed, Service, check, parser, run, table

SPACE = "1G"
# The write buffers of a cache of this size hold 16 MiB.
CACHE_BYTES = 512 * MIB
WARM = "384m"
SLOW = ["memory", SPACE, "rdelay=2ms", "wdelay=2ms"]
# Some servers answer holes without asking their backing: here nobody hears of holes.
SLOWLY = ["noextents", "delay"]
BARS = [("cold / no cache", 0.9), ("warm / nbdkit's cache filter", 1.0),
        ("warm after restart / warm", 0.9), ("warm after kill / warm", 0.9)]


def reads_per_second(uri, size, seconds, arguments, repeat=False):
    """Random reads of 4 KiB, 16 at a time."""
    words = ["fio", "--name=read", "--ioengine=nbd", f"--uri={uri}", "--rw=randread", "--bs=4k",
             f"--size={size}", "--iodepth=16", f"--runtime={seconds}", "--output-format=json",
             f"--randseed={arguments.seed}"]
    if repeat:
        words += ["--time_based", "--norandommap"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise Failed(f"fio: {ended.stdout}{ended.stderr}")
    text = ended.stdout[ended.stdout.index("{"):]
    return json.loads(text)["jobs"][0]["read"]["iops"]


def read_once(uri):
    """Reads the working set, in no order since streams may pass, so that a cache holds it."""
    words = ["fio", "--name=once", "--ioengine=nbd", f"--uri={uri}", "--rw=randread", "--bs=64k",
             f"--size={WARM}", "--iodepth=16"]
    subprocess.run(words, capture_output=True, check=True)


def cold_and_warm(uri, seconds, arguments):
    cold = reads_per_second(uri, SPACE.lower(), seconds, arguments)
    read_once(uri)
    reads_per_second(uri, WARM, seconds, arguments, repeat=True)
    return cold, reads_per_second(uri, WARM, seconds, arguments, repeat=True)


def turn(arguments):
    """One round; returns the figures by name."""
    seconds, found = arguments.seconds, {}
    with Bench(arguments) as bench:
        _, path = bench.nbdkit("plain", SLOW, filters=SLOWLY)
        found["no cache"] = reads_per_second(
            f"nbd+unix:///?socket={path}", SPACE.lower(), seconds, arguments)
    with Bench(arguments) as bench:
        _, path = bench.nbdkit("filter", [*SLOW, "cache-on-read=true"], filters=["cache", *SLOWLY])
        uri = f"nbd+unix:///?socket={path}"
        found["filter cold"], found["filter warm"] = cold_and_warm(uri, seconds, arguments)
    with Bench(arguments) as bench:
        _, path = bench.nbdkit("backing", SLOW, filters=SLOWLY)
        service = Service(bench, f"nbd+unix:///?socket={path}", cache_bytes=CACHE_BYTES).start()
        found["cold"], found["warm"] = cold_and_warm(service.uri, seconds, arguments)
        service.stop()
        service.start()
        found["restarted"] = reads_per_second(service.uri, WARM, seconds, arguments, repeat=True)
        service.restart_killed()
        found["killed"] = reads_per_second(service.uri, WARM, seconds, arguments, repeat=True)
        service.stop()
    return found


def main(arguments):
    memory = pathlib.Path("/dev/shm")
    if arguments.directory is None and memory.is_dir():
        arguments.directory = memory
    # Where the filter keeps its file.
    os.environ["TMPDIR"] = str(arguments.directory or "/var/tmp")
    rounds = [turn(arguments) for _ in range(arguments.rounds)]
    names = list(rounds[0])
    table("reads a second, 4 KiB at random, 16 at a time, backing with 2 ms", ["round", *names],
          [[number + 1, *[f"{found[name]:.0f}" for name in names]]
           for number, found in enumerate(rounds)])
    pairs = [("cold", "no cache"), ("warm", "filter warm"), ("restarted", "warm"),
             ("killed", "warm")]
    rows, low = [], []
    for (name, bar), (ours, theirs) in zip(BARS, pairs):
        ratio = statistics.median(found[ours] / found[theirs] for found in rounds)
        rows.append([name, f"{ratio:.2f}", f">= {bar}", "yes" if ratio >= bar else "NO"])
        if ratio < bar:
            low.append(f"{name} is {ratio:.2f}, expected {bar} or more")
    table(f"median of {arguments.rounds} rounds", ["ratio", "found", "bar", "met"], rows)
    check(not low, "; ".join(low))


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=int, default=3)
    run(main, options.parse_args())
