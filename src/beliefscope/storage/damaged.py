"""What is said of a file that is not as it was written."""

from pathlib import Path


class Damaged(ValueError):
    """A stored file cannot be read, or its checksum does not fit. `path` is the file."""

    def __init__(self, path: Path, why: str):
        super().__init__(
            f"{path} is to be read as it was written, but {why}; repeat `beliefscope run`, which makes "
            "such a file again, else restore it, or delete it and repeat the command that made it."
        )
        self.path = path
        self.why = why

    def __reduce__(self):
        return Damaged, (self.path, self.why)
