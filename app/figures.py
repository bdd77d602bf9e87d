"""The figures of what runs beside requests: jobs, webhooks, schedules, housekeeping.

The first part of the settings, read as they are (`settings.py`).
"""

import ipaddress
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
_TIMES_MAX: Final[Mapping[str, int]] = {
    "days": 36_500,
    "hours": 24 * 36_500,
    "minutes": 60 * 24 * 366,
    "s": 60 * 60 * 24 * 366,
    "ms": 1_000 * 60 * 60 * 24,
}
"""By the last word of a setting's name: what no calendar, clock or call of the kernel overruns."""


class Figures(BaseModel):
    """How much, how often, how long; frozen, complete and valid once it exists."""

    model_config = ConfigDict(
        defer_build=True,  # this part is never built by itself
        allow_inf_nan=False,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        validate_default=True,
    )

    job_poll_s: float = Field(default=1.0, gt=0)
    """Seconds between two looks for work that is due, should no bell ring before."""
    job_look_s: float = Field(default=30.0, gt=0)
    """Seconds between two looks at a store whose handles are closed, for others' leavings."""
    stale_looks_max: int = Field(default=5, ge=1)
    """Such looks in a second, of jobs, deliveries and schedules each: opening a store is dear."""
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
    job_bytes_max: int = Field(default=64 * KIB, ge=1)
    """Bytes of a job's payload, and of its result."""
    job_wait_s: int = Field(default=30, ge=0)
    """Seconds that a program may wait for a job to claim."""

    webhook_networks: tuple[str, ...] = ()
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
    deliveries_per_store: int = Field(default=8, ge=1)
    """Of these, most of one store, so that none waits for another's; of the slow ones likewise."""
    deliveries_per_subscriber: int = Field(default=4, ge=1)
    """Of these, most to one subscriber, so that a slow one holds up no other."""
    delivery_slow_s: float = Field(default=1.0, gt=0)
    """Seconds after which a try is a slow one, and no more among those at once."""
    deliveries_slow_at_once: int = Field(default=64, ge=1)
    """Deliveries to slow subscribers that a worker begins beside them."""
    delivery_timeout_s: float = Field(default=10.0, gt=0)
    """Seconds that one try of a delivery may take in all."""
    delivery_lease_s: float = Field(default=60.0, gt=0)
    """Seconds after which a try whose process died is made again; longer than a try can be."""
    delivery_retries_s: tuple[float, ...] = (
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
    breaker_pauses_s: tuple[float, ...] = (30, 120, 600, 1_800)
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
    approval_days: int = Field(default=7, ge=1)
    """Days that a member has to decide what an agent asked to write."""
    approval_kept_days: int = Field(default=90, ge=1)
    """Days that the notice of such a decision is kept."""
    approvals_waiting_max: int = Field(default=100, ge=1)
    """Writes of a member's agents that may wait for a decision at once."""
    session_kept_days: int = Field(default=30, ge=1)
    """Days that ended sessions, and invitations that are over, are kept on record."""
    access_log_days: int = Field(default=365, ge=1)
    """Days that a store keeps who opened it."""
    operation_days: int = Field(default=90, ge=1)
    """Days that operations that are over are kept on record, with their steps."""
    versions_thin_hours: int = Field(default=24, ge=1)
    """Hours after which only the first version of each hour is kept of a note."""
    versions_bytes_max: int = Field(default=50 * MIB, ge=1)
    """Bytes of versions in a store, past which the oldest go."""

    @field_validator("*")
    @classmethod
    def _check_time(cls, value: object, info: ValidationInfo) -> object:
        most = _TIMES_MAX.get((info.field_name or "").rpartition("_")[2])
        if most is not None and isinstance(value, int | float) and value > most:
            message = f"at most {most:,}"
            raise ValueError(message)
        return value

    @field_validator("webhook_networks", "delivery_retries_s", "breaker_pauses_s", mode="before")
    @classmethod
    def _split_list(cls, value: object) -> object:
        return split_list(value)

    @field_validator("delivery_retries_s", "breaker_pauses_s")
    @classmethod
    def _check_pauses(cls, pauses: tuple[float, ...]) -> tuple[float, ...]:
        if not pauses or min(pauses) <= 0:
            message = "seconds, each more than 0, separated by commas"
            raise ValueError(message)
        return pauses

    @field_validator("webhook_networks")
    @classmethod
    def _check_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        return networks_of(networks)


def split_list(value: object) -> object:
    """A text as the words between its commas; anything else as it is."""
    return value.replace(",", " ").split() if isinstance(value, str) else value


def networks_of(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Networks in their canonical form.

    Raises:
        ValueError: One is none.
    """  # noqa: DOC201 - said in the first line
    try:
        return tuple(str(ipaddress.ip_network(text)) for text in texts)
    except ValueError:
        message = "IP networks such as 10.0.0.0/8, separated by commas"
        raise ValueError(message) from None
