"""One process at a time: a lock on a file, which the kernel releases when its holder dies."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from beliefscope.store.layout import is_file


class Busy(ValueError):
    """Another process holds the lock."""

    def __init__(self, path: Path):
        super().__init__(
            f"one process at a time works on a piece, but another one holds {path}; wait for it, or stop it and repeat."
        )
        self.path = path

    def __reduce__(self):
        return Busy, (self.path,)


def make_once(held: Path, result: Path, make: Callable[[], None]) -> None:
    """Under the lock `held`, call `make`, which writes the file `result`, unless the file exists."""
    with lock(held):
        if not is_file(result):
            make()


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock, or raise `Busy`. The file is gone afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _acquire(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # while the lock is held, so that nobody else's file is removed
            path.unlink()
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last holder may have removed the file between our opening and our locking it.
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except FileNotFoundError:
            pass
        except BlockingIOError as error:
            os.close(descriptor)
            raise Busy(path) from error
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
