"""Every error that wardround raises on purpose.

Each message says what was wrong, with which file or id, and what to do. The command
line prints the message alone and exits with the class's ``exit_code``.
"""


class WardroundError(Exception):
    """Base of all errors a caller may want to catch.

    Attributes:
        exit_code: the command line's exit status for this kind of error.
    """

    exit_code = 1


class SettingsError(WardroundError):
    """An unknown key or an impossible value in a settings file, the environment or a call."""

    exit_code = 3


class InputError(WardroundError):
    """A file, a record or a text that cannot be read as what it should be."""

    exit_code = 4


class IndexStoreError(WardroundError):
    """An index that is missing, damaged, locked, or built for another model or tokeniser."""

    exit_code = 5


class ModelError(WardroundError):
    """An embedder or language model that cannot be loaded or does not answer."""

    exit_code = 6


class PrivacyError(WardroundError):
    """An operation that patient privacy forbids as things are set."""

    exit_code = 7
