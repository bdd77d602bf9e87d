"""The settings, and the only reader of the environment.

Each field is also a variable `STRONGROOM_<FIELD>`; an empty one counts as unset. The
command line comes first, then the environment, then the default. None of them is a
secret, so a parent may hand all of them to its workers as they are.
"""

import os
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from app.errors.starting import StartError
from app.figures import GIB, KIB, MIB, Figures, networks_of, split_list
from app.ids import UserId
from app.project import PROJECT_FOLDER

ENV_PREFIX: Final = "STRONGROOM_"
"""What the name of every variable begins with."""
WORKERS_MAX = 64
PORT_MAX = 65_535

_OWN_PORTS = {"http": ":80", "https": ":443"}


def _find_credential() -> Path | None:
    """The instance key that systemd hands over (systemd.exec(5), CREDENTIALS); None without."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    key = Path(folder, "instance.key") if folder else None
    return key if key and key.is_file() else None


class Settings(Figures):
    """Everything an operator can choose; frozen, complete and valid once it exists."""

    root: Path = PROJECT_FOLDER
    """Folder of the service's data; by default the project's, wherever the caller stands."""
    host: str = Field(default="127.0.0.1", min_length=1)
    """Name or address to listen on; only this box, for TLS is a proxy's work."""
    port: int = Field(default=8321, ge=0, le=PORT_MAX)
    """TCP port; 0 takes any free one, which the log then names."""
    workers: int = Field(default=1, ge=1, le=WORKERS_MAX)
    """Worker processes; one serves a small group on any box."""
    instance_key_file: Path | None = Field(default_factory=_find_credential)
    """File of the instance key; a systemd credential if there is one, else in the root."""
    public_url: str | None = None
    """Origin that clients see; None when they come straight to `host` and `port`."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks whose forwarding headers count; none, for anyone can write such a header."""

    note_bytes_max: int = Field(default=4 * MIB, ge=1)
    """Bytes of a note's body; a note is read whole."""
    json_bytes_max: int = Field(default=MIB, ge=1)
    """Bytes of a JSON body."""
    member_bytes_max: int = Field(default=10 * GIB, ge=1)
    """Bytes of a member's store and files, unless an administrator gives them a quota of theirs."""
    group_bytes_max: int = Field(default=50 * GIB, ge=1)
    """Bytes of system.db and the group's files."""
    notes_max: int = Field(default=50_000, ge=1, le=60_000)
    """Notes that a store has at most; as many as an archive can bring back."""
    archive_bytes_max: int = Field(default=256 * MIB, ge=1)
    """Bytes of an archive of notes that is taken in."""
    archive_text_bytes_max: int = Field(default=GIB, ge=1)
    """Bytes of all that is in such an archive, unpacked."""
    context_bytes_max: int = Field(default=256 * KIB, ge=1)
    """Bytes of all texts that one context has, for a prompt."""
    prompt_bytes_max: int = Field(default=MIB, ge=1)
    """Bytes of a prompt that was filled in."""
    blob_bytes_max: int = Field(default=GIB, ge=1)
    """Bytes of a file's content; files are streamed, so memory does not bound it."""
    inline_note_bytes_max: int = Field(default=64 * KIB, ge=0)
    """Bytes up to which a note is read on the event loop; a thread costs more than that."""

    reader_threads: int = Field(default=4, ge=1)
    """Threads of a worker that read stores."""
    writer_threads: int = Field(default=2, ge=1)
    """Threads of a worker that write stores; more only wait for each other's fsync."""
    writer_nice: int = Field(default=5, ge=0, le=19)
    """Niceness of the writer threads; reads meanwhile +57 %, writes -33 % on a full core."""
    commit_batch_max: int = Field(default=64, ge=1)
    """Queued writes of one store that may share a commit."""
    commit_slice_ms: int = Field(default=50, ge=1)
    """Milliseconds after which a batch lets other processes write."""
    handle_budget: int | None = Field(default=None, ge=1)
    """File descriptors for open stores in a worker; None computes it from RLIMIT_NOFILE."""
    generation_poll_ms: int = Field(default=100, ge=1)
    """Milliseconds between two looks at the generations of the stores."""

    idle_lock_s: int = Field(default=900, ge=1)
    """Seconds without use after which a store is locked."""
    session_days: int = Field(default=30, ge=1)
    """Days that a session lives."""
    cookie_idle_hours: int = Field(default=12, ge=1)
    """Hours without use after which a session by cookie ends."""
    token_days: int = Field(default=90, ge=1)
    """Days that an API token lives unless its maker says otherwise."""
    token_days_max: int = Field(default=365, ge=1)
    """Days that an API token can live at most."""
    invitation_hours: int = Field(default=72, ge=1)
    """Hours that an invitation can be accepted."""
    reauthentication_s: int = Field(default=300, ge=1)
    """Seconds for which a checked password counts as recent."""
    last_seen_every_s: int = Field(default=300, ge=1)
    """Seconds between two records of a session's use; each is a write."""
    idempotency_hours: int = Field(default=24, ge=1)
    """Hours that a request's answer is kept for its `Idempotency-Key`."""
    idempotency_answer_bytes_max: int = Field(default=65_536, ge=0)
    """Bytes of such an answer that are kept; of a larger one only that it was given."""

    event_days: int = Field(default=90, ge=1)
    """Days that events are kept in the group's store; a member prunes their own."""
    event_page_max: int = Field(default=1_000, ge=1)
    """Events that a page can have at most."""
    event_look_ms: int = Field(default=200, ge=1)
    """Milliseconds between two looks of a stream: at its rights, and at others' commits."""
    event_heartbeat_s: float = Field(default=15.0, gt=0)
    """Seconds without an event after which a stream sends a comment, so that nobody closes it."""
    event_streams_max: int = Field(default=256, ge=1)
    """Streams of events that a worker has open at once."""
    event_streams_each: int = Field(default=8, ge=1)
    """Streams of events that one member has open in a worker at once."""
    audit_field_days: int = Field(default=365, ge=1)
    """Days that the record of changes keeps which fields were changed, and how."""
    stall_s: float = Field(default=30.0, gt=0)
    """Seconds until a client is dropped that takes nothing of its answer, or gives no more."""

    exclusive_wait_s: float = Field(default=10.0, gt=0)
    """Seconds to wait until nobody has a store open, before `store_busy`."""
    write_wait_s: float = Field(default=10.0, gt=0)
    """Seconds that a write waits for its turn, before `store_busy`."""
    stop_s: int = Field(default=15, ge=1, le=3_600)
    """Seconds from SIGTERM until the workers are killed; writes in flight finish within."""
    file_grace_hours: int = Field(default=24, ge=1)
    """Hours that a file's bytes are kept after the last row that held it is gone."""
    step_alert_minutes: int = Field(default=15, ge=1)
    """Minutes after which an operation that is not finished is told to the operator."""
    snapshot_days: int = Field(default=7, ge=1)
    """Days that the copy of a store from before its migration is kept."""
    migration_kills_max: int = Field(default=3, ge=1)
    """Times that a store's migration may end its process; then it has failed with this build."""
    janitor_s: int = Field(default=60, ge=1)
    """Seconds between two rounds of the janitor."""

    metrics_address: str | None = None
    """Host and port at which `/metrics` is served without a token; None: not there."""
    metrics_token_file: Path | None = None
    """File of the token with which `/metrics` is served beside the API; None: not there."""

    @field_validator("root", "instance_key_file", "metrics_token_file")
    @classmethod
    def _make_absolute(cls, path: Path | None) -> Path | None:
        if path is None:
            return None
        try:
            str(path).encode()
        except UnicodeEncodeError:
            message = "a path in UTF-8"
            raise ValueError(message) from None
        # A worker starts in another folder than its parent.
        return path.absolute()

    @field_validator("public_url")
    @classmethod
    def _check_origin(cls, text: str | None) -> str | None:
        if text is None:
            return None
        try:
            url = urlsplit(text)
            is_port = url.port != 0
        except ValueError:  # its words repeat what was given
            url, is_port = urlsplit(""), False
        origin = f"{url.scheme}://{url.netloc}".lower()
        is_origin = is_port and text.lower() in {origin, f"{origin}/"} and "@" not in url.netloc
        if url.scheme not in {"http", "https"} or not url.hostname or not is_origin:
            message = "an origin such as https://strongroom.example, without a path"
            raise ValueError(message)
        # Browsers leave the scheme's own port out of Host and Origin.
        return origin.removesuffix(_OWN_PORTS[url.scheme])

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _split_proxies(cls, value: object) -> object:
        return split_list(value)

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        return networks_of(networks)

    @field_validator("token_days_max")
    @classmethod
    def _check_days(cls, days_max: int, info: ValidationInfo) -> int:
        if days_max < info.data.get("token_days", 0):
            message = "not under token_days"
            raise ValueError(message)
        return days_max

    @field_validator("metrics_address")
    @classmethod
    def _check_address(cls, text: str | None) -> str | None:
        if text is not None:
            host, colon, port = text.rpartition(":")
            if not (host and colon and port.isascii() and port.isdigit()):
                message = "an address such as 127.0.0.1:9321"
                raise ValueError(message)
            if int(port) > PORT_MAX:
                message = f"a port up to {PORT_MAX}"
                raise ValueError(message)
        return text

    @property
    def has_metrics(self) -> bool:
        """Whether anybody may read the counts; else none are kept."""
        return self.metrics_address is not None or self.metrics_token_file is not None

    @property
    def metrics_folder(self) -> Path:
        """Where the workers count together; emptied at each start."""
        return self.database / "metrics"

    @property
    def database(self) -> Path:
        """Folder of all run-time data; its name is a constant, not a setting."""
        return self.root / "database"

    @property
    def system_file(self) -> Path:
        """The registry's file, which is the group's store as well."""
        return self.database / "system.db"

    def user_file(self, user_id: UserId) -> Path:
        """The file of a member's store, whether or not it exists."""
        return self.database / f"{user_id}.db"

    def files_folder(self, owner_id: UserId) -> Path:
        """The folder of a store's files, whether or not it exists; the group's is `instance`."""
        return self.files_root / owner_id

    @property
    def files_root(self) -> Path:
        """The folder of those folders; absent until there is a file."""
        return self.database / "files"

    def disk_root(self, kind: str, root_id: str) -> Path:
        """The folder of a shared folder or a project, whether or not it exists."""
        return self.database / kind / root_id

    @property
    def lock_file(self) -> Path:
        """Locked exclusively by whoever serves this root; holds their process id."""
        return self.database / ".lock"

    @property
    def workers_lock_file(self) -> Path:
        """Locked shared by each worker for life."""
        return self.database / ".workers.lock"

    @property
    def stores_lock_file(self) -> Path:
        """The byte ranges that say who has which store open; never unlinked."""
        return self.database / ".stores.lock"

    @property
    def setup_token_file(self) -> Path:
        """The token that makes the first administrator; absent once there is one."""
        return self.database / "setup.token"

    @property
    def control_socket(self) -> Path:
        """Where the command line speaks to a running server."""
        return self.database / "control.sock"

    @property
    def instance_key(self) -> Path:
        """The file of the instance key, outside `database/` so that no backup contains it."""
        return self.instance_key_file or self.root / "instance.key"

    @classmethod
    def load(cls, **chosen: str | int | Path | None) -> Self:
        """Read the settings: what was chosen, else the environment, else the default.

        Args:
            chosen: Fields by name, from the command line; None means not chosen.

        Returns:
            The settings, whole and valid.

        Raises:
            StartError: A value cannot be taken; names each such field, never its value.
        """
        # Only who reads the environment waits for that library; a worker is told everything.
        from pydantic_settings import BaseSettings, SettingsConfigDict  # noqa: PLC0415

        class Read(BaseSettings, Settings):
            model_config = SettingsConfigDict(  # type: ignore[mutable-override] # it adds keys
                env_prefix=ENV_PREFIX, env_ignore_empty=True, enable_decoding=False
            )

        try:
            read = Read.model_validate({k: v for k, v in chosen.items() if v is not None})
            return cls.model_validate(dict(read))
        except ValidationError as error:
            faults = (f"{_name(fault['loc'])}: {fault['msg']}." for fault in error.errors())
            raise StartError(" ".join(faults)) from None


def share_counts(folder: Path) -> None:
    """Have the library of metrics count in files of this folder, for all workers together.

    It looks into the environment for that, once, when it is first imported.
    """
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)


def _name(location: tuple[int | str, ...]) -> str:
    """A field's variable, such as `STRONGROOM_PORT`."""
    return f"{ENV_PREFIX}{location[0]}".upper()
