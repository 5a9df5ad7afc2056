"""A headless Chromium spoken to by its DevTools protocol, over a WebSocket written here: what the tests of the page drive."""
import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class WebSocket:
    """A client of one, of text messages: as much of RFC 6455 as a browser on this machine needs."""

    def __init__(self, url):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.rsplit(":", 1)
        self.socket = socket.create_connection((name, int(port)), timeout=30)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(65536)
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        assert b" 101 " in head.split(b"\r\n")[0], head

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = b"\x81" + (bytes([0x80 | size]) if size < 126 else struct.pack(">BH", 0xfe, size) if size < 65536
                          else struct.pack(">BQ", 0xff, size))
        masked = (int.from_bytes(data, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")).to_bytes(size, "big")
        self.socket.sendall(head + mask + masked)

    def take(self, size):
        while len(self.buffer) < size:
            more = self.socket.recv(1 << 20)
            if not more:
                raise ConnectionError("the browser is gone")
            self.buffer += more
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def receive(self, seconds):
        """The next message, or None."""
        self.socket.settimeout(max(0.01, seconds))
        try:
            whole = b""
            while True:
                if len(self.buffer) < 2:
                    self.buffer += self.socket.recv(1 << 20)
                    continue
                self.socket.settimeout(30)
                first, size = self.take(2)
                if size & 127 == 126:
                    size = struct.unpack(">H", self.take(2))[0]
                elif size & 127 == 127:
                    size = struct.unpack(">Q", self.take(8))[0]
                whole += self.take(size)
                if first & 0x80:
                    return whole.decode()
        except TimeoutError:
            return None


class Browser:
    """One page. `requests` are the addresses that it asked for, `errors` what its console complained of."""

    def __init__(self, width=1440, height=900, dark=False, phone=False):
        self.root = tempfile.mkdtemp(prefix="sluice-page-")
        self.number, self.answers, self.requests, self.errors = 0, {}, [], []
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0",
             f"--user-data-dir={self.root}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.socket = WebSocket(self.find_page())
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.size(width, height, phone)
        self.colours(dark)

    def find_page(self):
        marker, end = os.path.join(self.root, "DevToolsActivePort"), time.monotonic() + 60
        while time.monotonic() < end:
            try:
                with open(marker, encoding="utf-8") as text:
                    port = text.readline().strip()
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=10) as answer:
                    for target in json.load(answer):
                        if target["type"] == "page":
                            return target["webSocketDebuggerUrl"]
            except (OSError, ValueError):
                pass
            time.sleep(0.05)
        raise AssertionError("chromium did not start within 60 s")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.socket.close()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)

    def colours(self, dark):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def hear(self, seconds):
        text = self.socket.receive(seconds)
        if text is None:
            return
        said = json.loads(text)
        if "id" in said:
            self.answers[said["id"]] = said
        elif said["method"] == "Network.requestWillBeSent":
            self.requests.append(said["params"]["request"]["url"])
        elif said["method"] == "Runtime.exceptionThrown":
            details = said["params"]["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif said["method"] == "Runtime.consoleAPICalled" and said["params"]["type"] in ("error", "warning", "assert"):
            self.errors.append(str(said["params"]["args"]))
        elif said["method"] == "Log.entryAdded" and said["params"]["entry"]["level"] in ("error", "warning"):
            self.errors.append(f"{said['params']['entry']['text']} {said['params']['entry'].get('url', '')}")

    def call(self, method, **params):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        end = time.monotonic() + 30
        while self.number not in self.answers:
            self.hear(0.5)
            if time.monotonic() > end:
                raise AssertionError(f"{method} was not answered within 30 s")
        answer = self.answers.pop(self.number)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def value(self, expression):
        """What an expression of JavaScript comes to, as JSON."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, (expression, done["exceptionDetails"])
        return done["result"].get("value")

    def wait(self, expression, seconds=20):
        """Until it is true; returns its value."""
        end = time.monotonic() + seconds
        while True:
            value = self.value(f"(async (value) => (await value) instanceof Node ? true : value)({expression})")
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {expression}\nthe page says: {self.text()[:3000]}\nerrors: {self.errors}")
            self.hear(0.05)

    def wait_text(self, text, seconds=20):
        return self.wait(f"Boolean(document.body) && document.body.innerText.includes({json.dumps(text)})", seconds)

    def text(self):
        return self.value("document.body.innerText")

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def go(self, fragment):
        """To another panel of the page that is open."""
        self.value(f"void (location.hash = {json.dumps(fragment)})")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **({"text": key} if len(key) == 1 and kind == "keyDown" else {}),
                      windowsVirtualKeyCode={"Tab": 9, "Enter": 13, "ArrowRight": 39, "Escape": 27}.get(key, 0))

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def hover(self, selector):
        """The pointer over the first of it, once the page lies still."""
        self.wait(f"document.querySelector({json.dumps(selector)}) !== null")
        place = "(() => { const box = document.querySelector(%s).getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()" % json.dumps(selector)
        self.value(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        before = None
        while before != (now := self.value(place)):
            before = now
            self.value("new Promise((done) => setTimeout(done, 150))")
        self.move(*before)

    def picture(self, path, whole=False):
        done = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(done["data"]))
