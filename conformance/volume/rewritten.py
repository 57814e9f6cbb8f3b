#!/usr/bin/python3
"""16,000 cached blocks are rewritten, the server is killed, the cache is opened again.

The cache whose benchmark this project took up answered then with 385 stale blocks and 15,615 of
other keys, since the map it loaded described the log as it was before the run. Right is: none.
"""

from support import (BLOCK, MIB, MODES, Bench, Ledger, Service, Tally, check, connect, parser,
                     read_all, run, table)

BLOCKS = 16_000


def rewrite(handle, ledger, order):
    """Writes every block once more and flushes."""
    for block in order:
        data, sequence = ledger.next_write(block)
        handle.pwrite(data, block * BLOCK)
        ledger.acknowledge(block, sequence)
    acknowledged = dict(ledger.pending)
    handle.flush()
    ledger.flushed(acknowledged)


def life(arguments, mode):
    ledger, warm, tally = Ledger(arguments.seed), Tally(), Tally()
    with Bench(arguments) as bench:
        backing = bench.file("backing", BLOCKS * BLOCK)
        service = Service(bench, backing, cache_bytes=192 * MIB, mode=mode).start()
        handle = connect(service.uri)
        rewrite(handle, ledger, range(BLOCKS))
        read_all(handle, ledger, range(BLOCKS), warm)
        handle.shutdown()
        # A clean stop, so that there is a map to be loaded which the next run makes untrue.
        service.stop()
        service.start()
        handle = connect(service.uri)
        rewrite(handle, ledger, reversed(range(BLOCKS)))
        handle.shutdown()
        service.restart_killed()
        handle = connect(service.uri)
        for _ in range(2):
            read_all(handle, ledger, range(BLOCKS), tally)
        handle.shutdown()
        service.stop()
    for counted in [warm, tally]:
        check(counted.wrong == 0, f"mode {mode}: {counted.counts}")
        check(counted.counts["refused"] == 0, f"mode {mode}: reads failed: {counted.counts}")
    return [mode, BLOCKS, *tally.cells()]


def main(arguments):
    rows = [life(arguments, mode) for mode in arguments.modes]
    table("blocks rewritten over a warm cache, crash, reopen, read twice",
          ["mode", "rewritten", *Tally.NAMES], rows)


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--modes", type=lambda text: text.split(","), default=MODES)
    run(main, options.parse_args())
