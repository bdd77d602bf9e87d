"""Archives as persons, tools and attackers make them."""

import io
import json
import struct
import zipfile
import zlib
from typing import Final

from app.bridge.content import archive_form as form
from app.bridge.content.archive_reading import Archive, Bounds

BOUNDS: Final = Bounds(note_bytes_max=4 << 20, text_bytes_max=64 << 20)


def opened(raw: bytes) -> Archive:
    """An archive looked through, to its last byte."""
    archive = Archive(io.BytesIO(raw), len(raw), BOUNDS)
    archive.verify()
    return archive


def zipped(
    *entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """An archive as a person packs one."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return out.getvalue()


def with_mode(name: str, mode: int) -> zipfile.ZipInfo:
    """An entry of another kind than a file."""
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def raw_name(name: bytes) -> bytes:
    """An archive with a name that no library would write: of eight bytes."""
    assert len(name) == 8
    return zipped(("PATH.EXT", b"text")).replace(b"PATH.EXT", name)


def patched(raw: bytes, mark: bytes, at: int, form_: str, *values: int) -> bytes:
    """An archive of which the last head with this mark says something else."""
    place = raw.rindex(mark) + at
    packed = struct.pack(form_, *values)
    return raw[:place] + packed + raw[place + len(packed) :]


LOCAL: Final = b"PK\x03\x04"
CENTRAL: Final = b"PK\x01\x02"
END: Final = b"PK\x05\x06"
ONE: Final = zipped(("a.md", b"some text, some text"))
PLAIN: Final = zipped(("a.md", b"0123456789"), method=zipfile.ZIP_STORED)


def both(raw: bytes, local_at: int, central_at: int, form_: str, value: int) -> bytes:
    """The same said by an entry's own head and by the directory."""
    return patched(patched(raw, LOCAL, local_at, form_, value), CENTRAL, central_at, form_, value)


def quoted() -> bytes:
    """Two entries of the same bytes: the second head says where the first one's lie."""
    raw = bytearray(zipped(("a.md", b"x" * 50), ("b.md", b"y"), method=zipfile.ZIP_STORED))
    first, second = raw.index(CENTRAL), raw.rindex(CENTRAL)
    raw[second + 42 : second + 46] = raw[first + 42 : first + 46]
    raw[second : second + 46 + 4] = raw[first : first + 46 + 4]
    return bytes(raw)


def lies_in_text() -> bytes:
    """An entry whose bytes hold the head of another."""
    inner = zipped(("in.md", b"inner"), method=zipfile.ZIP_STORED)
    head = inner[: inner.index(CENTRAL)]
    raw = bytearray(zipped(("in.md", head), method=zipfile.ZIP_STORED))
    record = bytearray(inner[inner.index(CENTRAL) : inner.index(END)])
    record[42:46] = struct.pack("<L", raw.index(head))
    at = raw.index(CENTRAL)
    directory = raw[at : raw.index(END)].replace(b"in.md", b"on.md") + record
    raw = bytearray(raw[:at].replace(b"in.md", b"on.md", 1))
    end = struct.pack("<4s4H2LH", END, 0, 0, 2, 2, len(directory), len(raw), 0)
    return bytes(raw + directory + end)


def packed_as(packed: bytes, text: bytes, name: bytes = b"a.md") -> bytes:
    """One entry of these bytes, which is said to be this text."""
    said = (zlib.crc32(text), len(packed), len(text), len(name), 0)
    local = struct.pack("<4s5H3L2H", LOCAL, 20, 0, 8, 0, 33, *said) + name
    central = struct.pack("<4s6H3L5H2L", CENTRAL, 20, 20, 0, 8, 0, 33, *said, 0, 0, 0, 0, 0)
    body, directory = local + packed, central + name
    end = struct.pack("<4s4H2LH", END, 0, 0, 1, 1, len(directory), len(body), 0)
    return body + directory + end


def half_packed() -> bytes:
    """A manifest of which the end is missing, though all heads say the same."""
    text = b"some of it, " * 9
    return packed_as(deflated(text)[:-3], text, form.MANIFEST.encode())


def deflated(text: bytes) -> bytes:
    """A text packed, without any head."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(text) + packer.flush()


def listed(*rows: object, head: object = None, more: bytes = b"") -> bytes:
    """An archive with one note, and a manifest that says so of it."""
    first = {"form": form.FORM, "version": 1} if head is None else head
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in (first, *rows))
    return zipped(("user-memory/n.md", b"note"), (form.MANIFEST, lines + more))


ROW: Final = {
    "file": "user-memory/n.md",
    "path": "n",
    "size_bytes": 4,
    "sha256": "7d3ba6a4ca3ae1b2a5a5ef4bd4f6fbfbb2a8d4e2d5ef0dbd3f04a5d0f9b6a7c1",
}
