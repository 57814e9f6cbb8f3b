from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Optional, TypeVar, Union, final, overload

_Bytes = Union[bytes, bytearray, memoryview]
_Path = Union[str, PathLike[str]]
_Pairs = Union[Mapping[Any, _Bytes], Iterable[tuple[_Bytes, _Bytes]]]
_D = TypeVar("_D")
_O = TypeVar("_O", bound="Opened")

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

__version__: str

@final
class Entry:
    """An entry with what belongs to it."""

    @property
    def value(self) -> bytes: ...
    @property
    def version(self) -> int:
        """The number of the put that wrote it."""
    @property
    def expires(self) -> Optional[float]:
        """Seconds since 1970; None: it has no end by a moment."""

class Space:
    """A table of entries in a store, found by their keys of 1 byte to 64 KiB."""

    @overload
    def get(self, key: _Bytes) -> Optional[bytes]: ...
    @overload
    def get(self, key: _Bytes, default: _D) -> Union[bytes, _D]: ...
    def entry(self, key: _Bytes) -> Optional[Entry]:
        """The value of a key with its version and end."""
    def get_many(self, keys: Iterable[_Bytes]) -> list[Optional[bytes]]:
        """The values of several keys, read side by side."""
    def put(
        self,
        key: _Bytes,
        value: _Bytes,
        *,
        ttl: Optional[float] = None,
        idle: Optional[int] = None,
        if_absent: bool = False,
        if_present: bool = False,
        if_version: Optional[int] = None,
        durability: Optional[str] = None,
    ) -> Optional[int]:
        """Puts an entry; its version, or None where the condition does not hold.

        It ends `ttl` seconds from now, or once it was neither read nor written for `idle` seconds.
        """
    def put_many(
        self,
        pairs: _Pairs,
        *,
        ttl: Optional[float] = None,
        idle: Optional[int] = None,
        if_absent: bool = False,
        if_present: bool = False,
        durability: Optional[str] = None,
    ) -> int:
        """Puts entries side by side; how many were put. Each is put on its own."""
    def remove(self, key: _Bytes, *, if_version: Optional[int] = None) -> bool:
        """Removes an entry; whether it was there, and of that version if one is given."""
    def touch(
        self, key: _Bytes, *, ttl: Optional[float] = None, idle: Optional[int] = None
    ) -> bool:
        """Gives an entry another end, or none; whether there is such an entry."""
    def count(self) -> int:
        """How many entries there are, expired ones that nobody has found yet included."""
    def clear(self) -> None:
        """Removes all entries."""
    def items(self) -> Items[tuple[bytes, bytes]]:
        """Keys and values in no order, read a thousand a call."""
    def keys(self) -> Items[bytes]:
        """Keys in no order."""
    def __iter__(self) -> Iterator[bytes]: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __getitem__(self, key: _Bytes, /) -> bytes: ...
    def __setitem__(self, key: _Bytes, value: _Bytes, /) -> None: ...
    def __delitem__(self, key: _Bytes, /) -> None: ...

class Opened(Space):
    """What a store and a cache have both. Its own operations are on its space 0."""

    def space(self, number: int) -> Space:
        """Another table of entries, 0 to 65535. It needs not be made."""
    def sync(self) -> None:
        """All that was acknowledged survives a power loss on return."""
    def statistics(self) -> dict[str, Any]:
        """Figures since the store was opened, each with its unit in its name."""
    def close(self) -> None:
        """Finishes what was begun, syncs, and makes the next opening fast."""
    @property
    def closed(self) -> bool: ...
    def __enter__(self: _O) -> _O: ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        raised: Optional[BaseException],
        trace: Optional[TracebackType],
        /,
    ) -> bool: ...

@final
class Store(Opened):
    """A store: it loses no acknowledged entry, within its durability; when full it refuses."""

    @classmethod
    def open(
        cls,
        path: Union[_Path, list[_Path], tuple[_Path, ...]],
        *,
        capacity: Optional[int] = None,
        memory: Optional[int] = None,
        cached: Optional[int] = None,
        durability: Optional[str] = "process",
        ordered_tables: Optional[int] = None,
        waiting_changes: Optional[int] = None,
        absent_key_bits: Optional[int] = None,
        compression: Optional[str] = "none",
        encryption_key: Optional[Union[bytes, str]] = None,
        write_mode: Optional[str] = "through",
        shards: Optional[int] = None,
        segment: Optional[int] = None,
        buffer_directory: Optional[_Path] = None,
        mode: Optional[str] = "open",
    ) -> Store:
        """Opens the store at a path, or makes it; recovers after a crash.

        `capacity`, `memory`, `ordered_tables` and all other sizes are bytes.
        """
    def ordered_table(self, name: str, *, counted: bool = False) -> OrderedTable:
        """The ordered table of a name. It comes into being with its first row."""
    def table_figures(self) -> dict[Union[str, bytes], dict[str, Any]]:
        """Figures of each ordered table in memory by its name, since it came there.

        A name that is no text, which another program gave, is bytes.
        """
    def batch(self, *, durability: Optional[str] = None) -> Batch:
        """A batch of changes of ordered tables, which become durable together."""

