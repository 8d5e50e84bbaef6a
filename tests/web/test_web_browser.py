"""The page in a real browser: what a person sees, types, drags and copies."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from json import loads

import pytest

pytest.importorskip("fastapi", reason="needs the extra: pip install 'seqlaw[web]'")


from seqlaw.answers.glossary import WORDS
from seqlaw.fit import fit_power_law
from seqlaw.paper.reproduce import reproduce
from seqlaw.web.panels import panels
from seqlaw.web.views import to_json
from web_server import environment, explorer

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SMALL = "M=16&d=64&N=256&from_P=2&to_P=64&sample_points=3&sketches=2"
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}

if BROWSER is None and os.environ.get("CI") != "true":
    pytest.skip("needs a chromium on the PATH", allow_module_level=True)


@pytest.fixture(scope="module")
def address():
    with explorer() as (address, _):
        yield address


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    assert BROWSER is not None, "continuous integration must have a chromium on the PATH"
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield chromium
        chromium.close()


class Tab:
    """One page that remembers what it asked for and what went wrong in it."""

    def __init__(self, browser, address, viewport, scheme="light"):
        self.context = browser.new_context(viewport=viewport, accept_downloads=True, color_scheme=scheme)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.address, self.requests, self.problems = address, [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._heard)

    def _heard(self, message):
        refused = "the server responded with a status of 422" in message.text
        if message.type == "error" and not refused:
            self.problems.append(message.text)

    def open(self, state, afresh=False):
        """Go to a state, without loading the page again unless asked to."""
        if afresh or not self.page.url.startswith(self.address):
            self.page.goto("about:blank")
            self.page.goto(f"{self.address}/#{state}")
        else:
            # The event comes as a task of its own, after which the page has asked its question.
            self.page.evaluate(
                "state => new Promise(done => { addEventListener('hashchange', done, {once: true});"
                " if (location.hash === '#' + state) dispatchEvent(new HashChangeEvent('hashchange'));"
                " else location.hash = state; })",
                state,
            )
        self.settle()

    def settle(self):
        """Wait until the picture answers what the page asks."""
        self.page.wait_for_selector('.chart[aria-busy="false"] .main-svg', timeout=60_000)

    def curve(self, name):
        """The values of a drawn trace."""
        return self.page.evaluate(
            "name => Array.from(document.getElementById('plot').data.find(t => t.name === name).y)", name
        )

    def slide(self, name, value):
        """Set a slider as a key press would: the events `input` and `change`."""
        self.page.eval_on_selector(
            f"input[name={name}-slider]",
            "(node, value) => { node.value = value; node.dispatchEvent(new Event('input', {bubbles: true})); "
            "node.dispatchEvent(new Event('change', {bubbles: true})); }",
            value,
        )
        self.settle()

    def copied(self, button):
        self.page.eval_on_selector("#copies", "node => { node.open = true; }")
        self.page.click(button)
        return self.page.evaluate("() => navigator.clipboard.readText()")


@pytest.fixture(scope="module")
def wide(browser, address):
    tab = Tab(browser, address, WIDE)
    yield tab
    tab.context.close()


@pytest.fixture
def tab(wide, address):
    yield wide
    assert not wide.problems
    here = (address, "about:", "data:", f"blob:{address}")
    assert not [url for url in wide.requests if not url.startswith(here)], "the page asked another host"


PICTURE = """() => document.getElementById('plot').data.map(
  trace => [trace.name, Array.from(trace.x), Array.from(trace.y)])"""


def risk_on_screen(tab):
    return tab.curve("reducible risk")


def test_moving_theta_across_alpha_flips_the_badge_and_the_curve(tab):
    tab.open("view=curve&theta=1.25")
    assert tab.page.inner_text("#regime") == "Regime II"
    before = risk_on_screen(tab)
    tab.slide("theta", 430)  # 0.5 + 0.43 · 3.5 = 2.0 > α = 1.8
    assert tab.page.input_value("#field-theta") in ("2", "2.0", "2.00", "2.01")
    assert tab.page.inner_text("#regime") == "Regime I"
    after = risk_on_screen(tab)
    # In Regime II the risk falls with P much more than in Regime I.
    assert before[0] / before[-1] > 2 * after[0] / after[-1]
    tab.slide("theta", 0)
    assert tab.page.inner_text("#regime") == "Outside the theorem"
    tab.page.click("#conditions-summary")
    tab.page.wait_for_selector("#conditions-table")
    assert "✗ fails" in tab.page.inner_text("#conditions-table")


@pytest.mark.parametrize(
    ("field", "nonsense", "says"),
    [
        ("M", "many", "must be a number"),
        ("rho", "1.2", "must lie in (0, 1)"),
        ("to_P", "1", "above the start"),
        ("compute", "much", "must be a number"),
        ("min_P", "1e9", "at most the tokens"),
    ],
)
def test_nonsense_shows_an_error_and_keeps_the_last_good_picture(tab, field, nonsense, says):
    tab.open(f"view={'plan' if field in ('compute', 'min_P') else 'curve'}")
    before, good = tab.page.evaluate(PICTURE), tab.page.input_value(f"#field-{field}")
    tab.page.fill(f"#field-{field}", nonsense)
    tab.settle()
    assert says in tab.page.inner_text(f"#field-{field}-error")
    assert tab.page.get_attribute(f"#field-{field}", "aria-invalid") == "true"
    assert "last good" in tab.page.inner_text("#status")
    assert tab.page.evaluate(PICTURE) == before
    tab.page.fill(f"#field-{field}", good)
    tab.settle()
    assert tab.page.inner_text(f"#field-{field}-error") == ""
    assert tab.page.inner_text("#status") == ""
    assert tab.page.evaluate(PICTURE) == before


def test_a_link_with_nonsense_says_so_where_the_picture_would_be(tab):
    tab.page.goto("about:blank")
    tab.page.goto(f"{tab.address}/#view=curve&M=many&style=none")
    tab.page.wait_for_selector("#status.problem")
    assert "M must be a number, got many" in tab.page.inner_text("#status")
    assert tab.page.get_attribute("#style-stacked", "aria-pressed") == "true"


def test_a_link_followed_just_after_a_change_wins(tab):
    """The address is written a moment after a change, perhaps after the link that was followed since."""
    tab.open("view=curve")
    tab.page.evaluate(
        """() => { const link = new URL('#view=plan', location).href;
        history.replaceState(null, '', '#view=curve&M=32');
        dispatchEvent(new HashChangeEvent('hashchange', {newURL: link})); }"""
    )
    tab.settle()
    assert tab.page.is_visible("#field-compute")
    assert tab.page.url.endswith("#view=plan")


@pytest.mark.slow
@pytest.mark.parametrize(
    "view",
    [
        "spectrum",
        "curve",
        "tradeoff",
        *(pytest.param(view, marks=pytest.mark.slow) for view in ("plan", "ladders")),
        "panels",
    ],
)
def test_the_link_restores_the_view(tab, view):
    tab.open(f"view={view}&compute=200&budget_tokens=50")
    if view != "panels":  # which are the paper's, and have no controls
        tab.page.fill("#field-c_0", "0.7")
        tab.page.select_option("#field-kind", "block")
        d = {"plan": ("#field-plan_d", "64"), "ladders": ("#field-ladder_d", "128")}
        tab.page.fill(*d.get(view, ("#field-d", "inf")))
    if view == "plan":
        tab.page.fill("#field-max_M", "9")
    tab.settle()
    link = tab.copied("#copy-link")
    fields = tab.page.evaluate("() => [...document.querySelectorAll('#controls [id]')].map(n => n.value)")
    first, numbers = tab.page.evaluate(PICTURE), tab.page.inner_text("#numbers")
    tab.open(link.partition("#")[2], afresh=True)
    assert tab.page.get_attribute(f"#tab-{view}", "aria-selected") == "true"
    again = tab.page.evaluate("() => [...document.querySelectorAll('#controls [id]')].map(n => n.value)")
    assert again == fields
    assert tab.page.evaluate(PICTURE) == first
    assert tab.page.inner_text("#numbers") == numbers


def test_sampled_points_come_and_can_be_cancelled(tab):
    tab.open(f"view=curve&{SMALL}")
    tab.page.click("#sample")
    tab.page.wait_for_selector("#sample:not([disabled])")
    assert "standard error" in tab.page.inner_text("#sample-status")
    bars = "() => document.getElementById('plot').data.find(t => t.name === 'sampled').error_y.array"
    assert len(tab.page.evaluate(bars)) == 3
    assert "--method sampled" in tab.copied("#copy-command")
    tab.open("view=curve&d=512&to_P=512&sketches=8")
    tab.page.click("#sample")
    tab.page.wait_for_selector("#sample-status progress")
    tab.page.click("#sample-cancel")
    assert "Cancelled" in tab.page.inner_text("#sample-status")
    assert tab.page.is_enabled("#sample")
    tab.settle()
    names = tab.page.evaluate("() => document.getElementById('plot').data.map(t => t.name)")
    assert "sampled" not in names


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (the extra gpu)")
def test_networks_are_trained_on_the_curve_in_one_pass(tab):
    small = "M=4&d=16&batch=4&L=20&along=P&from_P=2&to_P=4&sample_points=2&sketches=2"
    tab.open(f"view=curve&{small}")
    assert not tab.page.is_visible("#field-method")
    tab.open(f"view=curve&one_pass=on&{small}")
    assert not tab.page.is_visible("#field-network")
    tab.page.select_option("#field-method", "trained")
    tab.page.select_option("#field-network", "lru")
    tab.page.click("#sample")
    tab.page.wait_for_selector("#sample:not([disabled])")
    tab.settle()
    assert len(tab.curve("lru by sgd")) == 2
    assert "--method trained" in tab.copied("#copy-command")


@pytest.mark.slow
def test_the_button_shows_double_descent_with_sampled_points_on_it(tab):
    tab.open("view=curve&d=inf&along=P&theta=1.4")
    tab.page.click("#descent")
    tab.page.wait_for_selector("#sample:not([disabled])")
    tab.settle()
    assert [tab.page.input_value(f"#field-{name}") for name in ("theta", "M", "P")] == ["1.4", "48", "4"]
    risk, points = risk_on_screen(tab), tab.curve("sampled")
    at = tab.page.evaluate("() => document.getElementById('plot').data.find(t => t.name === 'sampled').x")
    assert max(risk[0], risk[-1]) < max(risk) / 5
    assert at[points.index(max(points))] == 12  # N·P = M
    assert "N·P = M" in tab.page.inner_text("#plot")
    assert "cross" in tab.page.inner_text("#numbers")
    assert "--along N" in tab.copied("#copy-command")
    tab.page.fill("#field-from_N", "50")
    tab.settle()
    assert "N·P = M" not in tab.page.inner_text("#plot")


def run(command, folder=None):
    words = shlex.split(command)
    assert words[0] == "seqlaw"
    words = [sys.executable, "-m", *words]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_python(text, folder=None, columns="repr(row['reducible'])"):
    text = text.replace("print(answer)", f"for row in answer.tidy_rows(): print({columns})")
    words = [sys.executable, "-c", text]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), cwd=folder)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


# A batch of another size sums in another order.
ROUNDING = 1e-11


def check_copies(tab, shown):
    """The copied command and the copied Python give the reducible risks on the screen."""
    rows = loads(run(tab.copied("#copy-command") + " --json"))["rows"]
    assert [row["reducible"] for row in rows] == pytest.approx(shown, rel=ROUNDING)
    printed = run_python(tab.copied("#copy-python"))
    assert [float(row[-1]) for row in printed] == pytest.approx(shown, rel=ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize("state", ["along=P", "along=R&kind=block&eval_length=100&theta=2.1"])
def test_the_copied_command_and_python_give_the_curve_on_the_screen(tab, state):
    tab.open(f"view=curve&{state}")
    check_copies(tab, risk_on_screen(tab))


def test_the_risk_is_shown_by_position(tab):
    """Position 0 stands left of 1 and is marked; every point has a test of its own, so none is chosen."""
    tab.open(f"view=curve&{SMALL}&eval_length=64")
    tab.page.click("[data-choice=along] [data-value=position]")
    tab.settle()
    assert tab.page.is_hidden("#field-eval_length")
    x = {name: x for name, x, _ in tab.page.evaluate(PICTURE)}["reducible risk"]
    assert (x[0], x[1], x[-1]) == (0.5, 1, 255)
    risk = risk_on_screen(tab)
    assert risk[0] > 3 * risk[-1]
    ticks = tab.page.eval_on_selector_all("#plot .xtick text", "all => all.map(one => one.textContent)")
    assert ticks[0] == "0"
    assert "tested at each position" in tab.page.inner_text("#plot")
    assert "--along position --from 0 --to 255" in tab.copied("#copy-command")


@pytest.mark.slow
def test_one_pass_has_a_batch_and_its_copies_give_the_curve(tab):
    tab.open("view=curve&along=N&kind=block&L=20000")
    tab.page.check("#field-one_pass")
    tab.settle()
    assert tab.page.is_hidden("#field-N")
    # N went, and so the curve is along b, at the tokens on the page: the steps follow.
    assert tab.page.get_attribute("[data-choice=along] [data-value=b]", "aria-pressed") == "true"
    assert tab.page.is_hidden("[data-choice=along] [data-value=N]")
    assert tab.page.is_hidden("#field-L")
    tab.page.check("#field-best")
    tab.settle()
    assert tab.page.is_hidden("#field-gamma")
    assert "critical batch" in tab.page.inner_text("#plot")
    command = tab.copied("#copy-command")
    assert "--batch 8" in command
    assert "--tokens 1e6" in command
    assert "--gamma best" in command
    tab.page.click("[data-choice=along] [data-value=P]")
    tab.settle()
    assert tab.page.inner_text("#field-once_N") == "160,000"  # b·L
    tab.slide("batch", 0)
    assert tab.page.inner_text("#field-once_N") == "20,000"
    tab.page.click("#tab-spectrum")
    tab.settle()
    assert tab.page.is_hidden("#field-one_pass")
    assert "--batch" not in tab.copied("#copy-command")


@pytest.mark.slow
def test_a_step_as_given_and_epochs_are_copied(tab):
    tab.open(f"view=curve&{SMALL}&kind=constant&L=200&gamma=5&batch=1")
    assert tab.page.is_hidden("#field-unguarded")
    assert tab.page.is_hidden("#field-epochs")
    assert tab.page.is_hidden("[data-choice=along] [data-value=epochs]")
    tab.page.check("#field-one_pass")
    tab.settle()
    assert max(risk_on_screen(tab)) < 1
    tab.page.check("#field-unguarded")
    tab.settle()
    assert risk_on_screen(tab)[0] is None  # it diverges there: a gap
    tab.page.fill("#field-gamma", "0.1")
    tab.page.fill("#field-epochs", "4")
    tab.settle()
    assert "4 epochs" in tab.page.inner_text("#plot")
    tab.page.click("#sample")
    tab.page.wait_for_selector("#sample:not([disabled])")
    assert len(tab.curve("sampled")) == 3
    for line in tab.copied("#copy-command").splitlines():
        assert "--batch 1 --epochs 4 --no-safeguard" in line
    tab.page.check("#field-best")  # which has a safeguard of its own
    tab.settle()
    assert "safeguard" not in tab.copied("#copy-command")
    tab.page.click("[data-choice=along] [data-value=epochs]")
    tab.settle()
    assert tab.page.is_hidden("#field-epochs")
    assert "sequences are worth" in tab.page.inner_text("#notes")
    tab.page.uncheck("#field-one_pass")  # full batch: no epochs
    tab.settle()
    assert tab.page.get_attribute("[data-choice=along] [data-value=N]", "aria-pressed") == "true"


def test_a_word_says_what_it_means(tab):
    tab.open("view=curve")
    tab.page.click("#flags .word >> text=saturated")
    assert tab.page.inner_text("#meaning") == f"saturated: {WORDS['saturated']}."
    tab.page.keyboard.press("Escape")
    assert tab.page.is_hidden("#meaning")
    assert "γL" in tab.page.get_attribute("label[for=field-R]", "title")
    tab.page.click("#words summary")
    assert tab.page.locator("#words dt").all_inner_texts() == list(WORDS)
    tab.page.click("#words summary")


# Every text against the ground below it, as the Web Content Accessibility Guidelines measure it.
FAINT = """least => {
  const parse = text => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return { rgb: [r, g, b].map(v => v / 255), a };
  };
  const light = ({ rgb }) => rgb.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const ground = node => {
    for (let at = node; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found.a === 1) return found;
    }
    return parse('rgb(255, 255, 255)');
  };
  const out = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.getClientRects().length || node.closest(':disabled, noscript')) continue;
    const style = getComputedStyle(node);
    const text = light(parse(node.closest('svg') ? style.fill : style.color)) + 0.05;
    const under = light(ground(node)) + 0.05, ratio = Math.max(text / under, under / text);
    if (ratio < least) out.push([node.textContent, ratio.toFixed(2)]);
  }
  return out;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_by_day_and_by_night(browser, address, scheme):
    tab = Tab(browser, address, WIDE, scheme)
    try:
        for view in ("spectrum", "curve&style=lines", "tradeoff", "plan"):
            tab.open(f"view={view}")
            assert tab.page.evaluate(FAINT, 4.5) == [], view
            card = tab.page.evaluate(
                "() => getComputedStyle(document.querySelector('.card')).backgroundColor"
            )
            assert tab.page.evaluate("() => document.getElementById('plot').layout.paper_bgcolor") == card
        assert not tab.problems
    finally:
        tab.context.close()


