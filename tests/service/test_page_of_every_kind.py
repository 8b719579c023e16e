"""The page with every demo, and with a model of every kind: nothing slips into what is seen."""

import numpy as np
import pytest

from likeminds.features.images import png_bytes
from likeminds.service.demo_models import make_demo
from likeminds.service.settings import Settings
from service.browser import PHONE, WIDE, Visitor
from service.crowds_served import KINDS, N_ITEMS, TITLES, model_of
from service.running_service import running_here

PARTS = ("schools", "teach", "compare", "items")
DEMOS = ("shoes", "electricity", "statements")

pytestmark = pytest.mark.slow


def served(model, state, pictures=None):
    return running_here(
        Settings(
            str(model),
            str(state),
            f"sqlite:///{state / 'service.db'}",
            pictures=None if pictures is None else str(pictures),
            refresh_every=0.0,
            rate=0.0,
            seconds=60.0,
        )
    )


@pytest.fixture(scope="module", params=[*DEMOS, *KINDS])
def visitor(request, browser, tmp_path_factory):
    """Somebody new at a service of a demo, or of a kind of model."""
    folder = tmp_path_factory.mktemp("served")
    if request.param in DEMOS:
        demo = make_demo(request.param, folder, lambda _: None)
        service = served(demo.model, demo.state, demo.pictures)
    else:
        pictures = folder / "pictures" if "pictures" in request.param else None
        if pictures is not None:
            pictures.mkdir()
            for n in range(N_ITEMS):
                (pictures / f"{n}.png").write_bytes(png_bytes(np.full((4, 4, 3), 16 * n)))
        service = served(model_of(request.param, folder), folder, pictures)
    with service as address:
        browser.get(address)
        browser.execute_script("localStorage.clear(); sessionStorage.clear()")
        browser.get_log("browser")
        found = Visitor(browser, address)
        found.kind = request.param
        yield found


def test_nothing_slips_into_what_is_seen_in_the_terms_of_the_model(visitor):
    for part in PARTS:
        visitor.open(part, WIDE)
        if part == "schools":
            several = "schools of thought" in visitor.text("h2")
        if part == "teach":
            assert visitor.mistakes() == []
            for which in (0, -1):
                visitor.give(which)
                assert visitor.mistakes() == []
            assert_speaks_in_terms_of(visitor, several)
            visitor.answer("undo", by_key=False)
        assert visitor.mistakes() == [], part
        assert visitor.violations() == [], part
        visitor.browser.set_window_size(*PHONE)
        assert visitor.mistakes() == [], part
        assert visitor.complaints() == [], part


def assert_speaks_in_terms_of(visitor, several):
    """Look at the part that teaches, after an answer, whether the crowd has several schools."""
    said = f"{visitor.text('#said')} {visitor.text('main')}"
    assert ("Closest to school" in said) == several
    assert ("no separate schools" in said) <= (not several)
    answers, question = visitor.texts(".grades button"), visitor.text("#question")
    page = visitor.run("return document.body.innerText")
    if visitor.kind.startswith("stars"):
        assert answers == [f"{n / 2:g}" for n in range(1, 11)]
        titled = any(title in page for title in TITLES.values())
        assert titled == ("titles" in visitor.kind)
        assert "expected" in page
    elif visitor.kind.startswith(("votes with", "statements")):
        assert visitor.texts(".answers button") == ["AgreeA", "DisagreeD", "PassP", "UndoU"]
        assert "statement" in question
        assert "statements that you have not answered" in page
        assert "taste" not in page
    elif visitor.kind == "votes in three grades":
        assert answers == ["Disagree", "Pass", "Agree"]
    elif visitor.kind == "many grades":
        assert visitor.run("return document.getElementById('grade').type") == "range"
    else:
        assert visitor.texts(".answers button")[:2] == ["NoN", "YesY"]


def test_answered_items_leave_the_ranking(visitor):
    count = "return +document.querySelector('#yours + p').textContent.match(/of (\\d+) \\w+s/)[1]"
    visitor.open("teach")
    answered = visitor.run("return document.querySelector('[data-item]').dataset.item")
    before = visitor.run(count)
    visitor.give(-1)
    ranked = "return [...document.querySelectorAll('ol.ranking li')].map(one => one.dataset.item)"
    assert answered not in visitor.run(ranked)
    assert visitor.run(count) == before - 1
    visitor.answer("undo", by_key=False)
    assert visitor.run(count) == before


@pytest.mark.parametrize("visitor", ["stars with titles and features"], indirect=True)
def test_the_api_page_sends_what_its_forms_hold(visitor):
    visitor.browser.set_window_size(*WIDE)
    visitor.browser.get(f"{visitor.address}/docs")
    visitor.until("document.getElementById('main').dataset.ready === 'docs'")
    for operation in ("post /v1/rank", "post /v1/score", "get /v1/items"):
        selector = f'[data-operation="{operation}"]'
        visitor.run("document.querySelector(arguments[0]).open = true", selector)
        visitor.click(f"{selector} form button")
        visitor.until(f"document.querySelector('{selector} pre')")
        assert ": 200 in" in visitor.text(f"{selector} [aria-live]"), operation
    assert visitor.violations() == []
    assert visitor.complaints() == []
