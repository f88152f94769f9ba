"""`DIR/manifest.json`: with what, where and when the runs of a folder were made. Nothing in it enters any result."""

import datetime
import functools
import importlib.metadata
import platform
import subprocess
from pathlib import Path

from beliefscope.store.files import Damaged, read_record, write_record
from beliefscope.store.layout import StudyFiles, is_there
from beliefscope.store.records import checked
from beliefscope.store.schema import Manifest

_PACKAGES = ("beliefscope", "jax", "jaxlib", "equinox", "optax", "numpy")


@functools.cache
def made_with() -> dict[str, str | None]:
    """What every result says about how it was made: versions, revision and device, neither a time nor a host."""
    import jax

    versions = {name: _version(name) for name in ("beliefscope", "jax")}
    return {**versions, "revision": _revision(), "device": jax.devices()[0].device_kind}


def write_manifest(folder: Path, device: str) -> None:
    """Add this call, whose work is done on `device`, to the folder's manifest."""
    file = StudyFiles(folder).manifest
    try:
        calls = checked(file, read_record(file), Manifest)["calls"] if is_there(file) else []
    except Damaged:  # it tells of the past, and must not stand in the way of the work
        file.replace(file.with_name("manifest.damaged.json"))
        calls = []
    calls.append(
        {
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "versions": {name: _version(name) for name in _PACKAGES},
            "revision": _revision(),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "device": device,
        }
    )
    write_record(file, {"calls": calls})


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _revision() -> str | None:
    """The commit of a checkout of beliefscope, `+changes` if it was changed since; None for an installed package."""
    place = ["git", "-C", str(Path(__file__).parent)]
    command = [*place, "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+changes"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