@pytest.mark.slow
def test_dark_or_light_is_chosen_and_remembered(browser, address, tmp_path):
    tab = Tab(browser, address, WIDE)
    ground = "() => document.getElementById('plot').layout.paper_bgcolor"
    try:
        tab.open("view=spectrum")
        assert tab.page.evaluate(ground) == "rgb(255, 255, 255)"
        tab.page.click("#scheme")
        tab.open("view=spectrum", afresh=True)
        dark = tab.page.evaluate(ground)
        assert dark != "rgb(255, 255, 255)"
        with tab.page.expect_download() as waiting:
            tab.page.click("#save-svg")
        waiting.value.save_as(tmp_path / "saved.svg")
        saved = (tmp_path / "saved.svg").read_text()
        assert "rgb(255, 255, 255)" in saved  # on white, for paper
        assert dark not in saved
        assert tab.page.evaluate(ground) == dark
        tab.page.click("#scheme")
        assert tab.page.evaluate("() => localStorage.length") == 0  # the system's again
        assert tab.page.evaluate(ground) == "rgb(255, 255, 255)"
        tab.page.emulate_media(color_scheme="dark")
        tab.page.wait_for_function(
            "ground => document.getElementById('plot').layout.paper_bgcolor === ground", arg=dark
        )
        assert not tab.problems
    finally:
        tab.context.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_fits_a_phone_by_day_and_by_night(browser, tmp_path, scheme):
    reproduce(tmp_path, method="equivalent", quick=True)
    tab = Tab(browser, "http://localhost", PHONE, scheme)
    try:
        tab.page.goto((tmp_path / "report.html").as_uri())
        assert tab.page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]
        boxes = tab.page.evaluate(
            "() => [...document.querySelectorAll('table, img')].map(n => n.parentElement).map(n => ["
            "getComputedStyle(n).overflowX, n.getBoundingClientRect().right, n.clientWidth / n.scrollWidth])"
        )
        assert all(overflow == "auto" and right <= PHONE["width"] for overflow, right, _ in boxes)
        assert sum(share == 1 for *_, share in boxes) >= 5  # most tables fit as they are
        assert tab.page.evaluate(FAINT, 4.5) == []
        assert not tab.problems
    finally:
        tab.context.close()


