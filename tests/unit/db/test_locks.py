"""Locks between real processes, and between the threads of one."""

import errno
import fcntl
import hashlib
import multiprocessing
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.db import locks as locks_module
from app.db.file_lock import FileLock
from app.db.locks import ROLE_DERIVATIONS, ROLE_LEADER, LockFile
from app.errors.inputs import InvalidInputError
from app.errors.starting import AlreadyServingError
from app.errors.stores import StoreBusyError

SPAWN = multiprocessing.get_context("spawn")
LONG_S = 20.0  # a deadline no healthy run meets
SHORT_S = 0.05
WRITES = 300
ENOUGH_WRITES = 50_000  # for the other to start meanwhile


@contextmanager
def _held(locks: LockFile, kind: str, number: int) -> Iterator[None]:
    """Hold a lock of the kind meanwhile."""
    if kind == "write":
        with locks.write_lock(number, LONG_S):
            yield
        return
    if kind == "shared":
        locks.acquire_shared(number)
        yield
        locks.release_shared(number)
    elif kind == "exclusive":
        locks.acquire_exclusive(number, LONG_S)
        yield
        locks.release_exclusive(number)
    else:
        assert locks.try_role(number)
        yield
        locks.release_role(number)


def _hold_in_child(path: Path, kind: str, number: int, pipe: Connection) -> None:
    locks = LockFile(path)
    with _held(locks, kind, number):
        pipe.send("held")
        pipe.recv()
    pipe.send("released")
    pipe.poll(None)  # until the other end is closed


def _hold_file_in_child(path: Path, kind: str, _number: int, pipe: Connection) -> None:
    lock = FileLock(path)
    if kind == "exclusive":
        assert lock.try_exclusive()
        lock.write_holder(os.getpid())
    else:
        lock.acquire_shared()
    pipe.send("held")
    pipe.recv()
    lock.release()
    pipe.send("released")
    pipe.poll(None)  # until the other end is closed


class Other:
    """Another process that holds a lock until told otherwise."""

    def __init__(
        self,
        path: Path,
        kind: str,
        number: int = 7,
        body: Callable[[Path, str, int, Connection], None] = _hold_in_child,
    ) -> None:
        self._pipe, theirs = SPAWN.Pipe()
        self.process: BaseProcess = SPAWN.Process(
            target=body, args=(path, kind, number, theirs), daemon=True
        )
        self.process.start()
        theirs.close()
        assert self._pipe.recv() == "held"
        self._ends_well = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._ends_well:
            self.kill()
        self._pipe.close()
        self.process.join()

    @property
    def pid(self) -> int:
        """Its number, as signals take it."""
        assert self.process.pid is not None
        return self.process.pid

    def release(self) -> None:
        """Let go of the lock, and live on until the end of the block."""
        self._pipe.send("release")
        assert self._pipe.recv() == "released"
        self._ends_well = True

    def stop(self) -> None:
        """Stop it, and return once it stands."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def kill(self) -> None:
        """End it by SIGKILL, and wait until it is gone."""
        self.process.kill()
        self.process.join()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the lock file of the test stands."""
    return tmp_path / ".stores.lock"


@pytest.fixture
def locks(path: Path) -> Iterator[LockFile]:
    """The lock file as this process has it open."""
    file = LockFile(path)
    yield file
    file.close()


@pytest.fixture
def stranger(path: Path) -> Iterator[LockFile]:
    """A second open file of the same path: to the kernel, what another process is."""
    file = LockFile(path)
    yield file
    file.close()


