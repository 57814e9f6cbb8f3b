#!/usr/bin/python3
"""Large requests: warm reads and writes through of 4 and 64 KiB, beside qemu-nbd on the same file.

By turns within the same minute, 32 requests at a time by one client: our server in mode wt, qemu-nbd
and nbdkit's plugin for files. All files lie in the same directory, in memory unless `--directory`
names another, so that what is compared is the work of the servers: theirs copy, ours also sums up
what it reads and writes its cache. Of each the rate and the server's processor time a request are
told. Where processors are shared, who has more threads is given more of them: the time a request
tells more than the rate then. Ratios below a bar are named, and fail the script with `--strict`.
"""

import json
import os
import pathlib
import statistics
import subprocess

from support import MIB, Bench, Failed, Service, check, parser, run, table

VOLUME = 256 * MIB
CACHE_BYTES = 768 * MIB
DEPTH = 32
KINDS = [("randread", "4k"), ("randread", "64k"), ("randwrite", "4k"), ("randwrite", "64k")]
BARS = {("randread", "64k"): 0.9, ("randwrite", "64k"): 0.7}
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid):
    """What all threads of a process have used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def load(server, kind, arguments):
    """Runs one load; requests a second, and microseconds of the server's time for each."""
    (uri, pid), (pattern, size) = server, kind
    words = ["fio", "--name=load", "--ioengine=nbd", f"--uri={uri}", f"--rw={pattern}",
             f"--bs={size}", f"--size={VOLUME}", f"--iodepth={DEPTH}", "--time_based",
             "--norandommap", f"--runtime={arguments.seconds}", "--output-format=json",
             f"--randseed={arguments.seed}"]
    before = processor_seconds(pid)
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise Failed(f"fio: {ended.stdout}{ended.stderr}")
    used = processor_seconds(pid) - before
    job = json.loads(ended.stdout[ended.stdout.index("{"):])["jobs"][0]
    side = job["read" if pattern == "randread" else "write"]
    return side["iops"], used * 1e6 / max(side["total_ios"], 1)


def fill(path):
    """A file without holes and without zeros, which some servers answer without sending them."""
    chunk = os.urandom(MIB)
    with open(path, "wb") as file:
        for _ in range(VOLUME // MIB):
            file.write(chunk)


def servers(bench, backing):
    """The servers by name: where each is reached, and its process. Ours is warm."""
    ours = Service(bench, backing, cache_bytes=CACHE_BYTES).start()
    subprocess.run(["fio", "--name=warm", "--ioengine=nbd", f"--uri={ours.uri}", "--rw=randread",
                    "--bs=64k", f"--size={VOLUME}", "--iodepth=16"], capture_output=True,
                   check=True)
    socket = bench.file("qemu.sock")
    words = ["qemu-nbd", "-t", "-f", "raw", "--shared=0", "--cache=writeback", "-k", socket, backing]
    qemu = bench.start("qemu", words, listens_at=socket)
    nbdkit, path = bench.nbdkit("nbdkit", ["file", backing])
    return {"ours": (ours.uri, ours.pid), "qemu-nbd": (f"nbd+unix:///?socket={socket}", qemu.pid),
            "nbdkit": (f"nbd+unix:///?socket={path}", nbdkit.pid)}


def measure(arguments):
    """Rates and times a request, by kind, server and round."""
    found = {}
    with Bench(arguments) as bench:
        backing = bench.file("backing.raw")
        fill(backing)
        served = servers(bench, backing)
        for number in range(arguments.rounds):
            for kind in arguments.kinds:
                # Each has every place in the order once.
                names = list(served)
                for name in names[number % len(names):] + names[:number % len(names)]:
                    result = load(served[name], kind, arguments)
                    found.setdefault((kind, name), []).append(result)
    return found


def main(arguments):
    memory = pathlib.Path("/dev/shm")
    if arguments.directory is None and memory.is_dir():
        arguments.directory = memory
    arguments.kinds = [kind for kind in KINDS if arguments.only in ("", "-".join(kind))]
    found = measure(arguments)
    names = ["ours", "qemu-nbd", "nbdkit"]
    rows = []
    for kind in arguments.kinds:
        for number in range(arguments.rounds):
            rounds = [found[kind, name][number] for name in names]
            rows.append([" ".join(kind), number + 1, *[f"{rate:.0f}" for rate, _ in rounds],
                         *[f"{time:.1f}" for _, time in rounds],
                         f"{rounds[0][0] / rounds[1][0]:.2f}"])
    table(f"requests a second, {DEPTH} at a time; microseconds of processor time of the server a "
          "request",
          ["load", "round", *names, *[f"{name} us" for name in names], "ours / qemu-nbd"], rows)
    rows, low = [], []
    for kind in arguments.kinds:
        pairs = list(zip(found[kind, "ours"], found[kind, "qemu-nbd"]))
        ratio = statistics.median(ours[0] / theirs[0] for ours, theirs in pairs)
        times = [statistics.median(one[side][1] for one in pairs) for side in (0, 1)]
        bar = BARS.get(kind)
        met = "" if bar is None else "yes" if ratio >= bar else "NO"
        rows.append([" ".join(kind), f"{ratio:.2f}", "" if bar is None else f">= {bar}", met,
                     f"{times[0]:.1f}", f"{times[1]:.1f}"])
        if met == "NO":
            low.append(f"{' '.join(kind)} is {ratio:.2f} of qemu-nbd, expected {bar} or more")
    table(f"medians of {arguments.rounds} rounds",
          ["load", "ours / qemu-nbd", "bar", "met", "ours us", "qemu-nbd us"], rows)
    check(not (low and arguments.strict), "; ".join(low))


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=int, default=3)
    options.add_argument("--strict", action="store_true", help="fail below a bar")
    options.add_argument("--only", default="", help="one load, such as randread-64k")
    run(main, options.parse_args())
