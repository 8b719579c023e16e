"""Who calls, and what they may see and change."""

import hmac
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from likeminds.service.app_state import AppState
from likeminds.service.errors import ProblemError
from likeminds.service.keys import KEY_PREFIX, TOKEN_PREFIX, Role, hashed

_BEARER = HTTPBearer(
    auto_error=False,
    description="An API key (lmk_...), or the token of a person (lmp_...). Without any keys, the "
    "service answers to this machine alone, and to everybody there.",
)


@dataclass(frozen=True)
class Caller:
    """Somebody who calls.

    Attributes
    ----------
    role : Role
        What they may do in general.
    name : str
        Whose writes are repeated under the same key: that of a key, or of an open service.
    token : str, optional
        The token of a person, which opens that person's labels.
    """

    role: Role
    name: str
    token: str | None = None

    def may(self, role: Role) -> None:
        """Refuse a caller without a role."""
        if self.role < role:
            raise ProblemError(
                403, f"This takes a key with the role {role.name.lower()}, or a higher one."
            )


def holder_of(request: Request) -> AppState:
    """Return what the worker holds."""
    found: AppState = request.app.state.holder
    return found


def caller_of(
    held: Annotated[AppState, Depends(holder_of)],
    shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
) -> Caller:
    """Tell who calls by what they show; refuse secrets that are not valid."""
    secret = "" if shown is None else shown.credentials
    if secret.startswith(TOKEN_PREFIX):
        everyone = held.is_open or held.settings.visitors
        if not everyone and not (held.keys and held.store.has_token(hashed(secret))):
            raise ProblemError(401, "This token is not valid, or its person was deleted.")
        return Caller(Role.PERSON, f"person {hashed(secret)[:16]}", secret)
    if secret.startswith(KEY_PREFIX):
        found = held.keys.get(hashed(secret))
        if found is None:
            raise ProblemError(401, "This key is not valid, or was revoked.")
        return Caller(found[0], f"key {found[1]}")
    if shown is not None:
        raise ProblemError(401, "What is shown is neither a key (lmk_...) nor a token (lmp_...).")
    if held.is_open:
        return Caller(Role.ADMIN, "open")
    if held.settings.visitors:
        return Caller(Role.PERSON, "visitor")
    raise ProblemError(401, "Show a key: Authorization: Bearer lmk_...")


Held = Annotated[AppState, Depends(holder_of)]
Calling = Annotated[Caller, Depends(caller_of)]


def refuse_others(caller: Caller, held: AppState, person: str, role: Role) -> None:
    """Let a caller at somebody's data who has the role, or is that person.

    A person's token opens nothing else, and says nothing about who else is there.
    """
    if caller.token is None:
        caller.may(role)
        return
    found = held.store.person(person)
    kept = "" if found is None else found.token_hash
    if not hmac.compare_digest(kept, hashed(caller.token)):
        raise ProblemError(403, "This token is that of somebody else, or of somebody deleted.")


def security_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the API's description, in which showing a secret is optional."""
    for path in schema["paths"].values():
        for operation in path.values():
            if operation.get("security"):
                operation["security"] = [*operation["security"], {}]
    return schema