def _start(body: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    return thread


def _await(claim: Callable[[], bool]) -> None:
    """Yield to other threads until the claim holds."""
    pause = threading.Event()
    assert any(claim() or pause.wait(0.001) for _ in range(10_000))


def _blocked_in_kernel(path: Path) -> int:
    """How many requests for a lock of the file wait in the kernel."""
    inode = f":{path.stat().st_ino} "
    lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return sum("->" in line and inode in line for line in lines)


def _write(locks: LockFile, timeout_s: float) -> bool:
    """Take a turn and end it; True, unless it raises."""
    with locks.write_lock(7, timeout_s):
        return True


def _free(locks: LockFile, kind: str) -> bool:
    """Whether the lock of the kind could be taken at once."""
    try:
        if kind == "shared":
            locks.acquire_shared(7)
            locks.release_shared(7)
        elif kind == "exclusive":
            locks.acquire_exclusive(7, 0)
            locks.release_exclusive(7)
        elif kind == "write":
            return _write(locks, 0)
        else:
            return locks.try_role(7)
    except StoreBusyError:
        return False
    return True


# -- the file ------------------------------------------------------------------------------


def test_the_lock_file_is_private_and_stays_with_its_process(locks: LockFile, path: Path) -> None:
    """The lock file has mode 0600, holds nothing, and no child inherits its descriptor."""
    status = path.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_size) == (0o600, 0)
    assert not os.get_inheritable(locks._fd)


def test_a_link_is_no_lock_file(path: Path) -> None:
    """A symbolic link in the lock file's place is refused, not followed."""
    path.symlink_to(path.parent / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        LockFile(path)


def test_closing_another_descriptor_of_the_file_drops_nothing(
    locks: LockFile, stranger: LockFile, path: Path
) -> None:
    """Unlike POSIX locks, these outlive some other open and close of the file."""
    locks.acquire_exclusive(7, 0)
    path.read_bytes()
    assert not stranger.try_exclusive(7)


@given(
    st.lists(
        st.tuples(st.sampled_from(range(1, 7)), st.integers(0, 2**40)), min_size=2, unique=True
    )
)
def test_no_two_areas_share_a_byte(places: list[tuple[int, int]]) -> None:
    """Whatever the areas and the numbers, different locks stand on different bytes."""
    area = locks_module._AREA
    offsets = {locks_module._byte(index * area, number) for index, number in places}
    assert len(offsets) == len(places)
    assert max(offsets) < 2**63


@pytest.mark.parametrize("number", [-1, 2**40 + 1], ids=["negative", "too large"])
@pytest.mark.parametrize("kind", ["shared", "exclusive", "write", "role"])
def test_a_number_outside_the_areas_is_refused(locks: LockFile, kind: str, number: int) -> None:
    """A number that would reach into another area gives InvalidInputError."""
    with ExitStack() as stack, pytest.raises(InvalidInputError):
        stack.enter_context(_held(locks, kind, number))


def test_the_largest_number_works_in_every_area(locks: LockFile, stranger: LockFile) -> None:
    """All kinds of locks of the same largest number are held side by side, and are told apart."""
    with ExitStack() as stack:
        for kind in ("exclusive", "write", "role"):
            stack.enter_context(_held(locks, kind, 2**40))
        with _held(stranger, "exclusive", 2**40 - 1), _held(stranger, "write", 2**40 - 1):
            assert not stranger.try_exclusive(2**40)


# -- who has a store open ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theirs", "mine", "free"),
    [
        ("shared", "shared", True),
        ("shared", "exclusive", False),
        ("exclusive", "shared", False),
        ("exclusive", "exclusive", False),
        ("exclusive", "write", True),
        ("shared", "role", True),
        ("write", "write", False),
        ("write", "exclusive", True),
        ("role", "role", False),
        ("role", "write", True),
    ],
    ids=str,
)
def test_processes_exclude_each_other(
    locks: LockFile, path: Path, theirs: str, mine: str, *, free: bool
) -> None:
    """What another process holds keeps out what it must, until it lets go, and nothing else."""
    with Other(path, theirs) as other:
        assert _free(locks, mine) is free
        other.release()
        assert _free(locks, mine) or mine == "role"  # a role once taken was kept


@pytest.mark.parametrize("kind", ["shared", "exclusive", "write", "role"])
def test_a_killed_process_holds_nothing(locks: LockFile, path: Path, kind: str) -> None:
    """After kill -9 of its holder every lock is free."""
    mine = "exclusive" if kind == "shared" else kind
    with Other(path, kind) as other:
        assert not _free(locks, mine)
        other.kill()
        assert _free(locks, mine)


