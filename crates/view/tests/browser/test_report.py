#!/usr/bin/env python3
"""The reports in a real browser. Needs chromium and chromedriver (Debian: chromium chromium-driver).

    cargo run -p antifreeze-view --example report -- target/reports
    python3 crates/view/tests/browser/test_report.py target/reports [folder for screenshots]
"""

import base64
import pathlib
import re
import sys
import time
import unittest

import driver

REPORTS = pathlib.Path("target/reports")
SHOTS = None

# The colours of each element with text of its own, and of what it stands on.
CONTRASTS = r"""
const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
const light = (rgb) => {
  const [r, g, b] = rgb.map((part) => {
    part /= 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour.slice(0, 3);
  }
  return [255, 255, 255];
};
const poor = [];
for (const element of document.querySelectorAll('body *')) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  const style = getComputedStyle(element);
  if (!own || !element.getClientRects().length || element.closest('title,desc,script,style')) continue;
  const colour = parse(element.namespaceURI.endsWith('svg') ? style.fill : style.color).slice(0, 3);
  const [a, b] = [light(colour), light(ground(element))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) poor.push([element.tagName, element.getAttribute('class'), ratio.toFixed(2)].join(' '));
}
return [...new Set(poor)];
"""


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = driver.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def open(self, name, width=1100, height=900, phone=False, scheme="light"):
        self.browser.media(prefers_color_scheme=scheme)
        self.browser.window(width, height, phone)
        self.browser.log("browser"), self.browser.log("performance")
        self.browser.open(REPORTS / f"{name}.html")

    def run_js(self, script, *arguments):
        return self.browser.run(script, *arguments)

    def shot(self, name):
        if SHOTS:
            image = self.browser.devtools("Page.captureScreenshot", captureBeyondViewport=True)
            (SHOTS / f"{name}.png").write_bytes(base64.b64decode(image["data"]))

    def chart(self):
        """The first chart, brought into view: left, right and middle on the screen."""
        return self.run_js("""
            const chart = document.querySelector('svg.chart');
            chart.scrollIntoView({block: 'center'});
            const box = chart.getBoundingClientRect();
            return {left: box.left, right: box.right, y: box.top + box.height / 2};""")

    def range(self):
        return self.run_js("""
            const root = document.querySelector('.timeline');
            return [Number(root.dataset.from), Number(root.dataset.to)];""")

    def texts(self, selector):
        return self.run_js(
            "return [...document.querySelectorAll(arguments[0])].map((element) => element.textContent);", selector
        )

    def test_no_report_complains_or_asks_the_network_for_anything(self):
        for name in ("leak", "hostile", "day"):
            with self.subTest(name):
                self.open(name)
                self.assertEqual(self.browser.log("browser"), [])
                asked = re.findall(r'\\?"url\\?":\\?"([^"\\]+)', str(self.browser.log("performance")))
                elsewhere = {url for url in asked if not url.startswith((REPORTS.resolve().as_uri(), "about:"))}
                self.assertEqual(elsewhere, set())
                self.assertEqual(self.run_js("return performance.getEntriesByType('resource').length"), 0)

    def test_nothing_in_a_record_becomes_markup_or_runs(self):
        self.open("hostile")
        self.assertFalse(self.browser.has_dialog())
        self.assertIsNone(self.run_js("return window.pwned ?? null;"))
        made = "return document.querySelectorAll('img, iframe, object, embed, link, form, script:not([type])').length;"
        self.assertEqual(self.run_js(made), 1, "our own script, and nothing else")
        handlers = """return [...document.querySelectorAll('*')].flatMap((element) =>
            element.getAttributeNames().filter((name) => name.startsWith('on')));"""
        self.assertEqual(self.run_js(handlers), [])
        shown = self.run_js("return document.body.innerText;")
        self.assertIn("<script>window.pwned=1;alert(1)</script>", shown)

    def test_were_markup_to_slip_in_it_would_still_not_run(self):
        self.open("hostile")
        self.run_js("""
            const script = document.createElement('script');
            script.textContent = 'window.pwned = 1';
            document.body.append(script);
            const image = document.createElement('div');
            image.innerHTML = '<img src=x onerror="window.pwned = 1"><b style="color: red" onclick="window.pwned = 1">x</b>';
            document.body.append(image);
            image.lastChild.click();""")
        self.assertIsNone(self.run_js("return window.pwned ?? null;"))
        self.assertIn("Content Security Policy", str(self.browser.log("browser")))

    def test_the_cursor_shows_values_in_every_chart(self):
        self.open("leak")
        at_rest = self.texts(".legend .value")
        chart = self.chart()
        self.browser.mouse(((chart["left"] + chart["right"]) / 2, chart["y"]))
        values = self.texts("figure:first-of-type .value")
        self.assertRegex(values[0], r"^8\.\d GB$")
        self.assertRegex(self.texts(".readout")[0], r"^02:11:0\d, 2 min 0\d s in")
        self.shot("cursor")
        cursors = "return [...document.querySelectorAll('.cursor')].map((cursor) => cursor.getAttribute('d'));"
        drawn = self.run_js(cursors)
        self.assertEqual(len(drawn), 11)
        self.assertEqual(len(set(drawn)), 1)
        self.browser.mouse((5, 5))
        self.assertEqual(self.texts(".legend .value"), at_rest)

    def test_the_cursor_tells_what_happened_there(self):
        self.open("leak")
        chart = self.chart()
        self.browser.mouse((chart["left"] + (chart["right"] - chart["left"]) * 120 / 252, chart["y"]))
        self.assertIn("memory grows 41 MB a second", self.texts(".readout")[0])

    def test_a_drag_zooms_and_a_double_click_shows_all_again(self):
        self.open("leak")
        self.assertEqual(self.range(), [0, 252])
        chart = self.chart()
        place = lambda share: (chart["left"] + (chart["right"] - chart["left"]) * share, chart["y"])
        ticks = self.texts(".ruler text")
        self.browser.mouse(place(0.5), "down", place(0.6), place(0.75), "up")
        low, high = self.range()
        self.assertAlmostEqual(low, 126, delta=2)
        self.assertAlmostEqual(high, 189, delta=2)
        self.assertNotEqual(self.texts(".ruler text"), ticks)
        self.shot("zoomed")
        box = self.run_js("return document.querySelector('svg.plot').getAttribute('viewBox').split(' ').map(Number);")
        self.assertAlmostEqual(box[0], 500, delta=8)
        self.assertAlmostEqual(box[2], 250, delta=8)
        # Two clicks are a double click only if the second comes soon.
        for _ in range(5):
            self.browser.mouse(place(0.5), "down", "up", "down", "up")
            if self.range() == [0, 252]:
                break
        self.assertEqual(self.range(), [0, 252])

    def test_the_keyboard_moves_zooms_and_resets(self):
        self.open("leak")
        self.run_js("document.querySelector('.ruler').focus();")
        self.browser.press(driver.RIGHT, driver.RIGHT, driver.RIGHT)
        first = self.texts(".readout")[0]
        self.assertRegex(first, r"^02:09:0\d, [\d.]+ s in")
        self.browser.press(driver.RIGHT)
        self.assertNotEqual(self.texts(".readout")[0], first)
        self.browser.press(driver.LEFT)
        self.assertEqual(self.texts(".readout")[0], first)
        spoken = self.run_js("return document.querySelector('.ruler').getAttribute('aria-valuetext');")
        self.assertRegex(spoken, r"this run 3\.\d GB")
        self.browser.press(driver.END)
        self.assertIn("4 min 12 s in", self.texts(".readout")[0])
        self.browser.press("+", "+")
        low, high = self.range()
        self.assertAlmostEqual(high - low, 63, delta=1)
        self.assertAlmostEqual(high, 252, delta=1)
        self.browser.press("-")
        low, high = self.range()
        self.assertAlmostEqual(high - low, 126, delta=1)
        self.browser.press(driver.ESCAPE)
        self.assertEqual(self.range(), [0, 252])

    def test_the_buttons_zoom_too(self):
        self.open("leak")
        self.run_js("document.querySelector('button.in').click();")
        self.assertEqual(self.range(), [63, 189])
        self.run_js("document.querySelector('button.all').click();")
        self.assertEqual(self.range(), [0, 252])

    def test_a_day_shows_its_last_minutes_by_themselves(self):
        self.open("day")
        self.assertEqual(len(self.run_js("return [...document.querySelectorAll('.timeline')].map(() => 1);")), 2)
        last = "return [...document.querySelectorAll('#end .ruler text')].map((text) => text.textContent);"
        self.assertTrue(any(text.startswith("24 h") for text in self.run_js(last)), self.run_js(last))
        self.assertEqual(self.texts("#end figure:first-of-type .value")[0], "highest 11 GB")

    def test_no_width_scrolls_sideways(self):
        for name in ("leak", "hostile", "day"):
            for width in (320, 360, 768, 1400):
                with self.subTest(name, width=width):
                    self.open(name, width, 740, phone=width < 500)
                    wide = self.run_js("return document.documentElement.scrollWidth;")
                    self.assertLessEqual(wide, width)
                    if width == 360:
                        self.shot(f"phone-{name}")

    def test_light_and_dark_can_be_read(self):
        grounds = set()
        for scheme in ("light", "dark"):
            with self.subTest(scheme):
                self.open("leak", scheme=scheme)
                self.assertEqual(self.run_js(CONTRASTS), [])
                grounds.add(self.run_js("return getComputedStyle(document.body).backgroundColor;"))
                self.shot(scheme)
        self.assertEqual(len(grounds), 2)

    def test_paper_has_everything_and_no_buttons(self):
        self.open("leak", scheme="dark")
        self.browser.media("print", prefers_color_scheme="dark")
        seen = """return [...document.querySelectorAll('button, .readout, .skip')]
            .filter((element) => element.getClientRects().length).length;"""
        self.assertEqual(self.run_js(seen), 0)
        self.assertEqual(self.run_js("return getComputedStyle(document.body).backgroundColor;"), "rgb(255, 255, 255)")
        self.assertEqual(self.run_js(CONTRASTS), [])
        clipped = """return [...document.querySelectorAll('pre')].filter((element) =>
            element.scrollHeight > element.clientHeight + 4 || element.scrollWidth > element.clientWidth + 4).length;"""
        self.assertEqual(self.run_js(clipped), 0)
        self.shot("print")

    def test_it_can_be_read_aloud(self):
        self.open("leak")
        self.assertEqual(self.run_js("return document.documentElement.lang;"), "en")
        levels = [int(tag[1]) for tag in self.run_js(
            "return [...document.querySelectorAll('h1, h2, h3, h4')].map((heading) => heading.tagName);")]
        self.assertEqual(levels[0], 1)
        self.assertTrue(all(after - before <= 1 for before, after in zip(levels, levels[1:])), levels)
        unnamed = """return [...document.querySelectorAll('svg[role=img]')].filter((chart) =>
            !chart.getAttribute('aria-label') || !chart.querySelector('desc').textContent).length;"""
        self.assertEqual(self.run_js(unnamed), 0)
        self.run_js("document.querySelector('.ruler').focus();")
        self.browser.press(driver.RIGHT)
        outline = "return getComputedStyle(document.querySelector('.ruler')).outlineStyle;"
        self.assertEqual(self.run_js(outline), "solid")

    def test_a_remedy_is_copied(self):
        self.open("leak")
        offered = self.run_js("return [...document.querySelectorAll('.paste pre')].map((code) => code.textContent);")
        self.assertEqual(offered[0], "del outputs[:-100]")
        self.assertIn("antifreeze run --resume=", offered[1])
        # It says so for two seconds: whoever looks later would miss it.
        self.run_js("""const button = document.querySelector('button.copy');
            window.said = [];
            new MutationObserver(() => window.said.push(button.textContent))
                .observe(button, {childList: true, characterData: true, subtree: true});
            button.click();""")
        deadline = time.monotonic() + 30
        said = []
        while not said and time.monotonic() < deadline:
            said = self.run_js("return window.said;")
            time.sleep(0.05)
        self.assertIn(said[0], ("Copied", "Press Ctrl-C"))


if __name__ == "__main__":
    if driver.missing():
        sys.exit(f"missing, please install: {' '.join(driver.missing())}")
    if len(sys.argv) > 1:
        REPORTS = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        SHOTS = pathlib.Path(sys.argv[2])
        SHOTS.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1])
