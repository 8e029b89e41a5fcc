"""A browser, driven over WebDriver's HTTP interface with nothing but the standard library."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

SHIFT, LEFT, RIGHT, END, ESCAPE = "\ue008", "\ue012", "\ue014", "\ue010", "\ue00c"


def missing():
    """The programs that are needed and not there."""
    return [name for name in ("chromium", "chromedriver") if not shutil.which(name)]


class Browser:
    """One headless window. To be closed, also when a test fails."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={port}", "--silent"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            self._begin()
        except BaseException:
            self.driver.kill()
            self.driver.wait()
            raise

    def _begin(self):
        arguments = ["--headless=new", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,900"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "unhandledPromptBehavior": "ignore",
        }
        until = time.monotonic() + 60
        while True:
            try:
                begun = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except (ConnectionError, urllib.error.URLError) as error:
                refused = isinstance(getattr(error, "reason", error), ConnectionError)
                if not refused or time.monotonic() > until:
                    raise
                time.sleep(0.1)
        self.session = "/session/" + begun["sessionId"]

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode(errors='replace')[:600]}") from None

    def close(self):
        try:
            self._ask("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()

    def open(self, path):
        self._ask("POST", self.session + "/url", {"url": path.resolve().as_uri()})

    def run(self, script, *arguments):
        return self._ask("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self._ask("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind):
        return self._ask("POST", self.session + "/se/log", {"type": kind})

    def has_dialog(self):
        try:
            self._ask("GET", self.session + "/alert/text")
            return True
        except RuntimeError as error:
            assert "no such alert" in str(error), error
            return False

    def press(self, *keys):
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._perform({"type": "key", "id": "keys", "actions": actions})

    def mouse(self, *steps):
        """Steps are "down", "up", or a place on the screen."""
        actions = []
        for step in steps:
            if isinstance(step, str):
                actions.append({"type": "pointer" + step.capitalize(), "button": 0})
            else:
                actions.append({"type": "pointerMove", "duration": 20, "x": int(step[0]), "y": int(step[1])})
        self._perform({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions})

    def _perform(self, source):
        self._ask("POST", self.session + "/actions", {"actions": [source]})

    def window(self, width, height, phone=False):
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
        )

    def media(self, name="", **features):
        chosen = [{"name": key.replace("_", "-"), "value": value} for key, value in features.items()]
        self.devtools("Emulation.setEmulatedMedia", media=name, features=chosen)
