"""What a tool is: its arguments, what it does, and what it answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Final, Generic, TypeVar

from pydantic import Field

from app.bridge.arguments import Arguments
from app.bridge.callers import Call, Caller
from app.bridge.content import notes
from app.bridge.content.asking import Waiting
from app.bridge.strongroom import Strongroom
from app.clock import Millis, rfc3339
from app.errors.callers import NotPermittedError
from app.errors.inputs import InvalidInputError
from app.owner.notes import Condition

ResultT = TypeVar("ResultT")
ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)

_WRITES: Final = frozenset({"memory:write", "shared:write"})

PathText = Annotated[str, Field(max_length=16_384)]
"""A path as typed; what it names is the owner services' to say."""
LineNumber = Annotated[int, Field(ge=1, lt=1 << 31)]
Version = Annotated[int, Field(ge=1, lt=1 << 62)]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers; None for what does not apply."""

    output: str
    """For the agent to read."""
    version: int | None = None
    """Of the text as it stands now."""
    replaced_version: int | None = None
    """Of the text that it took the place of, which can be brought back."""
    approval_id: str | None = None
    """Nothing is done yet: it waits for a person's decision, named by this."""

    def facts(self) -> dict[str, Any]:
        """It as JSON; what does not apply is left out."""
        found: dict[str, Any] = {"output": self.output}
        if self.version is not None:
            found["version"] = self.version
        if self.replaced_version is not None:
            found["replaced_version"] = self.replaced_version
        if self.approval_id is not None:
            found["approval"] = {"id": self.approval_id}
        return found


ANSWER_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["output"],
    "additionalProperties": False,
    "properties": {
        "output": {"type": "string", "description": "What the tool says."},
        "version": {"type": "integer", "description": "Of the text as it stands now."},
        "replaced_version": {
            "type": "integer",
            "description": "Of the text that was replaced; it can be restored.",
        },
        "approval": {
            "type": "object",
            "description": "Nothing is done yet: it waits for this approval of a person.",
            "required": ["id"],
            "additionalProperties": False,
            "properties": {"id": {"type": "string"}},
        },
    },
}
"""`Answer.facts` as JSON Schema."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks a tool for something, and on which condition."""

    room: Strongroom
    caller: Caller
    call: Call
    condition: Condition
    """What must stand where it writes; an empty one for a reading tool."""

    @property
    def may_read(self) -> bool:
        """Whether the answer may tell anything of the texts that stand."""
        return self.caller.has_scope(notes.READ)

    def condition_with(self, version: int | None) -> Condition:
        """The condition, and a version that must stand beside it.

        Returns:
            It; as it was when no version is given.

        Raises:
            InvalidInputError: There are both.
        """
        if version is None:
            return self.condition
        if self.condition != Condition():
            raise InvalidInputError(field="version")
        return replace(self.condition, match=frozenset({version}))


@dataclass(frozen=True, slots=True)
class Deed(Generic[ResultT]):
    """What is to be done, all arguments judged, and how it is told."""

    act: Callable[[Call], Awaitable[ResultT | Waiting]]
    """Does it, given the request's call, which goes to its deciding write."""
    tell: Callable[[ResultT], Answer]
    """Makes the answer of what the deciding write returns, and of nothing else."""

    def answer(self, result: ResultT | Waiting) -> Answer:
        """What the agent is told, whether it is done or waits for its member's decision."""
        if not isinstance(result, Waiting):
            return self.tell(result)
        until = rfc3339(Millis(result.expires_at))
        return Answer(
            f"Nothing is written yet: it waits for approval {result.approval_id}, which your "
            f"member decides until {until}. Do not send it again.",
            approval_id=result.approval_id,
        )


@dataclass(frozen=True, slots=True)
class Tool:
    """One function for agents."""

    name: str
    title: str
    description: str
    """For the agent: what it does and what it needs."""
    arguments: type[Arguments]
    begin: Callable[[Asking, Any], Awaitable[Deed[Any]]]
    """Judges the arguments, which are of the form above."""
    reads_only: bool = False
    looks: bool = False
    """Whether it writes and its answer depends on the text that stands: it needs both scopes."""
    destroys: bool = False
    """Whether it can take away what stands; a version of it is kept all the same."""
    repeatable: bool = False
    """Whether the same again changes nothing more."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """The form of its arguments, as JSON Schema; the same one each time."""
        return _schema_of(self.arguments)

    @property
    def annotations(self) -> dict[str, bool]:
        """The hints of the Model Context Protocol, by its names for them."""
        return {
            "readOnlyHint": self.reads_only,
            "destructiveHint": self.destroys,
            "idempotentHint": self.repeatable or self.reads_only,
            "openWorldHint": False,
        }

    def is_for(self, caller: Caller) -> bool:
        """Whether the caller's credential was made for anything that it does."""
        if (self.reads_only or self.looks) and not caller.has_scope(notes.READ):
            return False
        return self.reads_only or any(caller.has_scope(scope) for scope in _WRITES)

    async def deed(self, asking: Asking, arguments: Arguments) -> Deed[Any]:
        """Judge a call of it.

        Returns:
            What is to be done; that, and how it is told, is what is left of the call.

        Raises:
            NotPermittedError: The credential was not made for this.
            StrongroomError: The arguments cannot be taken; its sentence says what could.
        """
        if not self.is_for(asking.caller):
            raise NotPermittedError
        return await self.begin(asking, arguments)


@cache
def _schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    return arguments.model_json_schema()


def reading(read: Callable[[Call], Awaitable[Answer]]) -> Deed[Answer]:
    """A deed that only reads: what it finds is the answer."""
    return Deed(read, lambda answer: answer)
