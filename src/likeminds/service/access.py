"""Authentication and authorisation of callers."""

import hmac
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from likeminds.service.app_state import AppState
from likeminds.service.errors import ProblemError
from likeminds.service.store import KEY_PREFIX, TOKEN_PREFIX, Role, hashed

_BEARER = HTTPBearer(
    auto_error=False,
    description="An API key (lmk_...), or the token of a user (lmp_...). Without any keys, the "
    "service answers local requests only, with full access.",
)


@dataclass(frozen=True)
class Caller:
    """Who calls: their role, the name that repeated writes go by, and a user's token, if any."""

    role: Role
    name: str
    token: str | None = None

    def require(self, role: Role) -> None:
        """Refuse a caller without a role."""
        if self.role < role:
            raise ProblemError(
                403, f"This takes a key with the role {role.name.lower()}, or a higher one."
            )

    def require_user(self, state: AppState, user: str, role: Role) -> None:
        """Refuse callers who neither have the role nor are the user.

        A user's token opens nothing else, and does not reveal who else is there.
        """
        if self.token is None:
            self.require(role)
            return
        found = state.store.user(user)
        stored = "" if found is None else found.token_hash
        if not hmac.compare_digest(stored, hashed(self.token)):
            raise ProblemError(403, "This token is that of another user, or of a deleted one.")


def state_of(request: Request) -> AppState:
    """Return the state of the worker."""
    found: AppState = request.app.state.service
    return found


State = Annotated[AppState, Depends(state_of)]


def caller_of(
    state: State, shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Caller:
    """Identify the caller by their secret; refuse secrets that are not valid."""
    secret = "" if shown is None else shown.credentials
    if secret.startswith(TOKEN_PREFIX):
        any_token = state.is_open or state.settings.visitors
        if not any_token and not (state.keys and state.store.has_token(hashed(secret))):
            raise ProblemError(401, "This token is not valid, or its user was deleted.")
        return Caller(Role.USER, f"user {hashed(secret)[:16]}", secret)
    if secret.startswith(KEY_PREFIX):
        found = state.keys.get(hashed(secret))
        if found is None:
            raise ProblemError(401, "This key is not valid, or was revoked.")
        return Caller(found[0], f"key {found[1]}")
    if shown is not None:
        raise ProblemError(401, "What is shown is neither a key (lmk_...) nor a token (lmp_...).")
    if state.is_open:
        return Caller(Role.ADMIN, "open")
    if state.settings.visitors:
        return Caller(Role.USER, "visitor")
    raise ProblemError(401, "Show a key: Authorization: Bearer lmk_...")


Calling = Annotated[Caller, Depends(caller_of)]


def with_optional_security(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the API's description, in which showing a secret is optional."""
    for path in schema["paths"].values():
        for operation in path.values():
            if operation.get("security"):
                operation["security"] = [*operation["security"], {}]
    return schema
