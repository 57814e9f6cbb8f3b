#!/usr/bin/python3
"""The OLTP workload at 31 BSU over a warm cache of a tenth of the data, beside no cache.

The evaluation of the cache whose benchmark this is saw three quarters of the backing's reads gone,
and the mean latency fall to less than three fifths. Here the backings answer after 2 ms, and tell
how often they were asked; data store and user store are volumes of one cache, the log goes around
it. Between warming and measuring everything is stopped and started again. Backings and cache are
files in memory unless `--directory` names another place: the delay stands for the backing, and what
a shared disk does is nobody's latency. Nor is what strangers on the same processors do: a round
during which one sleep of 2 ms in a hundred took more than 4 ms is shown, not counted, and made
again, up to four times as many as asked for. The volumes are made as they are where nobody says
otherwise.
"""

import json
import pathlib
import re
import statistics
import subprocess

from support import MIB, Bench, Lateness, Service, check, parser, run, table

UNITS = ["asu1", "asu2", "asu3"]


class Backings:
    """The three units on servers that take their time and count."""

    def __init__(self, bench, sizes):
        self.bench = bench
        self.files = [bench.file(name, size * MIB) for name, size in zip(UNITS, sizes)]
        self.servers = []

    def start(self, turn):
        self.stats = [self.bench.file(f"{name}.stats{turn}") for name in UNITS]
        self.servers = [
            self.bench.nbdkit(f"{name}-behind", ["file", file, "rdelay=2ms", "wdelay=2ms",
                                                 f"statsfile={stats}"],
                              filters=["stats", "noextents", "delay"])
            for name, file, stats in zip(UNITS, self.files, self.stats)]
        return self

    def uris(self):
        return [f"nbd+unix:///?socket={path}" for _, path in self.servers]

    def stop(self):
        """Ends them; returns reads and MiB read of data store and user store."""
        for server, _ in self.servers:
            server.stop()
        reads, bytes_read = 0, 0.0
        units = {"bytes": 1 / MIB, "KiB": 1 / 1024, "MiB": 1, "GiB": 1024}
        for path in self.stats[:2]:
            found = re.search(r"^read: (\d+) ops, [\d.]+ s, ([\d.]+) (\w+)", path.read_text(),
                              re.MULTILINE)
            if found:
                reads += int(found[1])
                bytes_read += float(found[2]) * units[found[3]]
        return reads, bytes_read


def workload(arguments, uris, bench, *more):
    """Runs `entresol pblio`; returns what it counted."""
    names = [f"-{unit}={uri}" for unit, uri in zip(UNITS, uris)]
    words = [arguments.entresol, "pblio", *names, "--json", f"-data={bench.file('data')}", *more]
    ended = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    check(ended.returncode == 0, f"{' '.join(words[:3])}: {ended.stdout}{ended.stderr}")
    check("fell behind" not in ended.stderr, f"the load was not made: {ended.stderr}")
    return json.loads(ended.stdout)


def round_of(arguments, number):
    measured = ["--style=fixed", f"-bsu={arguments.bsu}", f"-runlen={arguments.seconds}",
                f"--seed={arguments.seed % 1000 + number}", "--verify"]
    data = arguments.data_mib
    sizes = [data * 45 // 100, data * 45 // 100, data // 10]
    with Bench(arguments) as bench:
        backings = Backings(bench, sizes).start("plain")
        with Lateness() as late:
            without = workload(arguments, backings.uris(), bench, *measured)
        plain = backings.stop()
        backings.start("warming")
        uris = backings.uris()
        service = Service(bench, uris[0], cache_bytes=data // 10 // 8 * 8 * MIB, name="asu1",
                          more=arguments.policy)
        service.volume("create", "asu2", "--cache", service.cache, "--backing", uris[1],
                       *arguments.policy)
        service.start()
        through = [service.uri, service.uri.replace("asu1?", "asu2?"), uris[2]]
        warming = ["--style=fixed", f"-bsu={arguments.warm_bsu}", f"-runlen={arguments.warm_seconds}",
                   f"--seed={arguments.seed % 1000 + 500 + number}"]
        workload(arguments, through, bench, *warming)
        service.stop()
        backings.stop()
        backings.start("measured")
        service.start()
        with Lateness() as late_cached:
            cached = workload(arguments, through, bench, *measured)
        service.stop()
        behind = backings.stop()
    for found in [without, cached]:
        check(found["verified_blocks"]["wrong"] == 0, f"wrong blocks: {found['verified_blocks']}")
    latency = "latency_from_intended_start_us"
    return {
        "reads": plain[0], "reads cached": behind[0],
        "MiB": round(plain[1]), "MiB cached": round(behind[1]),
        "ms": round(without[latency]["mean"] / 1000, 2),
        "ms cached": round(cached[latency]["mean"] / 1000, 2),
        "late": round(late.milliseconds, 1), "late cached": round(late_cached.milliseconds, 1),
        "counts": "no" if late.disturbed or late_cached.disturbed else "yes",
        "cut": 1 - behind[0] / plain[0], "cut MiB": 1 - behind[1] / plain[1],
        "faster": without[latency]["mean"] / cached[latency]["mean"],
    }


def main(arguments):
    memory = pathlib.Path("/dev/shm")
    if arguments.directory is None and memory.is_dir():
        arguments.directory = memory
    rounds, counted = [], []
    while len(counted) < arguments.rounds and len(rounds) < 4 * arguments.rounds:
        rounds.append(round_of(arguments, len(rounds)))
        counted = [found for found in rounds if found["counts"] == "yes"]
    names = ["reads", "reads cached", "MiB", "MiB cached", "ms", "ms cached", "late",
             "late cached", "counts"]
    rows = [[number + 1, *[found[name] for name in names]] for number, found in enumerate(rounds)]
    table(f"{arguments.bsu} BSU for {arguments.seconds} s over {arguments.data_mib} MiB, a cache of "
          "a tenth: reads of the backings and mean latency", ["round", *names], rows)
    check(counted, "the machine was late in every round, so none tells a latency: run it again "
          "when less else runs here and beside it")
    middle = {name: statistics.median(found[name] for found in counted)
              for name in ["cut", "cut MiB", "faster"]}
    rows = [["reads of the backing saved", f"{middle['cut']:.1%}", ">= 75 %"],
            ["bytes of them saved", f"{middle['cut MiB']:.1%}", ""],
            ["mean latency better by", f"{middle['faster']:.2f}", ">= 1.7"]]
    table(f"median of the {len(counted)} that count", ["figure", "found", "bar"], rows)
    check(middle["cut"] >= 0.75, f"reads of the backing fell by {middle['cut']:.1%} only")
    check(middle["faster"] >= 1.7, f"mean latency is better by {middle['faster']:.2f} only")


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--bsu", type=int, default=31)
    options.add_argument("--seconds", type=int, default=20)
    options.add_argument("--warm-bsu", type=int, default=100)
    options.add_argument("--warm-seconds", type=int, default=60)
    options.add_argument("--data-mib", type=int, default=640)
    options.add_argument("--policy", type=str.split,
                         default=[],
                         help="how both volumes cache, as `entresol volume create` takes it")
    run(main, options.parse_args())
