"""A real headless Chromium for tests and benchmarks of pages, spoken to over a pipe (Chrome
DevTools Protocol).

    with Chromium() as browser:
        browser.open(page)
        browser.run("document.title")

Needs the program `chromium`, `chromium-browser` or `google-chrome`, and nothing else; `found` looks
for it.
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

FLAGS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-sync",
    ),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe"),
)
KEYS = {"ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "End": 35, "Home": 36,
        "Escape": 27, "Tab": 9}  # fmt: skip


def found() -> str | None:
    """The program, or None where there is none."""
    return next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )


class Chromium:
    """One browser with one page. `messages`: what the page wrote to its console, its errors, and
    what it asked for.
    """

    def __init__(self, width: int = 1400, height: int = 900, timeout: float = 60):
        self.size, self.timeout = (width, height), timeout
        self.messages: list[str] = []
        self.requests: list[str] = []
        self._buffer, self._number = b"", 0

    def __enter__(self) -> "Chromium":
        program = found()
        assert program is not None, "no Chromium"
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def pipes() -> None:  # the browser reads from 3 and writes to 4
            ends = os.dup(to_browser), os.dup(from_browser)
            for number, end in zip(
                (3, 4), (os.dup2(ends[0], 103), os.dup2(ends[1], 104)), strict=True
            ):
                os.dup2(end, number)

        self._process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"],
            preexec_fn=pipes, close_fds=False, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.resize(*self.size)
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._write)
        os.close(self._read)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result; RuntimeError where it has none."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + self.timeout
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError(f"Chromium did not answer within {self.timeout:g} s")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise RuntimeError("Chromium has ended")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.messages.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled":
            self.messages.append(" ".join(str(each.get("value")) for each in parameters["args"]))
        elif method == "Log.entryAdded":
            self.messages.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        return message

    def resize(self, width: int, height: int, phone: bool = False) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def scheme(self, name: str) -> None:
        """light or dark"""
        self.send(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}]
        )

    def open(self, page: Path, state: str = "read") -> float:
        """Open a file; returns the seconds until it has reached this state (`data-state` of its
        body).
        """
        start = time.perf_counter()
        self.send("Page.navigate", url=page.resolve().as_uri())
        self.wait(
            f"document.body?.dataset.state === {state!r} || document.body?.dataset.state === 'read'"
        )
        return time.perf_counter() - start

    def wait(self, condition: str) -> None:
        end = time.monotonic() + self.timeout
        while True:
            try:
                if self.run(f"Boolean({condition})"):
                    return
            except RuntimeError as error:
                if "context" not in str(error):  # the page before was left meanwhile
                    raise
            if time.monotonic() > end:
                raise RuntimeError(
                    f"{condition} did not come true within {self.timeout:g} s: {self.messages[-3:]}"
                )
            time.sleep(0.01)

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, of a promise when it is fulfilled."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def cpu(self) -> float:
        """Seconds of processor time that all processes of the browser have taken so far."""
        ticks = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                fields = path.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self._process.pid:  # the session
                    ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def press(self, key: str) -> None:
        code = KEYS.get(key)
        parameters = {"key": key, **({"windowsVirtualKeyCode": code} if code else {"text": key})}
        self.send("Input.dispatchKeyEvent", type="keyDown", **parameters)
        self.send("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def picture(self, path: Path) -> None:
        path.write_bytes(
            base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])
        )
