"""The page, as a visitor uses it: with a mouse, with keys, on a telephone."""

from pathlib import Path

import pytest

from likeminds.service.demo_models import make_demo
from likeminds.service.settings import Settings
from service.browser import PHONE, WIDE, Visitor
from service.running_service import running

PARTS = ("teach", "compare", "schools", "items")
PAGE = Path(__file__).parents[2] / "src" / "likeminds" / "service" / "page"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    demo = make_demo("shoes", tmp_path_factory.mktemp("demo"), lambda _: None)
    settings = Settings(
        model=str(demo.model),
        state=str(demo.state),
        database=f"sqlite:///{demo.state / 'service.db'}",
        pictures=str(demo.pictures),
        refresh_every=0.0,
        rate=0.0,
        seconds=60.0,
        title=demo.title,
    )
    with running(settings) as found:
        yield found


@pytest.fixture
def visitor(browser, address):
    """Somebody new."""
    found = Visitor(browser, address)
    browser.get(address)
    found.run("localStorage.clear(); sessionStorage.clear()")
    browser.get_log("browser")
    yield found
    assert found.complaints() == []


def test_answers_move_everything_beside_them(visitor):
    visitor.open("teach")
    seen = []
    for how in ("yes", "no", "yes", "no", "yes"):
        place = visitor.run("const y = document.querySelector('.you').dataset; return [y.x, y.y]")
        seen.append((visitor.texts("ol.ranking li"), place, visitor.text("main .legend")))
        visitor.answer(how)
    assert visitor.answers() == 5
    assert len({str(ranking) for ranking, _, _ in seen}) > 2
    assert len({str(place) for _, place, _ in seen}) > 2
    widths = (
        "return [...document.querySelectorAll('.span')]"
        ".map(one => one.getAttribute('x2') - one.getAttribute('x1'))"
    )
    assert sum(visitor.run(widths)) < 8 * 188
    assert "Closest to school" in visitor.text("#school")


def test_answers_survive_a_reload_and_can_be_taken_back_one_by_one(visitor):
    visitor.open("teach")
    for how in ("yes", "no", "yes"):
        visitor.answer(how, by_key=False)
    asked = visitor.run("return document.querySelector('figure').dataset.item")
    visitor.browser.refresh()
    visitor.until_ready("teach")
    assert visitor.answers() == 3
    assert visitor.run("return document.querySelector('figure').dataset.item") == asked
    for left in (2, 1, 0):
        visitor.answer("undo")
        assert visitor.answers() == left
    assert visitor.run("return document.querySelector('[data-action=undo]').disabled")


def test_an_item_can_be_skipped_and_answers_deleted(visitor):
    visitor.open("teach")
    first = visitor.run("return document.querySelector('figure').dataset.item")
    visitor.press("s")
    visitor.until("document.querySelector('figure').dataset.item !== arguments[0]", first)
    visitor.answer("yes")
    before = visitor.run("return localStorage.getItem('likeminds-user')")
    visitor.click("[data-action=forget]")
    visitor.until("document.querySelector('#count').textContent.startsWith('0')")
    assert visitor.run("return localStorage.getItem('likeminds-user')") != before


def test_people_are_compared(visitor):
    visitor.open("teach")
    visitor.answer("yes")
    visitor.open("compare")
    first = visitor.text("#likeness")
    visitor.run(
        "const b = document.getElementById('b'); b.selectedIndex = 5;"
        "b.dispatchEvent(new Event('change'))"
    )
    visitor.until("document.querySelector('#likeness').textContent !== arguments[0]", first)
    assert -1 <= float(visitor.text("#likeness")) <= 1
    assert len(visitor.texts("#left ~ ul li")) == 8


def test_schools_say_what_they_stand_for(visitor):
    visitor.open("schools")
    assert "schools of thought among 60 people" in visitor.text("h2")
    schools = visitor.texts(".school p")
    assert len(schools) >= 2
    assert all(len(text) > 10 for text in schools)
    assert len(visitor.texts("#agreed ~ ul li")) == 8
    assert len(visitor.texts("#divides ~ ul li")) == 8
    loaded = (
        "document.images.length > 10"
        " && [...document.images].every(one => !one.complete || one.naturalWidth)"
    )
    assert visitor.until(loaded)


def test_items_are_explained(visitor):
    visitor.open("items")
    first = visitor.text("#why h3")
    visitor.click("[data-kind=divisive]")
    visitor.until("document.querySelector('#why h3').textContent !== arguments[0]", first)
    second = visitor.text("#why h3")
    visitor.click(".things li:nth-child(3) button")
    visitor.until("document.querySelector('#why h3').textContent !== arguments[0]", second)
    assert float(visitor.text("#score")) != 0


def test_everything_can_be_reached_by_keys(visitor):
    from selenium.webdriver.common.keys import Keys

    visitor.open("teach")
    reached = []
    for _ in range(14):
        visitor.press(Keys.TAB)
        reached.append(visitor.run("return document.activeElement.textContent.trim().slice(0, 12)"))
    assert {"Skip to cont", "Compare", "NoN", "YesY", "SkipS"} <= set(reached)
    visitor.run("document.querySelector('nav a[data-part=schools]').focus()")
    visitor.press(Keys.ENTER)
    visitor.until_ready("schools")
    visitor.run("document.querySelector('nav a[data-part=items]').focus()")
    visitor.press(Keys.ENTER)
    visitor.until_ready("items")
    visitor.run("document.querySelector('.things li:nth-child(2) button').focus()")
    before = visitor.text("#why h3")
    visitor.press(Keys.ENTER)
    visitor.until("document.querySelector('#why h3').textContent !== arguments[0]", before)


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(visitor, size, theme):
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    visitor.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    for part in PARTS:
        visitor.open(part, size)
        assert visitor.violations() == [], part
        wide = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        assert visitor.run(wide), part


def test_on_a_telephone_an_answer_takes_one_touch(visitor):
    visitor.open("teach", PHONE)
    visitor.answer("yes", by_key=False)
    visitor.answer("no", by_key=False)
    assert visitor.answers() == 2
    touchable = (
        "return [...document.querySelectorAll('.answers button')]"
        ".every(b => b.getBoundingClientRect().height >= 44)"
    )
    assert visitor.run(touchable)


def test_the_page_has_nothing_inline_and_nothing_from_elsewhere():
    templates = list((PAGE.parent / "templates").iterdir())
    assert len(templates) == 3
    for file in templates:
        text = file.read_text()
        assert "<style" not in text
        assert " style=" not in text
        assert "onclick" not in text
    for file in (*PAGE.iterdir(), *templates):
        body = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in body, file.name
        assert "https://" not in body, file.name
        assert "innerHTML" not in body, file.name