@final
class Cache(Opened):
    """A cache: it may lose any entry at any time to make room; it never returns an older one."""

    @classmethod
    def open(
        cls,
        path: Union[_Path, list[_Path], tuple[_Path, ...]],
        *,
        capacity: Optional[int] = None,
        memory: Optional[int] = None,
        cached: Optional[int] = None,
        durability: Optional[str] = "process",
        compression: Optional[str] = "none",
        encryption_key: Optional[Union[bytes, str]] = None,
        write_mode: Optional[str] = "through",
        shards: Optional[int] = None,
        segment: Optional[int] = None,
        buffer_directory: Optional[_Path] = None,
        mode: Optional[str] = "open",
        write_budget: Optional[int] = None,
    ) -> Cache:
        """Opens the cache at a path, or makes it."""

@final
class OrderedTable:
    """Rows in the order of their keys of 1 byte to 2 KiB, compared as bytes without a sign."""

    @property
    def name(self) -> str: ...
    @property
    def counted(self) -> bool: ...
    @overload
    def get(self, key: _Bytes) -> Optional[bytes]: ...
    @overload
    def get(self, key: _Bytes, default: _D) -> Union[bytes, _D]: ...
    def get_many(self, keys: Iterable[_Bytes]) -> list[Optional[bytes]]:
        """The values of several rows, read side by side."""
    def put(self, key: _Bytes, value: _Bytes, *, durability: Optional[str] = None) -> None: ...
    def put_many(self, pairs: _Pairs, *, durability: Optional[str] = None) -> int:
        """Puts rows, not all or none; how many. A batch is for all or none."""
    def remove(self, key: _Bytes, *, durability: Optional[str] = None) -> None:
        """Removes a row, if it is there."""
    def scan(
        self,
        low: Optional[_Bytes] = None,
        high: Optional[_Bytes] = None,
        *,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Rows:
        """Rows from `low` on and below `high`, in the order of their keys or against it."""
    def count(self, low: Optional[_Bytes] = None, high: Optional[_Bytes] = None) -> int:
        """How many rows a counted table has from `low` on and below `high`."""
    def clear(self) -> None:
        """Removes all rows."""
    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    def __contains__(self, key: object, /) -> bool: ...
    def __getitem__(self, key: _Bytes, /) -> bytes: ...
    def __setitem__(self, key: _Bytes, value: _Bytes, /) -> None: ...
    def __delitem__(self, key: _Bytes, /) -> None: ...

@final
class Batch:
    """Changes of ordered tables that become durable together, if all conditions hold.

    As a context manager it writes them at the end, unless something was raised, and raises
    `RefusedError` where a condition does not hold. For one thread at a time.
    """

    def put(self, table: OrderedTable, key: _Bytes, value: _Bytes) -> None: ...
    def remove(self, table: OrderedTable, key: _Bytes) -> None: ...
    def if_absent(self, table: OrderedTable, key: _Bytes) -> None: ...
    def if_present(self, table: OrderedTable, key: _Bytes) -> None: ...
    def if_value(self, table: OrderedTable, key: _Bytes, value: _Bytes) -> None: ...
    def write(self) -> bool:
        """Writes the changes, if all conditions hold; whether they do.

        It is empty then. Where something is raised it keeps what it has.
        """
    def __len__(self) -> int: ...
    def __enter__(self) -> Batch: ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        raised: Optional[BaseException],
        trace: Optional[TracebackType],
        /,
    ) -> bool: ...

_I = TypeVar("_I")

@final
class Items(Iterator[_I]):
    """Entries of a space. For one thread at a time."""

    def __iter__(self) -> Items[_I]: ...
    def __next__(self) -> _I: ...

@final
class Rows(Iterator[tuple[bytes, bytes]]):
    """Rows of a scan. For one thread at a time."""

    def __iter__(self) -> Rows: ...
    def __next__(self) -> tuple[bytes, bytes]: ...

class Error(Exception): ...
class FullError(Error): ...
class BusyError(Error): ...
class ClosedError(Error): ...
class PoisonedError(Error): ...
class CorruptError(Error): ...
class InvalidError(Error, ValueError): ...
class IncompatibleError(Error): ...
class WrongKeyError(Error): ...
class DeviceError(Error, OSError): ...
class RefusedError(Error): ...
