#!/usr/bin/python3
"""Acknowledged writes survive `kill -9` of the server, in every mode.

Two judges. A ledger of our own keeps many writes in flight, some with FUA, some followed by a
flush, and knows for every block which writes a reader may find. fio kills the server by its
trigger, saves which writes were answered, and verifies them after the restart.
"""

import pathlib
import random
import subprocess

import nbd

from support import (BLOCK, MIB, MODES, Bench, Ledger, Service, Tally, check, connect, parser,
                     read_all, run, table)

BLOCKS = 4096
IN_FLIGHT = 16


class Load:
    """Random writes of whole blocks over one connection."""

    def __init__(self, uri, ledger, source):
        self.handle = connect(uri)
        self.ledger = ledger
        self.source = source
        self.busy = set()
        self.answers = 0
        self.flights = 0

    def run_until_killed(self, service, answers):
        """Keeps requests in flight; kills the server once so many were answered."""
        killed = False
        while True:
            try:
                while not killed and self.flights < IN_FLIGHT:
                    self.begin()
                if not killed and self.answers >= answers:
                    service.kill()
                    killed = True
                if killed and (self.handle.aio_is_dead() or self.handle.aio_is_closed()):
                    return
                self.handle.poll(1000)
            except nbd.Error:
                check(killed, "the server broke the connection off before it was killed:\n"
                      + service.process.output())
                return

    def begin(self):
        self.flights += 1
        if self.source.random() < 0.02:
            acknowledged = dict(self.ledger.pending)
            self.handle.aio_flush(completion=lambda error: self.flushed(error, acknowledged))
            return
        block = self.source.randrange(BLOCKS)
        while block in self.busy:
            block = self.source.randrange(BLOCKS)
        self.busy.add(block)
        data, sequence = self.ledger.next_write(block)
        fua = self.source.random() < 0.2
        done = lambda error: self.written(error, block, sequence, fua)
        flags = nbd.CMD_FLAG_FUA if fua else 0
        buffer = nbd.Buffer.from_bytearray(bytearray(data))
        self.handle.aio_pwrite(buffer, block * BLOCK, completion=done, flags=flags)

    def written(self, error, block, sequence, fua):
        self.flights -= 1
        self.busy.discard(block)
        if error.value == 0:
            self.answers += 1
            keep = self.ledger.promise if fua else self.ledger.acknowledge
            keep(block, sequence)
        return 1

    def flushed(self, error, acknowledged):
        self.flights -= 1
        if error.value == 0:
            self.answers += 1
            self.ledger.flushed(acknowledged)
        return 1


def by_ledger(arguments, mode, rounds):
    """Kills under load `rounds` times; returns a row of the table."""
    source = random.Random(f"{arguments.seed} {mode}")
    ledger, tally = Ledger(arguments.seed), Tally()
    answers = 0
    with Bench(arguments) as bench:
        backing = bench.file("backing", BLOCKS * BLOCK)
        # Half of the data fits, so that write-back and eviction go on while the server is killed.
        service = Service(bench, backing, cache_bytes=arguments.cache_mib * MIB, mode=mode).start()
        for _ in range(rounds):
            load = Load(service.uri, ledger, source)
            load.run_until_killed(service, source.randrange(500, 6000))
            answers += load.answers
            service.start()
            handle = connect(service.uri)
            read_all(handle, ledger, range(BLOCKS), tally)
            handle.shutdown()
            check(tally.wrong == 0, f"mode {mode}: wrong blocks after a kill: {tally.counts}")
        check(tally.counts["refused"] == 0, f"mode {mode}: reads failed after a kill")
        owed = dict(ledger.owed)
        service.write_back()
        service.stop()
        raw = backing.read_bytes()
        for block, sequence in owed.items():
            verdict = ledger.judge(block, raw[block * BLOCK:(block + 1) * BLOCK])
            check(verdict == "sound", f"mode {mode}: block {block} is {verdict} on the backing "
                  f"after everything was written back; expected write {sequence}")
    return [mode, rounds, answers, *tally.cells()]


def by_fio(arguments, mode):
    """fio's trigger and its verification; returns a row of the table."""
    with Bench(arguments) as bench:
        backing = bench.file("backing", 256 * MIB)
        service = Service(bench, backing, cache_bytes=64 * MIB, mode=mode).start()
        job = ["fio", "--name=kill", "--ioengine=nbd", f"--uri={service.uri}", "--rw=randwrite",
               "--bs=4k", "--size=256m", "--iodepth=16", "--verify=crc32c", "--rate_iops=8000",
               f"--randseed={arguments.seed}", f"--aux-path={bench.path}"]
        trigger = [f"--trigger=kill -9 {service.pid}", "--trigger-timeout=3", "--do_verify=0",
                   "--verify_state_save=1"]
        subprocess.run([*job, *trigger], capture_output=True, cwd=bench.path, check=False)
        states = list(pathlib.Path(bench.path).glob("*.state"))
        check(states, "fio saved no state: its trigger did not fire")
        check(not service.process.runs() or service.process.popen.wait(10) is not None,
              "fio's trigger did not kill the server")
        service.start()
        verify = ["--verify_only", "--verify_state_load=1", "--verify_fatal=1"]
        ended = subprocess.run(
            [*job, *verify], capture_output=True, text=True, cwd=bench.path, check=False)
        text = ended.stdout + ended.stderr
        check(ended.returncode == 0 and "verify:" not in text, f"mode {mode}: fio:\n{text}")
        issued = [word for word in text.split() if word.startswith("total=")]
        read = issued[0].split("=")[1].split(",")[0] if issued else "?"
        check(read.isdigit() and int(read) > 1000, f"fio verified too little: {read}\n{text}")
        service.stop()
    return [mode, read, "all right"]


def main(arguments):
    rows = [by_ledger(arguments, mode, arguments.rounds) for mode in arguments.modes]
    table(f"{arguments.rounds} kills under load, every block read after each",
          ["mode", "kills", "answers", *Tally.NAMES], rows)
    rows = [by_fio(arguments, mode) for mode in arguments.modes]
    table("fio, killed by its trigger, state verified", ["mode", "blocks", "verdict"], rows)


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--cache-mib", type=int, default=64)
    options.add_argument("--modes", type=lambda text: text.split(","), default=MODES)
    run(main, options.parse_args())
