"""The one kind of error that reading or writing a `.pomdp` file raises."""


class PomdpFileError(ValueError):
    """One sentence: the file, the line where there is one, what was expected and what was found."""