def test_momentum_is_copied(tab):
    tab.open("view=curve&kind=constant&along=R&from_R=100")
    assert tab.page.is_hidden("#field-nesterov")
    before = risk_on_screen(tab)
    tab.page.fill("#field-beta", "0.9")
    tab.page.check("#field-nesterov")
    tab.settle()
    assert risk_on_screen(tab) != before
    command = tab.copied("#copy-command")
    assert "--schedule constant -L 30000 --momentum 0.9 --nesterov" in command
    assert "Nesterov's momentum 0.9" in tab.page.inner_text("#numbers")
    tab.page.select_option("#field-kind", "wsd")
    tab.settle()
    assert tab.page.is_hidden("#field-beta")
    assert "--momentum" not in tab.copied("#copy-command")


@pytest.mark.slow
def test_the_planner_plans_one_pass_in_the_background(tab):
    tab.open("view=plan&kind=block&compute=1e8&budget_tokens=1e5&plan_d=64&max_P=64")
    tab.page.check("#field-one_pass")
    assert tab.page.locator("#status progress").count() == 1
    assert tab.page.locator("#numbers .tile").count() == 0  # nothing of the other plan
    tab.slide("budget_tokens", 700)  # stops that job, and starts another
    tab.page.fill("#field-budget_tokens", "1e5")
    tab.settle()
    tiles = [tile.split("\n")[1] for tile in tab.page.locator(".tile").all_inner_texts()[:4]]
    plan = loads(run(tab.copied("#copy-command") + " --json"))["finite"]
    assert tiles == [f"{plan[name]:,}" for name in ("M", "batch", "P", "L")]
    assert tab.page.inner_text("#status") == ""
    tab.page.uncheck("#field-one_pass")
    tab.settle()
    assert "--one-pass" not in tab.copied("#copy-command")