def test_use_of_a_store_is_told_to_other_processes(locks: LockFile, stranger: LockFile) -> None:
    """Not to the one that uses it, until it says otherwise; it keeps nobody out."""
    for _ in range(2):
        locks.note_used(7)
    assert stranger.is_used_elsewhere(7)
    assert not locks.is_used_elsewhere(7)
    assert not stranger.is_used_elsewhere(8)
    assert stranger.try_exclusive(7)
    stranger.note_used(7)
    assert locks.is_used_elsewhere(7)
    for _ in range(2):
        locks.note_unused(7)
    assert not stranger.is_used_elsewhere(7)
    stranger.close()
    assert not locks.is_used_elsewhere(7)
    stranger.note_used(7)
    assert not stranger.is_used_elsewhere(7)
    assert not locks.is_used_elsewhere(7)


def test_an_open_store_is_seen_by_all(locks: LockFile, stranger: LockFile) -> None:
    """By who has it open and by others, shared or alone, and without taking it."""
    both = (locks, stranger)
    assert [each.is_open(7) for each in both] == [False, False]
    stranger.acquire_shared(7)
    assert [each.is_open(7) for each in both] == [True, True]
    assert [each.is_open(8) for each in both] == [False, False]
    stranger.release_shared(7)
    assert [each.is_open(7) for each in both] == [False, False]
    assert locks.try_exclusive(7)
    assert [each.is_open(7) for each in both] == [True, True]
    locks.close()
    assert [each.is_open(7) for each in both] == [False, False]


def test_the_shared_lock_is_counted(locks: LockFile, stranger: LockFile) -> None:
    """Several holders in a process share one kernel lock, free with the last of them."""
    locks.acquire_shared(7)
    locks.acquire_shared(7)
    locks.release_shared(7)
    assert not stranger.try_exclusive(7)
    locks.release_shared(7)
    assert stranger.try_exclusive(7)


def test_a_refused_shared_lock_counts_for_nothing(locks: LockFile, stranger: LockFile) -> None:
    """After a refusal there is nothing to release, and the next try starts afresh."""
    stranger.acquire_exclusive(7, 0)
    with pytest.raises(StoreBusyError):
        locks.acquire_shared(7)
    with pytest.raises(RuntimeError, match="not held"):
        locks.release_shared(7)
    stranger.release_exclusive(7)
    locks.acquire_shared(7)
    assert not stranger.try_exclusive(7)


def test_a_process_excludes_itself(locks: LockFile) -> None:
    """Holders of one process, one owner to the kernel, keep each other out all the same."""
    locks.acquire_shared(7)
    assert not locks.try_exclusive(7)
    locks.release_shared(7)
    assert locks.try_exclusive(7)
    assert not locks.try_exclusive(7)
    with pytest.raises(StoreBusyError):
        locks.acquire_shared(7)
    locks.release_exclusive(7)
    locks.acquire_shared(7)


def test_a_time_out_changes_nothing(locks: LockFile, stranger: LockFile) -> None:
    """An exclusive wait that ends in StoreBusyError leaves readers as they were."""
    locks.acquire_shared(7)
    stranger.acquire_shared(7)
    with pytest.raises(StoreBusyError):
        locks.acquire_exclusive(7, SHORT_S)
    locks.acquire_shared(7)
    locks.release_shared(7)
    stranger.release_shared(7)
    assert not stranger.try_exclusive(7)
    locks.release_shared(7)
    assert stranger.try_exclusive(7)


def test_readers_do_not_starve_who_waits_for_all_of_it(locks: LockFile) -> None:
    """While an exclusive lock is waited for, readers may leave but none may come."""
    locks.acquire_shared(7)
    waiter = _start(lambda: locks.acquire_exclusive(7, LONG_S))
    _await(lambda: 7 in locks._claims)
    with pytest.raises(StoreBusyError):
        locks.acquire_shared(7)
    locks.acquire_shared(8)
    locks.release_shared(7)
    waiter.join()
    with pytest.raises(StoreBusyError):
        locks.acquire_shared(7)


def test_one_exclusive_holder_waits_for_the_other(locks: LockFile) -> None:
    """Of two threads that want a store exclusively, one has it after the other."""
    locks.acquire_exclusive(7, 0)
    waiter = _start(lambda: locks.acquire_exclusive(7, LONG_S))
    with pytest.raises(StoreBusyError):
        locks.acquire_exclusive(7, SHORT_S)
    locks.release_exclusive(7)
    waiter.join()
    assert not locks.try_exclusive(7)


