"""A killed process's acknowledged writes are there afterwards."""

import os
import pathlib
import signal
import subprocess
import sys
import unittest

from folder import InFolder

WRITER = """
import sys, entresol
sys.path.insert(0, sys.argv[2])
from folder import TABLES
store = entresol.Store.open(sys.argv[1], **TABLES)
left, right = store.ordered_table("left"), store.ordered_table("right")
# What is written last says how far the one before came.
number = sum(1 for _ in right)
while True:
    name = b"%09d" % number
    store.put(name, name)
    with store.batch() as batch:
        batch.put(left, name, name)
        batch.put(right, name, name)
    number += 1
    print(number, flush=True)
"""


class Kills(InFolder):
    def test_acknowledged_values_survive_a_kill_and_batches_are_whole(self):
        acknowledged = 0
        for wanted in (1, 500, 3000):
            acknowledged = self.kill_after(acknowledged + wanted)
            with self.open() as store:
                left = dict(store.ordered_table("left"))
                right = dict(store.ordered_table("right"))
                for name in (b"%09d" % number for number in range(acknowledged)):
                    self.assertEqual(store.get(name), name)
                    self.assertEqual(left.get(name), name)
                self.assertEqual(left, right)

    def kill_after(self, wanted):
        """Kills a writer once it has acknowledged so many; how many it has by then."""
        script = [sys.executable, "-c", WRITER, self.folder / "data"]
        tests = pathlib.Path(__file__).resolve().parent
        writer = subprocess.Popen([*script, tests], stdout=subprocess.PIPE, text=True)
        acknowledged = 0
        with writer.stdout as output:
            while acknowledged < wanted:
                acknowledged = int(output.readline())
            os.kill(writer.pid, signal.SIGKILL)
            rest = output.read().split("\n")
        writer.wait()
        # The last line may be torn.
        return max([acknowledged, *(int(line) for line in rest[:-1])])


if __name__ == "__main__":
    unittest.main()