def test_the_copied_command_and_python_give_longer_or_more(tab):
    tab.open("view=tradeoff&tests=64")
    assert "cross" not in tab.page.inner_text("#flags")
    check_copies(tab, tab.curve("own length (the paper)") + tab.curve("length 64"))


def test_the_share_of_the_last_phase_is_marked_and_the_copies_give_the_ladders(tab):
    tab.open("view=ladders&M=16&ladder_d=64&kind=constant&L=3000&long=256&share=0.3")
    assert tab.page.is_hidden("#field-N")
    assert tab.page.is_hidden("#field-one_pass")
    marked = "() => { const t = document.getElementById('plot').data.at(-1); return [t.x[0], t.y[0]]; }"
    before = tab.page.evaluate(marked)
    assert before[0] == 0.3
    assert before[1] in tab.curve("2 first, 256 last")
    tab.slide("share", 500)
    share, risk = tab.page.evaluate(marked)
    assert share == 0.5 != before[0]
    assert risk in tab.curve("2 first, 256 last")
    document = loads(run(tab.copied("#copy-command") + " --json"))
    for name, way in (
        ("2 first, 256 last", "short-to-long"),
        ("256 first", "long-to-short"),
        ("mixed", "mixed"),
    ):
        told = [row["against"] for row in document["rows"] if row["name"] == way]
        assert tab.curve(name) == pytest.approx(told, rel=ROUNDING)
    printed = run_python(tab.copied("#copy-python"))
    reducible = [row["reducible"] for row in document["rows"]]
    assert [float(row[-1]) for row in printed] == pytest.approx(reducible, rel=ROUNDING)
    assert "only 2" in tab.page.inner_text("#numbers")
    tab.page.fill("#field-long", "2")
    tab.page.wait_for_selector(".field.invalid[data-name=long]")