@pytest.mark.parametrize("kind", ["shared", "exclusive", "role"])
def test_what_is_not_held_cannot_be_released(locks: LockFile, kind: str) -> None:
    """A release too many is a mistake in the program, and says so."""
    release = {
        "shared": locks.release_shared,
        "exclusive": locks.release_exclusive,
        "role": locks.release_role,
    }[kind]
    with pytest.raises(RuntimeError, match="not held"):
        release(7)


# -- whose turn it is ----------------------------------------------------------------------


def test_a_stopped_writer_does_not_hold_the_deadline(locks: LockFile, path: Path) -> None:
    """With the turn in a stopped process, others are busy in time, and served after it died."""
    with Other(path, "write") as other:
        other.stop()
        for _ in range(3):
            with pytest.raises(StoreBusyError):
                _write(locks, SHORT_S)
        assert locks._askers == 1
        other.kill()
        _write(locks, LONG_S)


def test_an_abandoned_wait_lets_go_of_what_it_gets(locks: LockFile, stranger: LockFile) -> None:
    """A turn that comes when nobody here wants it any more goes to whoever is next."""
    with stranger.write_lock(7, 0):
        with pytest.raises(StoreBusyError):
            _write(locks, SHORT_S)
        assert locks._askers == 1
    _await(lambda: locks._askers == 0)
    for file in (stranger, locks):
        _write(file, 0)


def test_an_abandoned_wait_never_drops_a_later_writers_turn(
    locks: LockFile, stranger: LockFile, path: Path
) -> None:
    """A later writer takes over the wait of one that gave up, and keeps what it brings."""
    with stranger.write_lock(7, 0):
        with pytest.raises(StoreBusyError):
            _write(locks, SHORT_S)
        inside, leave = threading.Event(), threading.Event()

        def write() -> None:
            with locks.write_lock(7, LONG_S):
                inside.set()
                leave.wait()

        writer = _start(write)
        _await(lambda: locks._turn(2 * locks_module._AREA + 7).wanted == 1)
        assert locks._askers == 1
        assert _blocked_in_kernel(path) == 1
    assert inside.wait(LONG_S)
    assert locks._askers == 0
    assert not _free(stranger, "write")
    leave.set()
    writer.join()
    _await(lambda: _free(stranger, "write"))


def test_writers_of_one_process_take_turns(locks: LockFile) -> None:
    """Threads of one process exclude each other, with deadlines, as processes do."""
    with locks.write_lock(7, 0), pytest.raises(StoreBusyError):
        _write(locks, SHORT_S)
    inside = 0
    most = 0

    def write() -> None:
        nonlocal inside, most
        for _ in range(20):
            with locks.write_lock(7, LONG_S):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [_start(write) for _ in range(4)]
    for thread in threads:
        thread.join()
    assert most == 1


def test_turns_of_different_stores_do_not_meet(locks: LockFile, stranger: LockFile) -> None:
    """A writer of one store does not wait for another store's."""
    with stranger.write_lock(8, 0):
        assert _write(locks, 0)


def test_a_turn_ends_with_the_error_inside_it(locks: LockFile, stranger: LockFile) -> None:
    """Whatever goes wrong in a turn, it is free afterwards."""
    with pytest.raises(ZeroDivisionError), locks.write_lock(7, 0):
        raise ZeroDivisionError
    assert _free(stranger, "write")


