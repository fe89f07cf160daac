"""Someone who reads a map page, in a browser or as data."""

import base64
import json
import re

import numpy as np
from selenium.webdriver.support.ui import WebDriverWait


def read_data(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


def unpack(code):
    return np.frombuffer(base64.b64decode(code), "<u2")


class Reader:
    """Someone who reads a map page in a browser."""

    def __init__(self, browser, folder):
        self.browser, self.file = browser, folder / "map.html"

    def open(self, page, width=1200, height=800, **metrics):
        self.file.write_text(page, "utf-8")
        features = [{"name": "prefers-reduced-motion", "value": "reduce"},
                    {"name": "prefers-color-scheme", "value": "light"}]  # fmt: skip
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.tell("Emulation.setEmulatedMedia", features=features)
        self.tell("Emulation.setDeviceMetricsOverride", **{**size, **metrics})
        self.tell("Input.dispatchMouseEvent", type="mouseMoved", x=0, y=0)
        for log in ("browser", "performance"):
            self.browser.get_log(log)
        self.browser.get(self.file.as_uri())
        self.wait()

    def tell(self, command, **values):
        return self.browser.execute_cdp_cmd(command, values)

    def run(self, script, *values):
        return self.browser.execute_script(script, *values)

    def wait(self):
        """Wait until the page has drawn what it shows."""
        self.browser.execute_async_script(
            "const ask = requestAnimationFrame, done = arguments[0]; ask(() => ask(done))"
        )

    def hears(self, words):
        """Wait until the page has said something to those who cannot see it."""
        WebDriverWait(self.browser, 5).until(lambda _: self.text("#said") == words)

    def find(self, selector):
        return self.browser.find_element("css selector", selector)

    def all(self, selector):
        return self.browser.find_elements("css selector", selector)

    def text(self, selector):
        return self.find(selector).text

    def press(self, selector, keys):
        self.find(selector).send_keys(keys)
        self.wait()

    def choose(self, selector, name):
        next(o for o in self.all(f"{selector} option") if o.text == name).click()
        self.wait()

    def click(self, selector):
        self.find(selector).click()
        self.wait()

    def place(self, row):
        """The window's pixel of a point."""
        return self.run(
            "const box = document.querySelector('canvas').getBoundingClientRect();"
            "const [x, y] = sentigeoMap.screenPosition(arguments[0]);"
            "return [box.x + x, box.y + y]",
            row,
        )

    def point(self, row, click=False):
        x, y = self.place(row)
        self.mouse("mouseMoved", x, y)
        if click:
            self.mouse("mousePressed", x, y)
            self.mouse("mouseReleased", x, y)
        self.wait()

    def mouse(self, kind, x, y):
        held = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
        self.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, **held)

    def touch(self, kind, *places):
        fingers = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        self.tell("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)

    def tap(self, row):
        self.touch("touchStart", self.place(row))
        self.touch("touchEnd")
        self.wait()

    def colour(self, row):
        """Red, green and blue in the middle of a point."""
        return self.run(
            "const [x, y] = sentigeoMap.screenPosition(arguments[0]).map(Math.round);"
            "const canvas = document.querySelector('canvas');"
            "return Array.from(canvas.getContext('2d').getImageData(x, y, 1, 1).data).slice(0, 3)",
            row,
        )