def test_the_copied_command_and_python_give_the_spectrum(tab):
    tab.open("view=spectrum&d=inf&rho=0.6")
    j, initial, innovation, total = tab.page.evaluate(
        "() => { const t = document.getElementById('plot').data;"
        " return [t[0].x, t[0].y, t[1].y, t[2].y].map(column => Array.from(column)); }"
    )
    answer = loads(run(tab.copied("#copy-command") + " --json"))
    names = ("j", "initial", "innovation", "total")
    assert [[row[name] for row in answer["rows"]] for name in names] == [j, initial, innovation, total]
    marks = tab.page.inner_text("#plot")
    assert all(
        f"{sign} = {answer['marks'][name]:.3g}" in marks for sign, name in (("κ", "kappa"), ("M", "M"))
    )
    shown = dict(
        row.split("\t")[:2] for row in tab.page.locator("#numbers tbody tr").all_inner_texts()
    )  # the name and its meaning, the value
    for name in ("P_M", "P_R"):
        row = next(key for key in shown if key.startswith(name.replace("_", "")))
        assert float(shown[row]) == pytest.approx(answer["marks"]["orders"][name], rel=1e-3)
    learned = next(key for key in shown if key.startswith("learned"))
    assert float(shown[learned]) == pytest.approx(answer["marks"]["learned_dimensions"], rel=1e-3)
    columns = ", ".join(f"row[{name!r}]" for name in names)
    rest = run_python(tab.copied("#copy-python"), columns=columns)
    printed = [[float(word) for word in row] for row in rest]
    assert printed == [list(row) for row in zip(j, initial, innovation, total, strict=True)]


