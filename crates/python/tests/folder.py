"""A folder of stores that goes with its test."""

import pathlib
import tempfile
import unittest

import entresol

MIB = 1 << 20
SMALL = {"capacity": 64 * MIB, "memory": 64 * MIB}
TABLES = {**SMALL, "ordered_tables": 8 * MIB}


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="entresol-python-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def open(self, name="data", **options):
        store = entresol.Store.open(self.folder / name, **{**TABLES, **options})
        self.addCleanup(store.close)
        return store
