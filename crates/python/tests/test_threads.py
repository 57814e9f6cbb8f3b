"""Many threads use one store."""

import threading
import time
import unittest

import entresol
from folder import InFolder

THREADS = 8
ROUNDS = 400


class Threads(InFolder):
    def in_threads(self, work):
        raised = []

        def guarded(number):
            try:
                work(number)
            except BaseException as error:
                raised.append(error)

        threads = [threading.Thread(target=guarded, args=(n,)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if raised:
            raise raised[0]

    def test_each_thread_finds_what_it_and_others_put(self):
        store = self.open()
        table = store.ordered_table("t")
        start = threading.Barrier(THREADS)

        def work(number):
            start.wait()
            for turn in range(ROUNDS):
                key = b"%d-%d" % (number, turn)
                store.put(key, key)
                table.put(key, key, durability="synced" if turn % 50 == 0 else None)
                self.assertEqual((store.get(key), table.get(key)), (key, key))

        self.in_threads(work)
        self.assertEqual(store.count(), THREADS * ROUNDS)
        self.assertEqual(len(list(table)), THREADS * ROUNDS)

    def test_one_of_all_threads_wins_a_condition(self):
        store = self.open()
        start, winners = threading.Barrier(THREADS), []

        def work(number):
            for turn in range(50):
                start.wait()
                if store.put(b"%d" % turn, b"%d" % number, if_absent=True) is not None:
                    winners.append(turn)

        self.in_threads(work)
        self.assertEqual(sorted(winners), list(range(50)))

    def test_a_close_ends_the_calls_of_others_with_results_or_closed_errors(self):
        store = self.open()
        table = store.ordered_table("t")
        start = threading.Barrier(THREADS)

        def work(number):
            start.wait()
            try:
                for turn in range(1_000_000):
                    store.put(b"%d" % turn, b"x", durability="synced" if number == 1 else None)
                    table.put(b"%d" % turn, b"x")
                    list(table.scan(limit=10))
                    if number == 0 and turn == 100:
                        store.close()
                self.fail("nobody closed the store")
            except entresol.ClosedError:
                pass

        self.in_threads(work)
        self.assertTrue(store.closed)

    def test_other_threads_run_while_one_waits_for_the_device(self):
        store = self.open()
        ended, turns = threading.Event(), 0

        def sync():
            for number in range(50):
                store.put(b"%d" % number, b"x", durability="synced")
            ended.set()

        waiting = threading.Thread(target=sync)
        waiting.start()
        deadline = time.monotonic() + 60
        while not ended.is_set() and time.monotonic() < deadline:
            turns += 1
        waiting.join()
        self.assertGreater(turns, 0)


if __name__ == "__main__":
    unittest.main()