@pytest.mark.slow
def test_the_planner_plans_and_copies(tab):
    tab.open("view=plan&compute=200&budget_tokens=50&plan_d=64")
    tab.page.wait_for_selector(".tiles")
    best = [tile.split("\n")[1] for tile in tab.page.locator(".tile").all_inner_texts()[:4]]
    plan = loads(run(tab.copied("#copy-command") + " --json"))
    assert best == [f"{plan['finite'][name]:,}" for name in "MNPL"]
    columns = ", ".join(f"row[{name!r}]" for name in "MNPL")
    assert run_python(tab.copied("#copy-python"), columns=columns)[0] == [
        str(plan["finite"][name]) for name in "MNPL"
    ]
    assert "free: ceilings" in tab.page.inner_text("#numbers")
    shown = tab.page.locator("#notes li").all_inner_texts()
    assert len(shown) == len(plan["notes"])
    said = [
        words.rstrip(".") for words in re.findall(r"relative error[^;\n]*", tab.page.inner_text("#numbers"))
    ]
    assert len(said) == len(set(said)) > 0  # each accuracy once
    curve, optimum = tab.page.evaluate(
        "() => document.getElementById('plot').data.map(t => [t.mode, t.text])"
    )
    sizes = [", ".join(f"{n} = {row[n]:,}" for n in "MNPL") for row in plan["finite"]["isoflop"]]
    assert curve == ["lines+markers", sizes]  # a mark where something was computed
    assert optimum == ["markers", ["optimum: " + ", ".join(f"{n} = {plan['finite'][n]:,}" for n in "MNPL")]]


LEAVE = """view => {
  document.getElementById('tab-' + view).click();
  return [document.querySelectorAll('#plot .main-svg, #numbers *, #notes li, #flags li').length,
    document.getElementById('copies').hidden, document.getElementById('save-csv').disabled];
}"""


@pytest.mark.slow
def test_a_view_shows_nothing_of_the_one_before(tab):
    tab.open("view=curve&compute=200&budget_tokens=50")
    for view in ("plan", "ladders", "spectrum", "panels", "curve"):
        assert tab.page.evaluate(LEAVE, view) == [0, True, True]  # in the click itself, so before any answer
        tab.settle()
        assert tab.page.locator("#numbers table").count()
        assert "cross" not in tab.page.inner_text("#flags")
        assert tab.page.is_enabled("#save-csv")


@pytest.mark.slow
def test_the_planner_has_the_commands_d_and_shows_each_length(tab):
    tab.open("view=plan&d=64&compute=200&budget_tokens=50")
    assert tab.page.is_hidden("#field-d")
    assert tab.page.input_value("#field-plan_d") == "inf"
    command = tab.copied("#copy-command")
    assert "-d inf" in command
    assert "d=math.inf" in tab.copied("#copy-python")
    points = loads(run(command + " --json"))["finite"]["by_length"]
    least = min(point["reducible"] for point in points)
    rows = tab.page.locator("#numbers table[aria-label^=Longer] tbody tr").all_inner_texts()
    shown = [[cell.replace(",", "") for cell in row.split("\t")] for row in rows]
    assert [[row[k] for k in (0, 2, 3, 4)] for row in shown] == [[str(p[n]) for n in "PMNL"] for p in points]
    risks = [point["reducible"] / least for point in points]
    assert [float(row[1]) for row in shown] == pytest.approx(risks, rel=1e-3)  # four digits
    tab.page.click("#tab-curve")
    assert tab.page.input_value("#field-d") == "64"
    assert tab.page.is_hidden("#field-plan_d")


def test_guides_are_named_and_end_with_the_regimes(tab):
    names = "() => document.getElementById('plot').data.filter(t => t.showlegend !== false).map(t => t.name)"
    tab.open("view=curve&style=lines&scale=log")
    assert tab.page.evaluate(names).count("theorem's guides (dotted)") == 1
    for style in ("lines", "stacked"):
        tab.open(f"view=curve&style={style}&theta=0.8")
        assert not [name for name in tab.page.evaluate(names) if "guide" in name]
        assert "Outside the theorem" in tab.page.inner_text("#plot")
    tab.open("view=curve&style=lines&alpha=0.5")
    assert not [name for name in tab.page.evaluate(names) if "guide" in name]
    assert tab.page.inner_text("#regime") == "Outside the theorem"
    assert tab.page.get_attribute("#regime", "data-regime") == "outside"
    assert "α > 1" in tab.page.inner_text("#sentence")


TRACES = """kind => document.getElementById('plot').data.filter(t => t.name.startsWith(kind))
  .map(t => [t.xaxis, Array.from(t.x), Array.from(t.y)])"""


