"""The two things this package says to people: errors they can act on, and notices."""


class UserError(Exception):
    """Something a person can put right; the message is one sentence that says what and where."""


class CacheNotice(UserWarning):
    """A cached result was damaged and is computed again."""
