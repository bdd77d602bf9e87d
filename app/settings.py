"""The settings, and the only reader of the environment.

Each field is also a variable `STRONGROOM_<FIELD>`; an empty one counts as unset. The
command line comes first, then the environment, then the default. None of them is a
secret, so the parent may hand all of them to its workers in an argument.
"""

import ipaddress
import os
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app.errors.starting import StartError
from app.ids import UserId

PROJECT_FOLDER = Path(__file__).resolve().parent.parent
"""The folder that holds the package `app`."""

WORKERS_MAX = 64
PORT_MAX = 65_535

_OWN_PORTS = {"http": ":80", "https": ":443"}
_PREFIX = "STRONGROOM_"
_KIB = 1024
_MIB = 1024 * _KIB
_GIB = 1024 * _MIB


def _find_credential() -> Path | None:
    """The instance key that systemd hands over (systemd.exec(5), CREDENTIALS); None without."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    key = Path(folder, "instance.key") if folder else None
    return key if key and key.is_file() else None


class Settings(BaseSettings):
    """Everything an operator can choose; frozen, complete and valid once it exists."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        validate_default=True,
    )

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
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = ()
    """Networks whose forwarding headers count; none, for anyone can write such a header."""

    note_bytes_max: int = Field(default=4 * _MIB, ge=1)
    """Bytes of a note's body; a note is read whole."""
    json_bytes_max: int = Field(default=_MIB, ge=1)
    """Bytes of a JSON body."""
    blob_bytes_max: int = Field(default=_GIB, ge=1)
    """Bytes of a file's content; files are streamed, so memory does not bound it."""
    inline_note_bytes_max: int = Field(default=64 * _KIB, ge=0)
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
    """Seconds after which a client that takes nothing of its answer is dropped."""

    exclusive_wait_s: float = Field(default=10.0, gt=0)
    """Seconds to wait until nobody has a store open, before `store_busy`."""
    write_wait_s: float = Field(default=10.0, gt=0)
    """Seconds that a write waits for its turn, before `store_busy`."""
    stop_s: int = Field(default=15, ge=1)
    """Seconds from SIGTERM until the workers are killed; writes in flight finish within."""
    file_grace_hours: int = Field(default=24, ge=1)
    """Hours that a file's bytes are kept after the last row that held it is gone."""
    step_alert_minutes: int = Field(default=15, ge=1)
    """Minutes after which an operation that is not finished is told to the operator."""
    snapshot_days: int = Field(default=7, ge=1)
    """Days that the copy of a store from before its migration is kept."""
    janitor_s: int = Field(default=60, ge=1)
    """Seconds between two rounds of the janitor."""

    job_poll_s: float = Field(default=1.0, gt=0)
    """Seconds between two looks for work that is due, should no bell ring before."""
    job_look_s: float = Field(default=30.0, gt=0)
    """Seconds between two looks at a store whose handles are closed, for others' leavings."""
    jobs_at_once: int = Field(default=8, ge=1)
    """Jobs that a worker runs at the same time."""
    jobs_per_store: int = Field(default=2, ge=1)
    """Of these, most of one store, so that none waits for another's."""
    job_lease_s: int = Field(default=300, ge=1)
    """Seconds that a claim holds; renewed at a third of it while its job runs."""
    job_attempts: int = Field(default=10, ge=1)
    """Tries before a job is dead, unless it names its own number."""
    job_backoff_max_s: int = Field(default=600, ge=1)
    """Seconds between two tries at most; the first ones are 2, 4, 8 at most."""
    job_done_days: int = Field(default=7, ge=1)
    """Days that done and cancelled jobs are kept."""
    job_dead_days: int = Field(default=90, ge=1)
    """Days that dead jobs are kept."""
    job_bytes_max: int = Field(default=64 * _KIB, ge=1)
    """Bytes of a job's payload, and of its result."""
    job_wait_s: int = Field(default=30, ge=0)
    """Seconds that a program may wait for a job to claim."""

    webhook_networks: Annotated[tuple[str, ...], NoDecode] = ()
    """Private networks that webhooks may reach, in clear too; else only what is public, by TLS."""
    webhooks_max: int = Field(default=50, ge=1)
    """Webhooks that a member may have in each home."""
    webhook_secret_hours: int = Field(default=24, ge=0)
    """Hours for which a webhook's old secret signs as well after a new one was made."""
    delivery_poll_s: float = Field(default=1.0, gt=0)
    """Seconds between two looks for deliveries that are due, should no bell ring before."""
    delivery_look_s: float = Field(default=10.0, gt=0)
    """Seconds between two looks at a member's store, for what another process left."""
    deliveries_at_once: int = Field(default=16, ge=1)
    """Deliveries that a worker sends at the same time; the last of them are for who has none."""
    deliveries_per_subscriber: int = Field(default=4, ge=1)
    """Of these, most to one subscriber, so that a slow one holds up no other."""
    delivery_timeout_s: float = Field(default=10.0, gt=0)
    """Seconds that one try of a delivery may take in all."""
    delivery_lease_s: float = Field(default=60.0, gt=0)
    """Seconds after which a try whose process died is made again; longer than a try can be."""
    delivery_retries_s: Annotated[tuple[float, ...], NoDecode] = (
        5, 30, 120, 600, 3_600, 21_600, 86_400,
    )  # fmt: skip
    """Seconds between a delivery's tries; after the last of them it is dead."""
    delivery_jitter: float = Field(default=0.2, ge=0, lt=1)
    """Share by which each of these pauses is longer or shorter, by chance."""
    delivered_days: int = Field(default=7, ge=1)
    """Days that a delivery is kept after it has ended."""
    delivery_dead_days: int = Field(default=90, ge=1)
    """Days that a dead delivery is kept."""
    breaker_failures: int = Field(default=5, ge=1)
    """Failures of a connection in a row after which its breaker opens."""
    breaker_pauses_s: Annotated[tuple[float, ...], NoDecode] = (30, 120, 600, 1_800)
    """Seconds before each probe of an open breaker; the last one for every further."""
    breaker_alert_s: float = Field(default=3_600, gt=0)
    """Seconds after which a breaker that is still open is told, once."""

    schedule_late_s: int = Field(default=60, ge=2)
    """Seconds after which a tick that nobody settled counts as missed."""
    schedule_catch_up_max: int = Field(default=100, ge=1)
    """Missed ticks that still run where a schedule catches up all of them."""
    schedule_run_days: int = Field(default=90, ge=1)
    """Days that runs and skips of schedules are kept."""
    housekeeping_s: int = Field(default=3_600, ge=1)
    """Seconds between two rounds of housekeeping in a store."""
    housekeeping_lease_s: int = Field(default=600, ge=1)
    """Seconds after which another process may take a round over from one that is silent."""
    housekeeping_batch: int = Field(default=500, ge=1)
    """Rows that one transaction of housekeeping removes."""
    session_kept_days: int = Field(default=30, ge=1)
    """Days that ended sessions, and invitations that are over, are kept on record."""
    access_log_days: int = Field(default=365, ge=1)
    """Days that a store keeps who opened it."""
    operation_days: int = Field(default=90, ge=1)
    """Days that operations that are over are kept on record, with their steps."""
    versions_thin_hours: int = Field(default=24, ge=1)
    """Hours after which only the first version of each hour is kept of a note."""
    versions_bytes_max: int = Field(default=50 * _MIB, ge=1)
    """Bytes of versions in a store, past which the oldest go."""

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
        url = urlsplit(text)
        origin = f"{url.scheme}://{url.netloc}".lower()
        is_origin = text.lower() in {origin, f"{origin}/"} and "@" not in url.netloc
        if url.scheme not in {"http", "https"} or not url.hostname or not is_origin:
            message = "an origin such as https://strongroom.example, without a path"
            raise ValueError(message)
        # Browsers leave the scheme's own port out of Host and Origin.
        return origin.removesuffix(_OWN_PORTS[url.scheme])

    @field_validator(
        "trusted_proxies",
        "webhook_networks",
        "delivery_retries_s",
        "breaker_pauses_s",
        mode="before",
    )
    @classmethod
    def _split_list(cls, value: object) -> object:
        return value.replace(",", " ").split() if isinstance(value, str) else value

    @field_validator("delivery_retries_s", "breaker_pauses_s")
    @classmethod
    def _check_pauses(cls, pauses: tuple[float, ...]) -> tuple[float, ...]:
        if not pauses or min(pauses) <= 0:
            message = "seconds, each more than 0, separated by commas"
            raise ValueError(message)
        return pauses

    @field_validator("trusted_proxies", "webhook_networks")
    @classmethod
    def _check_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return tuple(str(ipaddress.ip_network(network)) for network in networks)
        except ValueError:
            message = "IP networks such as 10.0.0.0/8, separated by commas"
            raise ValueError(message) from None

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
        try:
            return cls.model_validate({k: v for k, v in chosen.items() if v is not None})
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
    return f"{_PREFIX}{location[0]}".upper()