def test_an_interrupted_wait_passes_the_turn_on(
    locks: LockFile, stranger: LockFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn granted to a thread that is just being interrupted does not stay with it."""
    turn = locks._turn(2 * locks_module._AREA + 7)

    def interrupted(_timeout: float) -> bool:
        turn.state = locks_module._State.GRANTED
        raise KeyboardInterrupt

    with stranger.write_lock(7, 0):
        monkeypatch.setattr(turn.changed, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _write(locks, LONG_S)
    assert turn.state is locks_module._State.FREE


def test_a_kernel_error_reaches_the_writer(
    locks: LockFile, stranger: LockFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the kernel has no locks left, the writer that waited is told, and not left waiting."""
    real = fcntl.fcntl
    failing = False

    def fcntl_without_memory(fd: int, command: int, request: bytes) -> bytes:
        nonlocal failing
        if command == fcntl.F_OFD_SETLKW:
            failing = True
        if failing:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        return real(fd, command, request)

    with stranger.write_lock(7, 0):
        monkeypatch.setattr(fcntl, "fcntl", fcntl_without_memory)
        with pytest.raises(OSError, match="No locks"):
            _write(locks, LONG_S)
        monkeypatch.undo()
    _write(locks, LONG_S)


def test_without_a_thread_to_wait_nobody_is_kept_out(
    locks: LockFile, stranger: LockFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that cannot start a thread fails its own write, and holds up no other."""

    def refuse(_thread: threading.Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    with stranger.write_lock(7, 0):
        monkeypatch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="thread"):
            _write(locks, LONG_S)
        monkeypatch.undo()
    for file in (stranger, locks):
        _write(file, 0)


def _write_in_child(path: Path, busy: "Synchronized[int]", pipe: Connection) -> None:
    """Write as fast as can be, and answer how often while the other did so too."""
    locks = LockFile(path)
    with locks.write_lock(7, LONG_S):
        busy.value += 1
    mine = 0
    for _ in range(ENOUGH_WRITES):
        with locks.write_lock(7, LONG_S):
            hashlib.sha256(bytes(1 << 17)).digest()  # the write, some 0.1 ms
            mine += busy.value == 2
        if mine == WRITES or busy.value > 2:
            break
    with locks.write_lock(7, LONG_S):
        busy.value += 1
    pipe.send(mine)


def test_busy_writer_processes_share_evenly(path: Path) -> None:
    """While two processes write as fast as they can, neither is left far behind."""
    busy = SPAWN.Value("i", 0, lock=False)
    pipes, processes = [], []
    for _ in range(2):
        mine, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=_write_in_child, args=(path, busy, theirs), daemon=True)
        process.start()
        theirs.close()
        pipes.append(mine)
        processes.append(process)
    shares = [pipe.recv() for pipe in pipes]
    for process, pipe in zip(processes, pipes, strict=True):
        process.join()
        pipe.close()
    assert max(shares) == WRITES
    assert min(shares) > sum(shares) / 20  # one may have begun late; starved is a few in thousands


# -- roles ---------------------------------------------------------------------------------


def test_a_role_is_played_by_one(locks: LockFile, stranger: LockFile) -> None:
    """One holder has a role, whoever else asks, here or elsewhere; then the next."""
    assert locks.try_role(ROLE_LEADER)
    assert not locks.try_role(ROLE_LEADER)
    assert not stranger.try_role(ROLE_LEADER)
    locks.release_role(ROLE_LEADER)
    assert stranger.try_role(ROLE_LEADER)


def test_a_role_can_be_waited_for(locks: LockFile, stranger: LockFile) -> None:
    """A role that is held comes in turn; a held one times out; roles do not meet."""
    first, second = ROLE_DERIVATIONS
    with locks.role_lock(first, 0), stranger.role_lock(second, 0):
        assert not stranger.try_role(first)
        with ExitStack() as stack, pytest.raises(StoreBusyError):
            stack.enter_context(locks.role_lock(second, SHORT_S))
    with locks.role_lock(second, LONG_S):
        assert not stranger.try_role(second)


# -- the end -------------------------------------------------------------------------------


def test_closing_frees_everything_and_gives_nothing(locks: LockFile, stranger: LockFile) -> None:
    """A closed lock file holds nothing, refuses everything, and takes late releases calmly."""
    locks.acquire_shared(7)
    locks.acquire_exclusive(8, 0)
    assert locks.try_role(9)
    with locks.write_lock(7, 0):
        locks.close()
        assert _free(stranger, "write")
    locks.close()
    locks.release_shared(7)
    locks.release_exclusive(8)
    locks.release_role(9)
    assert stranger.try_exclusive(7)
    assert stranger.try_exclusive(8)
    assert stranger.try_role(9)
    assert not any(_free(locks, kind) for kind in ("shared", "exclusive", "write", "role"))
    assert not locks._turn(4 * locks_module._AREA + 9).wanted


def test_closing_ends_an_exclusive_wait(locks: LockFile) -> None:
    """Who waits for a store exclusively is told StoreBusyError when the file is closed."""
    locks.acquire_shared(7)
    refused = threading.Event()

    def wait() -> None:
        with pytest.raises(StoreBusyError):
            locks.acquire_exclusive(7, LONG_S)
        refused.set()

    _start(wait)
    _await(lambda: 7 in locks._claims)
    locks.close()
    assert refused.wait(LONG_S)


def test_closing_ends_a_writers_wait_and_its_asker(
    locks: LockFile, stranger: LockFile, path: Path
) -> None:
    """A writer that waits is refused at once; the descriptor goes when its asker is done."""
    refused = threading.Event()

    def write() -> None:
        with pytest.raises(StoreBusyError):
            _write(locks, LONG_S)
        refused.set()

    with stranger.write_lock(7, 0):
        _start(write)
        _await(lambda: _blocked_in_kernel(path) == 1)
        locks.close()
        assert refused.wait(LONG_S)
        os.fstat(locks._fd)
    _await(lambda: locks._askers == 0)
    _await(lambda: _free(stranger, "write"))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(locks._fd)


# -- whole files ---------------------------------------------------------------------------


@pytest.fixture
def lock(path: Path) -> Iterator[FileLock]:
    """The same file, as a lock on the whole of it."""
    file = FileLock(path)
    yield file
    file.close()


def test_a_second_server_learns_who_serves(lock: FileLock, path: Path) -> None:
    """The lock's holder is exclusive, says who it is, and is gone with kill -9."""
    assert lock.holder() is None
    with Other(path, "exclusive", body=_hold_file_in_child) as other:
        assert not lock.try_exclusive()
        assert lock.holder() == other.pid
        with pytest.raises(AlreadyServingError):
            lock.acquire_shared()
        other.kill()
    assert lock.acquire_exclusive(0)
    lock.write_holder(1)
    assert lock.holder() == 1
    assert path.read_bytes() == b"1\n"


def test_a_server_waits_for_the_last_worker(lock: FileLock, path: Path) -> None:
    """Workers share the lock; it is exclusive only when none of them is left."""
    with Other(path, "shared", body=_hold_file_in_child) as first:
        with Other(path, "shared", body=_hold_file_in_child):
            lock.acquire_shared()
            first.release()
            assert not lock.acquire_exclusive(SHORT_S)
        assert lock.acquire_exclusive(LONG_S)


@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"-5", b"seven", "\u0667".encode(), b"\xff\x00"],
    ids=["empty", "blank", "negative", "word", "other digits", "bytes"],
)
def test_a_text_that_is_no_process_names_none(lock: FileLock, path: Path, text: bytes) -> None:
    """Whatever stands in the file, the holder is a process or None."""
    path.write_bytes(text)
    assert lock.holder() is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(pids=st.lists(st.integers(1, 2**22), min_size=1, max_size=4))
def test_the_last_holder_written_is_the_one_read(lock: FileLock, pids: list[int]) -> None:
    """Nothing of an earlier, longer text remains."""
    for pid in pids:
        lock.write_holder(pid)
    assert lock.holder() == pids[-1]


def test_a_released_file_is_free_and_can_be_taken_again(lock: FileLock, path: Path) -> None:
    """Release frees the lock, close ends it, and both may come twice."""
    other = FileLock(path)
    assert lock.try_exclusive()
    lock.release()
    assert other.try_exclusive()
    other.close()
    assert lock.try_exclusive()
    other.close()
    other.release()
    assert other.fileno() == -1


def test_only_who_is_given_the_descriptor_shares_the_lock(lock: FileLock) -> None:
    """No child inherits the lock; a copy passed on holds it after the original is closed."""
    assert not os.get_inheritable(lock.fileno())
    assert lock.try_exclusive()
    copy = os.dup(lock.fileno())
    path = Path(f"/proc/self/fd/{copy}").readlink()
    lock.close()
    other = FileLock(path)
    assert not other.try_exclusive()
    os.close(copy)
    assert other.try_exclusive()
    other.close()
