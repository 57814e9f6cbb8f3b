"""Rows in the order of their keys."""

import unittest

import entresol
from folder import InFolder


def number(value):
    return value.to_bytes(4, "big")


class Tables(InFolder):
    def test_scans_are_in_order_both_ways_within_bounds(self):
        rows = [(number(value), b"row %d" % value) for value in range(5000)]
        with self.open() as store:
            self.assertEqual(store.ordered_table("t").put_many(reversed(rows)), 5000)
        # Once from pages, once from changes that wait.
        with self.open() as store:
            table = store.ordered_table("t")
            self.assertEqual(list(table), rows)
            self.assertEqual(list(table.scan(reverse=True)), rows[::-1])
            for low, high in [(0, 5000), (17, 18), (100, 4900), (3, 3), (4999, 9000)]:
                wanted, bounds = rows[low:high], (number(low), number(high))
                self.assertEqual(list(table.scan(*bounds)), wanted)
                self.assertEqual(list(table.scan(*bounds, reverse=True)), wanted[::-1])
                self.assertEqual(list(table.scan(*bounds, limit=70)), wanted[:70])
                down = table.scan(*bounds, reverse=True, limit=70)
                self.assertEqual(list(down), wanted[::-1][:70])
            self.assertEqual(list(table.scan(limit=0)), [])

    def test_rows_are_read_and_removed_one_by_one(self):
        table = self.open().ordered_table("t")
        table[b"a"] = b"1"
        table.put(b"b", b"2", durability="synced")
        self.assertEqual(table.get_many([b"a", b"x", b"b"]), [b"1", None, b"2"])
        del table[b"a"]
        table.remove(b"absent")
        self.assertNotIn(b"a", table)
        self.assertEqual(table[b"b"], b"2")
        with self.assertRaises(KeyError):
            table[b"a"]
        self.assertEqual(table.get(b"a", b"else"), b"else")
        table.clear()
        self.assertEqual(list(table), [])

    def test_each_table_has_figures_of_its_own(self):
        with self.open() as store:
            self.assertEqual(store.table_figures(), {})
            store.ordered_table("few").put(b"a", b"12")
            store.ordered_table("many").put_many((number(key), b"v" * 100) for key in range(900))
            figures = store.table_figures()
            self.assertEqual(list(figures), ["few", "many"])
            self.assertEqual(figures["few"]["changes"], 1)
            self.assertEqual(figures["few"]["change_bytes"], 3)
            self.assertEqual(figures["many"]["change_bytes"], 900 * 104)
            self.assertGreater(figures["many"]["memory_bytes"], 0)
            self.assertGreaterEqual(figures["many"]["write_amplification"], 0)
            all_tables = store.statistics()
            self.assertEqual(all_tables["tables_changes"], 901)
        with self.assertRaises(entresol.ClosedError):
            store.table_figures()

    def test_values_larger_than_a_page_come_back(self):
        table = self.open().ordered_table("t")
        large = [(number(key), bytes([key]) * 300_000) for key in range(8)]
        table.put_many(large)
        self.assertEqual(list(table), large)
        self.assertEqual(list(table.scan(reverse=True, limit=3)), large[:4:-1])

    def test_counted_tables_count_between_keys(self):
        store = self.open()
        table = store.ordered_table("c", counted=True)
        self.assertTrue(table.counted)
        table.put_many((number(value), b"") for value in range(300))
        self.assertEqual(table.count(), 300)
        self.assertEqual(table.count(number(10), number(20)), 10)
        plain = store.ordered_table("plain")
        plain.put(b"a", b"1")
        with self.assertRaises(entresol.InvalidError):
            plain.count()

    def test_a_batch_is_written_whole_or_not_at_all(self):
        store = self.open()
        orders, stock = store.ordered_table("orders"), store.ordered_table("stock")
        stock.put(b"table", b"3")
        with store.batch(durability="synced") as batch:
            batch.if_value(stock, b"table", b"3")
            batch.if_absent(orders, b"1")
            batch.put(orders, b"1", b"table")
            batch.put(stock, b"table", b"2")
            self.assertEqual(len(batch), 2)
        self.assertEqual((orders[b"1"], stock[b"table"]), (b"table", b"2"))
        with self.assertRaises(entresol.RefusedError) as raised:
            with store.batch() as batch:
                batch.if_present(orders, b"1")
                batch.if_value(stock, b"table", b"3")
                batch.put(orders, b"2", b"table")
                batch.remove(stock, b"table")
        self.assertIn("condition 1 of a batch", str(raised.exception))
        with self.assertRaises(ZeroDivisionError):
            with store.batch() as batch:
                batch.put(orders, b"3", b"x")
                raise ZeroDivisionError
        self.assertEqual(list(orders), [(b"1", b"table")])
        self.assertEqual(stock[b"table"], b"2")
        batch = store.batch()
        batch.if_absent(orders, b"1")
        batch.put(orders, b"1", b"x")
        self.assertFalse(batch.write())
        self.assertTrue(batch.write(), "it is empty")

    def test_a_batch_that_fails_keeps_its_changes(self):
        store = self.open()
        batch = store.batch()
        batch.put(store.ordered_table("t"), b"", b"a key has at least one byte")
        with self.assertRaises(entresol.InvalidError):
            batch.write()
        self.assertEqual(len(batch), 1)

    def test_a_batch_takes_tables_of_its_store_alone(self):
        with self.assertRaises(entresol.InvalidError) as raised:
            with self.open("one").batch() as batch:
                batch.put(self.open("other").ordered_table("t"), b"a", b"1")
        self.assertIn("other", str(raised.exception))

    def test_a_store_without_a_journal_has_no_tables(self):
        with self.assertRaises(entresol.Error) as raised:
            self.open(ordered_tables=None).ordered_table("t")
        self.assertIn("journal", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
