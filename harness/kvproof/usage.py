"""What a user got wrong."""


class BadUsage(Exception):
    """A wrong flag, name, file or combination: one sentence for standard error, and exit status 2."""
