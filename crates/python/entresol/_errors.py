"""What can go wrong: each sentence says what, where, expected, found."""


class Error(Exception):
    """A store could not be opened, used or closed."""


class FullError(Error):
    """No room: writes are refused until something is removed. Reads and removes go on."""


class BusyError(Error):
    """Too much waits already: try again once some is done."""


class ClosedError(Error):
    """The store was closed: open it again."""


class PoisonedError(Error):
    """A write or sync failed: only reads go on until the store is opened again."""


class CorruptError(Error):
    """The bytes on the device are not what was written."""


class InvalidError(Error, ValueError):
    """A key, value or option outside its limits."""


class IncompatibleError(Error):
    """The device holds something else, or another version of it."""


class WrongKeyError(Error):
    """The encryption key is missing, or not the store's."""


class DeviceError(Error, OSError):
    """The device is in use, foreign or absent, or it failed."""


class RefusedError(Error):
    """A condition of a batch does not hold: nothing was written."""


# As its users write them.
for _error in list(globals().values()):
    if isinstance(_error, type):
        _error.__module__ = "entresol"
del _error
