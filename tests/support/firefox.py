"""Firefox in front of a real wiki, over WebDriver BiDi, which it speaks itself: no driver has to be installed."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.support.live_wiki import eventually

FIREFOX = os.environ.get("FIREFOX") or next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
NEEDS_FIREFOX = "no Firefox is installed: apt-get install firefox-esr, or set FIREFOX to where it is"
_LISTENING = re.compile("WebDriver BiDi listening on (.*)\n")
_SECONDS = 60.0
_PREFERENCES = (
    *("fission.autostart", "dom.ipc.processPrelaunch.enabled", "extensions.webextensions.remote"),
    *("browser.tabs.remote.separatePrivilegedContentProcess", "browser.newtab.preload"),
)
"""What starts processes that no test uses."""
CONTROL, ENTER, DOWN, ESCAPE = "\ue009", "\ue007", "\ue015", "\ue00c"


class Firefox:
    """A tab."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)
        self.faults: list[str] = []
        """What scripts could not do."""
        self._call("session.new", capabilities={})
        self._call("session.subscribe", events=["log.entryAdded"])
        self._tab = self._call("browsingContext.create", type="tab")["context"]
        self.resize(1280, 900)

    def resize(self, width: int, height: int) -> None:
        self._call("browsingContext.setViewport", context=self._tab, viewport={"width": width, "height": height})

    def open(self, url: str) -> None:
        self.wait_for('document.readyState === "complete"')  # a page that still loads would end the new one's loading
        self._call("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def ask(self, expression: str) -> Any:
        """Return the value of an expression."""
        asked = {"expression": f"JSON.stringify({expression})", "target": {"context": self._tab}, "awaitPromise": True}
        result = self._call("script.evaluate", **asked)
        if result["type"] != "success":
            raise AssertionError(result["exceptionDetails"]["text"])
        return json.loads(result["result"].get("value", "null"))

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true."""
        eventually(lambda: self.ask(f"Boolean({expression})"))

    def press(self, keys: Sequence[str], holding: str = "") -> None:
        """Press and release keys one after the other, while another one is held down."""
        presses = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        if holding:
            presses = [{"type": "keyDown", "value": holding}, *presses, {"type": "keyUp", "value": holding}]
        self._call("input.performActions", context=self._tab, actions=[{"type": "key", "id": "keyboard", "actions": presses}])

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._connection.recv(timeout=_SECONDS))
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.faults.append(answer["params"]["text"])
            if answer.get("id") == number:
                assert answer["type"] == "success", answer
                result: dict[str, Any] = answer["result"]
                return result


@contextmanager
def started_firefox(profile: Path) -> Iterator[Firefox]:
    """Start the browser with an empty profile; the test is left out where there is none."""
    if FIREFOX is None:
        pytest.skip(NEEDS_FIREFOX)
    command = [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0", "about:blank"]
    (profile / "user.js").write_text("".join(f'user_pref("{name}", false);\n' for name in _PREFERENCES))
    log = profile / "log"
    with ExitStack() as stack:
        output = stack.enter_context(log.open("w"))
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output))
        stack.callback(process.kill)
        address = eventually(lambda: _LISTENING.search(log.read_text()), _SECONDS, "Firefox listens").group(1)
        yield Firefox(stack.enter_context(connect(f"{address}/session", max_size=None)))
