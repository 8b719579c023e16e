"""The whole API under generated requests: nothing fails, nothing is answered undocumented."""

import pytest
from hypothesis import HealthCheck, given, settings

from likeminds.service.app import make_app
from likeminds.service.store import add_key, hashed
from service.conftest import make_settings

schemathesis = pytest.importorskip("schemathesis", reason="property tests need schemathesis")

HOST = {"Host": "127.0.0.1"}
pytestmark = pytest.mark.slow

FEW = settings(
    max_examples=5,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    deadline=None,
    database=None,
)


@pytest.fixture(scope="module")
def schema(model_file, tmp_path_factory):
    app = make_app(make_settings(model_file, tmp_path_factory.mktemp("api")), watching=False)
    app.state.service.store.add_user("zoe", "no token")
    return schemathesis.openapi.from_asgi("/v1/openapi.json", app, headers=HOST)


def operations(schema):
    found = [one.ok() for one in schema.get_all_operations()]
    assert len(found) >= 25
    return found


def checks():
    import schemathesis.checks as known

    return [
        known.not_a_server_error,
        known.status_code_conformance,
        known.content_type_conformance,
        known.response_schema_conformance,
        known.negative_data_rejection,
    ]


def try_out(operation, mode, prepare=lambda _: None, headers=HOST, few=FEW):
    """Send generated requests, hold the answers against the description, and return statuses."""
    wanted, found = checks(), set()

    @few
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case):
        prepare(case)
        answer = case.call(headers=headers)
        found.add(answer.status_code)
        case.validate_response(answer, checks=wanted)

    ask()
    return found


def test_no_valid_request_makes_it_fail(schema):
    for operation in operations(schema):
        try_out(operation, schemathesis.GenerationMode.POSITIVE)


def test_no_request_about_what_is_there_makes_it_fail(schema):
    def prepare(case):
        if "user" in case.path_parameters:
            # Others need her, so that somebody else is deleted.
            gone = case.operation.method.upper() == "DELETE"
            case.path_parameters["user"] = "person-20" if gone else "zoe"
        if case.query and "item" in case.query:
            case.query["item"] = "shoe-01"
        if isinstance(case.body, dict):
            for name, value in {"user": "person-01", "item": "shoe-02", "a": "zoe"}.items():
                if case.body.get(name):
                    case.body[name] = value
            for one in case.body.get("labels", []):
                one["item"] = "shoe-03"
                one.pop("attribute", None)
        if case.query:
            case.query.pop("attribute", None)

    for operation in operations(schema):
        try_out(operation, schemathesis.GenerationMode.POSITIVE, prepare)


def test_every_request_that_is_not_valid_is_refused(schema):
    for operation in operations(schema):
        if any(operation.iter_parameters()) or operation.body:
            try_out(operation, schemathesis.GenerationMode.NEGATIVE)


# Operations that a key to read may not call, and those that take a key of an administrator.
OF_WRITERS = {"POST /v1/newcomers", "GET /v1/users/{user}/labels"}
OF_WRITERS |= {"POST /v1/users/{user}/labels"}
OF_ADMINS = {"GET /v1/users/{user}/data", "DELETE /v1/users/{user}/data"}
OF_ADMINS |= {"GET /v1/admin/refresh", "POST /v1/admin/refresh"}
CLOSED = {"read": OF_WRITERS | OF_ADMINS, "write": OF_ADMINS, "admin": set()}


# Images on a page show no key, and neither do those who ask how the service is.
OPEN = {"/v1/picture", "/health", "/ready"}


@pytest.mark.parametrize("role", ["read", "write", "admin", "token", "none", "wrong", "made up"])
def test_no_request_with_a_key_of_any_role_makes_it_fail(model_file, tmp_path, role):
    served = make_settings(model_file, tmp_path)
    keys = {name: add_key(served.database, name, name) for name in CLOSED}
    keys |= {"token": "lmp_" + 40 * "t", "wrong": "lmk_" + 40 * "w"}
    keys["made up"] = "lmp_" + 40 * "m"
    app = make_app(served, watching=False)
    app.state.service.store.add_user("zoe", hashed(keys["token"]))
    headers = HOST | ({"Authorization": f"Bearer {keys[role]}"} if role in keys else {})
    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", app, headers=HOST)

    def as_zoe(case):
        if "user" in case.path_parameters and case.operation.method.upper() != "DELETE":
            case.path_parameters["user"] = "zoe"

    for operation in operations(schema):
        positive, two = schemathesis.GenerationMode.POSITIVE, settings(FEW, max_examples=2)
        found = try_out(operation, positive, as_zoe, headers, two)
        name = f"{operation.method.upper()} {operation.path}"
        if role in CLOSED and name not in CLOSED[role]:
            assert not found & {401, 403}, (name, found)
        elif role in CLOSED:
            assert found <= {403, 422}, (name, found)
        elif role != "token" and operation.path not in OPEN:
            assert found <= {401, 422}, (name, found)
