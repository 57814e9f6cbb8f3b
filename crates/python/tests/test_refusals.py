"""What is not valid raises with a sentence, and never ends the process."""

import gc
import multiprocessing
import os
import unittest

import entresol
from folder import SMALL, TABLES, InFolder


class Refusals(InFolder):
    def refuses(self, kind, said, call):
        with self.assertRaises(kind) as raised:
            call()
        self.assertIn(said, str(raised.exception))

    def test_bad_options_raise_with_a_sentence(self):
        for options, kind, said in [
            ({"durability": "all"}, ValueError, "option `durability`: expected memory"),
            ({"capacity": -1}, ValueError, "option `capacity`: expected a number, found `-1`"),
            ({"capacity": 1.5}, TypeError, "`capacity`: expected a number or a text, found float"),
            ({"memory": 1}, ValueError, "memory"),
            ({"colour": "red"}, TypeError, "`open` has no option `colour`; it has capacity"),
            ({"encryption_key": b"short"}, ValueError, "64 hexadecimal digits, found 10 bytes"),
            ({"compression": "zip"}, ValueError, "expected none or lz4 or zstd, found `zip`"),
            ({"buffer_directory": "/none"}, ValueError, "option `buffer_directory`: expected"),
        ]:
            self.refuses(kind, said, lambda: self.open(**options))
        self.refuses(ValueError, "`a,b`", lambda: entresol.Store.open("a,b"))
        self.refuses(entresol.Error, "capacity", lambda: entresol.Store.open(self.folder / "new"))

    def test_bad_arguments_raise_with_a_sentence(self):
        store = self.open()
        self.refuses(TypeError, "a key: expected bytes", lambda: store.get("text"))
        self.refuses(TypeError, "a value: expected bytes", lambda: store.put(b"a", 5))
        self.refuses(TypeError, "found NoneType", lambda: store.put(None, b""))
        self.refuses(ValueError, "key", lambda: store.put(b"", b""))
        self.refuses(ValueError, "`ttl`: expected seconds", lambda: store.put(b"a", b"", ttl=-1))
        self.refuses(ValueError, "`ttl`", lambda: store.put(b"a", b"", ttl=float("nan")))
        self.refuses(ValueError, "`idle`", lambda: store.touch(b"a", idle=0))
        self.refuses(TypeError, "no option `tll`", lambda: store.put(b"a", b"", tll=1))
        conditions = {"if_absent": True, "if_present": True}
        self.refuses(ValueError, "one at most", lambda: store.put(b"a", b"", **conditions))
        self.refuses(ValueError, "key", lambda: store.ordered_table("t").put(b"", b""))
        self.refuses(OverflowError, "", lambda: store.space(70_000))

    def test_whatever_is_used_after_close_raises(self):
        store = self.open()
        store.put(b"a", b"1")
        table, space, batch = store.ordered_table("t"), store.space(1), store.batch()
        table.put_many([(b"a", b"1"), (b"b", b"2")])
        batch.put(table, b"c", b"3")
        rows, items = iter(table), store.items()
        next(rows)
        store.close()
        store.close()
        self.assertTrue(store.closed)
        for call in [
            lambda: store.get(b"a"),
            lambda: store.put(b"a", b"1"),
            lambda: store.put_many({b"a": b"1"}),
            lambda: store.get_many([b"a"]),
            lambda: b"a" in store,
            store.count,
            store.clear,
            store.sync,
            store.statistics,
            store.items,
            store.batch,
            lambda: store.space(2),
            lambda: store.ordered_table("t"),
            lambda: space.get(b"a"),
            lambda: next(items),
            lambda: next(rows),
            lambda: table.get(b"a"),
            lambda: table.put(b"a", b"1"),
            lambda: table.put_many([]),
            table.scan,
            table.count,
            table.clear,
            batch.write,
            store.__enter__,
        ]:
            self.refuses(entresol.ClosedError, "the store was closed; open it again", call)

    def test_an_opened_store_is_refused_to_others(self):
        store = self.open()
        self.refuses(entresol.Error, "data", self.open)
        store.close()
        self.open().close()

    def test_a_store_that_nobody_has_any_more_is_closed(self):
        store = entresol.Store.open(self.folder / "data", **TABLES)
        rows = store.ordered_table("t").scan()
        del store
        self.refuses(entresol.Error, "data", self.open)
        del rows
        gc.collect()
        self.open().close()

    def test_another_format_or_key_is_told(self):
        (self.folder / "data").write_bytes(b"something else " * 8 * 1024 * 1024)
        self.refuses(entresol.Error, "`mode=\"reformat\"` does", lambda: self.open(capacity=None))
        with self.open("secret", encryption_key=bytes(32)) as store:
            store.put(b"a", b"1")
        self.refuses(entresol.WrongKeyError, "key", lambda: self.open("secret"))

    def test_a_fork_is_told_that_the_store_is_not_its_own(self):
        store = self.open()
        store.put(b"a", b"1")
        child = os.fork()
        if child == 0:
            status = 1
            try:
                store.get(b"a")
            except entresol.Error as error:
                status = 0 if "a fork of it" in str(error) else 2
            os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(store.get(b"a"), b"1")

    def test_spawned_workers_open_stores_of_their_own(self):
        spawn = multiprocessing.get_context("spawn")
        with spawn.Pool(2) as pool:
            paths = [str(self.folder / name) for name in ("one", "two")]
            self.assertEqual(pool.map(put_one, paths), [1, 1])


def put_one(path):
    with entresol.Store.open(path, **SMALL) as store:
        store.put(b"a", b"1")
        return store.count()


if __name__ == "__main__":
    unittest.main()
