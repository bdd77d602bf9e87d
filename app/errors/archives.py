"""An archive of notes that cannot be taken in; nothing of it was.

No error says a name: which entry it was is told by its place in the archive's directory.
"""

from app.errors.inputs import InvalidInputError


class ArchiveError(InvalidInputError):
    """The archive is no ZIP file, or it is not whole."""

    code = "archive_unreadable"

    def __init__(self, entry: int | None = None) -> None:
        super().__init__()
        self.entry = entry
        """Its place in the archive's directory, from 1; None where no single one is at fault."""


class ArchiveDamagedError(ArchiveError):
    """An entry of the archive is not what its directory says: other bytes, or another size."""

    code = "archive_damaged"


class ArchiveOverlapError(ArchiveError):
    """Two entries of the archive lie in the same bytes."""

    code = "archive_overlap"


class ArchiveEncryptedError(ArchiveError):
    """An entry of the archive is encrypted."""

    code = "archive_encrypted"


class ArchiveMethodError(ArchiveError):
    """An entry of the archive is compressed by another method than deflate."""

    code = "archive_method"


class ArchiveKindError(ArchiveError):
    """An entry of the archive is neither a file nor a folder: a link, a device, a pipe."""

    code = "archive_kind"


class ArchiveNameError(ArchiveError):
    """A name in the archive could lead out of it, or cannot name a note."""

    code = "archive_name"


class ArchiveDuplicateError(ArchiveError):
    """Two names in the archive are the same, or differ in nothing but case or Unicode form."""

    code = "archive_duplicate"


class ArchiveBombError(ArchiveError):
    """An entry of the archive grows too much when it is unpacked."""

    code = "archive_bomb"


class ArchiveTooLargeError(ArchiveError):
    """The archive has too many entries, or one that is larger than a note, or too much in all."""

    code = "archive_too_large"


class ArchiveTextError(ArchiveError):
    """An entry of the archive is no text in UTF-8."""

    code = "archive_not_text"


class ArchiveManifestError(ArchiveError):
    """The archive's manifest does not fit to what is in it."""

    code = "archive_manifest"
