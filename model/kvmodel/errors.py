"""What the model refuses before any behaviour starts: contracts and scopes that mean nothing."""


class BadScope(ValueError):
    """A scope or a contract that no machine can be built from; the message says which field, and what would do."""
