"""Entries found by their keys."""

import time
import unittest

import entresol
from folder import SMALL, InFolder


class Entries(InFolder):
    def test_the_installed_package_is_what_is_tested(self):
        self.assertIn("site-packages", entresol.__file__)

    def test_values_come_back_after_a_reopen(self):
        with self.open() as store:
            self.assertIsInstance(store.put(b"a", b"1"), int)
            store.space(7).put(bytearray(b"a"), memoryview(b"2"))
            store[b"empty"] = b""
        with self.open() as store:
            self.assertEqual(store[b"a"], b"1")
            self.assertEqual(store.space(7).get(b"a"), b"2")
            self.assertEqual(store.get(b"empty"), b"")
            self.assertIsNone(store.get(b"b"))
            self.assertEqual(store.get(b"b", b"else"), b"else")
            with self.assertRaises(KeyError):
                store[b"b"]

    def test_entries_leave_when_they_are_removed(self):
        store = self.open()
        store[b"a"] = b"1"
        self.assertIn(b"a", store)
        self.assertTrue(store.remove(b"a"))
        self.assertFalse(store.remove(b"a"))
        self.assertNotIn(b"a", store)
        with self.assertRaises(KeyError):
            del store[b"a"]

    def test_conditions_refuse_and_nothing_changes(self):
        store = self.open()
        self.assertIsNone(store.put(b"a", b"1", if_present=True))
        first = store.put(b"a", b"1", if_absent=True)
        self.assertIsNone(store.put(b"a", b"2", if_absent=True))
        self.assertEqual(store[b"a"], b"1")
        second = store.put(b"a", b"2", if_version=first)
        self.assertIsNone(store.put(b"a", b"3", if_version=first))
        self.assertFalse(store.remove(b"a", if_version=first))
        self.assertEqual(store.entry(b"a").version, second)
        self.assertTrue(store.remove(b"a", if_version=second))

    def test_entries_end_at_their_time(self):
        store = self.open()
        store.put(b"short", b"1", ttl=0.001)
        store.put(b"long", b"1", ttl=3600)
        deadline = time.monotonic() + 30
        while b"short" in store and time.monotonic() < deadline:
            pass
        self.assertNotIn(b"short", store)
        self.assertAlmostEqual(store.entry(b"long").expires, time.time() + 3600, delta=60)
        self.assertTrue(store.touch(b"long"))
        self.assertIsNone(store.entry(b"long").expires)
        self.assertFalse(store.touch(b"short", ttl=1))

    def test_many_at_a_time_are_as_many_one_by_one(self):
        store = self.open()
        pairs = {b"%d" % number: b"value %d" % number for number in range(5000)}
        self.assertEqual(store.put_many(pairs), 5000)
        self.assertEqual(store.put_many(pairs.items(), if_absent=True), 0)
        keys = [*pairs, b"none"]
        self.assertEqual(store.get_many(keys), [*pairs.values(), None])
        self.assertEqual(store.count(), 5000)
        self.assertEqual(dict(store.items()), pairs)
        self.assertEqual(sorted(store), sorted(pairs))
        self.assertEqual(dict(store.space(1).items()), {})
        store.clear()
        self.assertEqual(store.count(), 0)

    def test_every_durability_acknowledges(self):
        store = self.open()
        for level in ["memory", "process", "flushed", "periodic:10", "synced"]:
            self.assertIsNotNone(store.put(level.encode(), b"1", durability=level))
        store.sync()
        self.assertEqual(store.count(), 5)

    def test_a_cache_makes_room_and_a_store_is_full(self):
        value = b"x" * 100_000
        cache = entresol.Cache.open(self.folder / "cache", **SMALL)
        with cache:
            for number in range(1500):
                cache.put(b"%d" % number, value)
            self.assertEqual(cache.get(b"1499"), value)
            self.assertLess(cache.count(), 1500)
        store = self.open("store")
        with self.assertRaises(entresol.FullError) as raised:
            for number in range(1500):
                store.put(b"%d" % number, value)
        self.assertGreater(len(str(raised.exception)), 20)
        self.assertEqual(store.get(b"0"), value)

    def test_statistics_are_numbers_by_name(self):
        store = self.open()
        store.put(b"a", b"1")
        store.ordered_table("t").put(b"a", b"1")
        figures = store.statistics()
        self.assertEqual(figures["puts"], 1)
        self.assertEqual(figures["tables_changes"], 1)
        self.assertFalse(figures["poisoned"])
        self.assertGreater(figures["capacity_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