def check_guides(tab, slopes):
    """Each curve has the report's guide at its own x, and a variance panel's sweeps meet at x = 1."""
    measured, guides = tab.page.evaluate(TRACES, "against"), tab.page.evaluate(TRACES, "guide")
    assert [trace[:2] for trace in guides] == [trace[:2] for trace in measured]
    drawn = [fit_power_law(x, y).slope for _, x, y in guides]
    assert drawn == pytest.approx([row["guide"] for row in slopes], rel=1e-9)  # summed in another order
    for (_, _, y), (_, _, guide), row in zip(measured, guides, slopes, strict=True):
        if row["regime"] == "I":  # the paper's scale: the mean ratio is 1
            ratios = [here / there for here, there in zip(y, guide, strict=True)]
            assert sum(ratios) / len(ratios) == pytest.approx(1, rel=1e-12)
    # Panel (f) trains for no L of its meeting point.
    for axis, label, sweeps in (("3", "N/4,096; P/4,096; R/578", 3), ("6", "N/65,536; P/40; R/2,400", 2)):
        meeting = [y[x.index(1)] for name, x, y in measured if name == f"x{axis}" and 1 in x]
        assert meeting == pytest.approx([meeting[0]] * sweeps, rel=1e-12)
        shown = tab.page.evaluate(f"() => document.getElementById('plot').layout.xaxis{axis}.title.text")
        assert shown.split() == label.split()


def test_an_overlay_is_drawn_and_copied(tab, tmp_path):
    folder = str(tmp_path / "run")
    reproduce(folder, method="equivalent", panels="f", quick=True, overlay=["exact"])
    answer = to_json(panels(folder)).decode()
    tab.page.route("**/api/panels", lambda route: route.fulfill(body=answer, content_type="application/json"))
    tab.open("view=curve")
    tab.open("view=panels")
    tab.page.unroute("**/api/panels")
    assert len(tab.page.evaluate(TRACES, "exact method")) == 3
    assert "; long dashes: exact method" in tab.page.inner_text("#plot")
    command = tab.copied("#copy-command")
    assert (
        command
        == f"seqlaw reproduce --out {folder} --method=equivalent --seed=0 --quick --panels=f --overlay=exact"
    )
    assert "overlay=['exact']" in tab.copied("#copy-python")


@pytest.mark.slow
def test_the_six_panels_are_drawn_and_their_command_gives_their_slopes(tab, tmp_path):
    tab.open("view=panels")
    assert tab.page.locator("#plot .subplot").count() == 6
    shown = [row.split("\t") for row in tab.page.locator("#numbers tbody tr").all_inner_texts()]
    assert len(shown) == 10
    slopes = loads(run(tab.copied("#copy-command") + " --json", tmp_path))["slopes"]
    expected = [[s["regime"], f"{s['quantity']} vs. {s['against']}", f"{s['slope']:.3f}"] for s in slopes]
    assert [row[:3] for row in shown] == expected
    check_guides(tab, slopes)
    printed = run_python(tab.copied("#copy-python"), tmp_path)
    assert [f"{float(row[-1]):.3f}" for row in printed] == [row[2] for row in shown]


def test_the_numbers_and_the_picture_can_be_saved(tab, tmp_path):
    tab.open("view=curve")
    for kind, start in (("csv", b"method,"), ("png", b"\x89PNG"), ("svg", b"<svg")):
        with tab.page.expect_download() as waiting:
            tab.page.click(f"#save-{kind}")
        path = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(path)
        assert path.name == f"seqlaw-curve.{kind}"
        assert path.read_bytes().startswith(start)
    rows = (tmp_path / "seqlaw-curve.csv").read_text().splitlines()
    column = rows[0].split(",").index("reducible")
    assert [float(row.split(",")[column]) for row in rows[1:]] == risk_on_screen(tab)


def test_the_keyboard_is_enough(tab):
    tab.open("view=curve")
    tab.page.focus("#tab-curve")
    tab.page.keyboard.press("ArrowLeft")
    tab.settle()
    assert tab.page.get_attribute("#tab-spectrum", "aria-selected") == "true"
    assert tab.page.evaluate("() => document.activeElement.id") == "tab-spectrum"
    tab.page.focus("input[name=theta-slider]")
    before = tab.page.input_value("#field-theta")
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("ArrowRight")
    assert tab.page.input_value("#field-theta") != before
    unnamed = tab.page.evaluate(
        "() => Array.from(document.querySelectorAll('input, select, button'))"
        ".filter(n => !(n.labels?.length || n.getAttribute('aria-label') || n.textContent.trim())).length"
    )
    assert unnamed == 0


OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll('.card, .tabs, .top')].filter(n => n.offsetParent && !n.hidden)
    .map(n => [n.className, n.getBoundingClientRect()]);
  const out = [];
  for (const [a, p] of boxes) for (const [b, q] of boxes)
    if (a < b && p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 1 && q.top < p.bottom - 1)
      out.push([a, b]);
  const legend = document.querySelector('#plot .legend')?.getBoundingClientRect();
  const title = document.querySelector('#plot .gtitle')?.getBoundingClientRect();
  if (legend && title && legend.top < title.bottom - 2) out.push(['legend', 'title']);
  const plot = document.getElementById('plot').getBoundingClientRect();
  if (title && title.right > plot.right + 1) out.push(['title', 'edge']);
  const drawn = document.querySelector('#plot .main-svg').getBoundingClientRect();
  if (Math.abs(drawn.width - plot.width) > 1 || Math.abs(drawn.height - plot.height) > 1)
    out.push(['picture', 'frame']);
  return out;
}"""


CUT = """() => [...document.querySelectorAll('#numbers .scroll, .tile b')]
  .filter(n => n.scrollWidth > n.clientWidth + 1).map(n => n.textContent)"""


def check_sliders_beside_the_picture(tab):
    """A narrow page begins with picture and numbers; its controls unfold under the picture, which stays."""
    tab.open("view=curve")
    top, bottom = (tab.page.locator(name).bounding_box()["y"] for name in ("#plot", "#numbers"))
    assert top < PHONE["height"] / 2
    assert bottom < PHONE["height"]
    assert tab.page.is_hidden("#field-theta")
    tab.page.click("#fold > summary")
    for name in ("theta", "gamma"):  # near the top of the controls, and far down
        before = risk_on_screen(tab)
        tab.page.focus(f"input[name={name}-slider]")
        tab.page.keyboard.press("ArrowRight")
        tab.settle()
        assert risk_on_screen(tab) != before
        plot = tab.page.locator("#plot").bounding_box()
        slider = tab.page.locator(f"input[name={name}-slider]").bounding_box()
        assert plot["y"] >= 0
        assert plot["y"] + plot["height"] <= slider["y"]
        assert slider["y"] + slider["height"] <= PHONE["height"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "viewport", [pytest.param(WIDE, marks=pytest.mark.slow), PHONE], ids=["wide", "phone"]
)
def test_every_view_fits_its_screen(browser, address, viewport):
    tab = Tab(browser, address, viewport)
    try:
        largest = "plan&compute=1e26&budget_tokens=1e15"
        once = [f"{view}&kind=block&one_pass=on" for view in ("curve&along=b&best=on", "tradeoff")]
        for view in (
            "spectrum",
            "curve",
            "tradeoff",
            *once,
            "plan",
            largest,
            "ladders",
            "panels",
            "spectrum",
        ):
            tab.open(f"view={view}")  # the last again, after a larger one
            width = tab.page.evaluate("() => document.documentElement.scrollWidth")
            assert width <= viewport["width"], view
            assert tab.page.evaluate(OVERLAPS) == [], view
            assert tab.page.evaluate(CUT) == [], view
        if viewport is PHONE:
            check_sliders_beside_the_picture(tab)
        assert not tab.problems
        assert all(url.startswith((address, "about:", "data:")) for url in tab.requests)
    finally:
        tab.context.close()


def drag(tab, name, moves=80):
    slider = tab.page.locator(f"input[name={name}-slider]")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    y, left = box["y"] + box["height"] / 2, box["x"] + 0.2 * box["width"]
    tab.page.mouse.move(left, y)
    tab.page.mouse.down()
    for k in range(moves):
        tab.page.mouse.move(left + k * 0.5 * box["width"] / moves, y)
        time.sleep(0.015)
    tab.page.mouse.up()


@pytest.mark.parametrize("view", ["curve", "plan"])
def test_a_fast_drag_follows_the_slider_and_queues_nothing(tab, view):
    """How fast it follows is measured by benchmarks/bench_web.py; here that nothing stale piles up."""

    def asked():
        return len([url for url in tab.requests if url.endswith(f"/api/{view}")])

    tab.open(f"view={view}")
    tab.page.evaluate("() => performance.clearMeasures()")
    before, picture = asked(), tab.page.evaluate(PICTURE)
    drag(tab, "theta")
    released = asked()
    tab.settle()
    drawn = tab.page.evaluate(
        "() => performance.getEntriesByName('slider-to-picture').map(e => Math.round(e.duration))"
    )
    print(f"slider to picture, {view}: {drawn} ms")
    assert drawn  # the picture moves while the slider does
    # One question at a time: never more questions than answers drawn, but for the last ones.
    assert released - before <= len(drawn) + 2
    assert asked() - released <= 2  # the newest that waited, and the one at rest
    assert tab.page.evaluate(PICTURE) != picture
    assert tab.page.inner_text("#regime") == "Regime I"
    if view == "curve":
        assert len(risk_on_screen(tab)) > 20  # at rest, all the points


def test_the_plan_follows_a_slider_that_is_still_held(tab):
    tab.open("view=plan")
    sizes = "() => [...document.querySelectorAll('.tile b')].map(node => node.textContent)"
    legend = "() => document.getElementById('plot').data[1].name"
    before, plot = tab.page.evaluate(sizes), tab.page.evaluate(PICTURE)
    tab.page.eval_on_selector(
        "input[name=compute-slider]",
        "node => { node.value = 700; node.dispatchEvent(new Event('input', {bubbles: true})); }",
    )  # no `change`: the hand has not let go
    tab.settle()
    after = tab.page.evaluate(sizes)
    assert int(after[0].replace(",", "")) > int(before[0].replace(",", ""))  # more compute, a wider student
    assert tab.page.evaluate(PICTURE) != plot
    named = ", ".join(f"{name} = {size}" for name, size in zip("MNPL", after, strict=False))
    assert tab.page.evaluate(legend) == f"optimum: {named}"  # tiles and picture are of one answer
    assert "C = 1e20" in tab.page.inner_text("#plot")
