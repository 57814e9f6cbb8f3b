"""Hash tables and ordered tables larger than memory, on flash, in your process.

    with entresol.Store.open("data.file", capacity=256 << 20) as store:
        store[b"greeting"] = b"hello from flash"
        print(store[b"greeting"])

The guide is docs/guides/python.md of the project.
"""

from ._engine import (
    Batch,
    Cache,
    Entry,
    Items,
    Opened,
    OrderedTable,
    Rows,
    Space,
    Store,
    __version__,
)
from ._errors import (
    BusyError,
    ClosedError,
    CorruptError,
    DeviceError,
    Error,
    FullError,
    IncompatibleError,
    InvalidError,
    PoisonedError,
    RefusedError,
    WrongKeyError,
)

__all__ = [
    "Batch",
    "BusyError",
    "Cache",
    "ClosedError",
    "CorruptError",
    "DeviceError",
    "Entry",
    "Error",
    "FullError",
    "IncompatibleError",
    "InvalidError",
    "Items",
    "Opened",
    "OrderedTable",
    "PoisonedError",
    "RefusedError",
    "Rows",
    "Space",
    "Store",
    "WrongKeyError",
    "__version__",
]
