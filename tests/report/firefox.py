"""Firefox through WebDriver BiDi, its own protocol (https://w3c.github.io/webdriver-bidi/), with only the parts that the tests use.

Playwright requires its own build of Firefox, which no registry has.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from tornado.websocket import WebSocketClientConnection, websocket_connect

STARTS = 120
"""Time limit for start and replies in seconds. It is generous, because a busy machine is slow; it measures nothing."""


class Firefox:
    """A window of Firefox.

    Parameters
    ----------
    program : str
        The browser.
    home : Path
        A folder for all that it writes.
    dark : bool
        Whether pages are dark.
    """

    def __init__(self, program: str, home: Path, *, dark: bool = False) -> None:
        self.errors: list[str] = []
        # In a separate thread, because playwright's loop, which Chromium's tests leave running in their thread, permits no other.
        self._thread = ThreadPoolExecutor(1)
        self._runner = asyncio.Runner()
        self._socket: WebSocketClientConnection | None = None
        self._sent = 0
        profile = home / "profile"
        profile.mkdir(parents=True)
        # Firefox asks no questions at the start, and fetches nothing.
        (profile / "user.js").write_text(
            'user_pref("datareporting.policy.dataSubmissionEnabled", false);\n'
            'user_pref("network.captive-portal-service.enabled", false);\n'
            'user_pref("network.connectivity-service.enabled", false);\n'
            f'user_pref("layout.css.prefers-color-scheme.content-override", {0 if dark else 1});\n'
        )
        self.log = home / "firefox.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program,
                    "--headless",
                    "--no-remote",
                    "--remote-debugging-port=0",
                    "--profile",
                    profile,
                    "about:blank",
                ],
                env={**os.environ, "HOME": str(home), "MOZ_CRASHREPORTER_DISABLE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        try:
            self._socket = self._thread.submit(self._runner.run, self._connect()).result()
            self.send("session.new", capabilities={})
            self.send("session.subscribe", events=["log.entryAdded"])
            self.window = self.send("browsingContext.getTree")["contexts"][0]["context"]
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket:
            self._thread.submit(self._socket.close).result()
        self._process.terminate()
        try:
            self._process.wait(STARTS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()

    def send(self, method: str, /, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for the reply; errors that the page logs meanwhile are kept."""
        return self._thread.submit(self._runner.run, self._answer(method, parameters)).result()

    def goto(self, address: str) -> None:
        """Open a page, and wait until its scripts have run."""
        self.send("browsingContext.navigate", context=self.window, url=address, wait="complete")

    def resize(self, width: int, height: int) -> None:
        """Set the size of the page in CSS pixels."""
        viewport = {"width": width, "height": height}
        self.send("browsingContext.setViewport", context=self.window, viewport=viewport)

    def evaluate(self, expression: str) -> Any:
        """Return the JSON value of an expression in the page; a promise is awaited."""
        found = self.send(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression})))()",
            target={"context": self.window},
            awaitPromise=True,
        )
        if found["type"] != "success":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return json.loads(found["result"].get("value", "null"))

    def run(self, script: str) -> None:
        """Run a script in the page, regardless of the page's policy."""
        self.send("script.evaluate", expression=script, target={"context": self.window}, awaitPromise=False)

    def type(self, selector: str, text: str) -> None:
        """Replace the text of a field, key by key."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).select()")
        # U+E003 is the key Backspace.
        keys = [{"type": kind, "value": key} for key in f"\ue003{text}" for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": keys}
        self.send("input.performActions", context=self.window, actions=[source])

    async def _connect(self) -> WebSocketClientConnection:
        for _ in range(STARTS * 10):
            said = self.log.read_text(errors="replace")
            if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", said):
                return await websocket_connect(f"{found[1]}/session", max_message_size=1 << 28)
            if self._process.poll() is not None:
                break
            await asyncio.sleep(0.1)
        raise RuntimeError(f"Firefox did not start: {said}")

    async def _answer(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        return await asyncio.wait_for(self._send(method, parameters), STARTS)

    async def _send(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        assert self._socket is not None
        self._sent += 1
        await self._socket.write_message(json.dumps({"id": self._sent, "method": method, "params": parameters}))
        while True:
            message = await self._socket.read_message()
            if message is None:
                raise RuntimeError(f"Firefox is gone: {self.log.read_text(errors='replace')}")
            answer = json.loads(message)
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.errors.append(answer["params"]["text"])
            if answer.get("id") == self._sent:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
                result: dict[str, Any] = answer["result"]
                return result
