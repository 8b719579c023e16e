"""``likeminds serve`` and ``likeminds keys``, as far as they end by themselves."""

import json

import pytest

from commands import run
from likeminds import HierarchicalRanker, load_electricity, save


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("serve")
    said = load_electricity().of_users([f"household-{n:03d}" for n in range(1, 20)])
    save(HierarchicalRanker(n_groups=1).fit(said), place / "power.likeminds", with_data=True)
    return place


def test_a_model_is_tried_out_without_serving(folder):
    done = run(folder, "serve", "power.likeminds", "--check", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["address"] == "http://127.0.0.1:8000"
    told = run(folder, "serve", "power.likeminds", "--check")
    assert "only local requests" in told.out
    assert (folder / "power.service" / "service.db").exists()


def test_the_address_has_the_port_that_the_system_chose(folder, monkeypatch):
    ports = []

    def record(_, listening, workers):
        ports.append(listening.getsockname()[1])
        listening.close()

    monkeypatch.setattr("likeminds.service.startup.run", record)
    done = run(folder, "serve", "power.likeminds", "--port", "0", "--json")
    assert done.code == 0, done.err
    assert ports != [0]
    assert json.loads(done.out)["address"] == f"http://127.0.0.1:{ports[0]}"


def test_other_machines_are_not_served_without_keys(folder):
    done = run(folder, "serve", "power.likeminds", "--host", "0.0.0.0", "--check")
    assert done.code == 2
    assert "likeminds keys" in done.err
    assert (
        run(folder, "serve", "power.likeminds", "--host", "::", "--visitors", "--check").code == 0
    )


def test_keys_are_made_listed_and_revoked(folder):
    made = run(folder, "keys", "power.likeminds", "--add", "read", "--owner", "gateway", "--json")
    secret = json.loads(made.out)["key"]
    assert secret.startswith("lmk_")
    listed = json.loads(run(folder, "keys", "power.likeminds", "--json").out)["keys"]
    assert [(one["name"], one["role"]) for one in listed] == [("gateway", "read")]
    assert secret not in str(listed)
    revoked = run(folder, "keys", "power.likeminds", "--revoke", listed[0]["id"], "--json")
    assert json.loads(revoked.out)["keys"] == []
    assert run(folder, "keys", "power.likeminds", "--revoke", "nothing").code == 2
    assert run(folder, "keys", "power.likeminds", "--add", "owner").code == 2


def test_what_cannot_be_served_is_refused_in_a_sentence(folder):
    content = bytearray((folder / "power.likeminds").read_bytes())
    content[-50] ^= 1
    (folder / "broken.likeminds").write_bytes(content)
    for name, part in (("broken.likeminds", "changed"), ("nothing.likeminds", "no model")):
        done = run(folder, "serve", name, "--check")
        assert done.code in {1, 2}
        assert part in done.err
        assert "Traceback" not in done.err
    assert "--demo" in run(folder, "serve").err
    assert "shoes" in run(folder, "serve", "--demo", "movies", "--state", ".").err
    away = "postgresql://ann:secret@127.0.0.1:1/x"
    done = run(folder, "serve", "power.likeminds", "--check", "--database", away)
    assert done.code in {1, 2}
    assert "secret" not in done.err + done.out
    assert "Traceback" not in done.err
