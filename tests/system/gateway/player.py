"""The gateway's API played from a pretended service (worlds.py), so that the page can be shown any state: `python3 player.py busy 5790`."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

import records
from worlds import World

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.environ.get("SLUICE_SOURCE_DIR") or os.path.abspath(os.path.join(HERE, "..", "..", ".."))


def put_together():
    """The page and its policy, as the build makes them."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cmake", f"-DOUTPUT={folder}", "-P", os.path.join(SOURCE, "client", "gateway", "page", "embed.cmake")], check=True)
        with open(os.path.join(folder, "page.html"), "rb") as page, open(os.path.join(folder, "policy.txt"), encoding="utf-8") as policy:
            return page.read(), policy.read()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", kind="application/json", **headers):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, reason, text):
        self.answer(status, {"error": {"reason": reason, "text": text}})

    def is_known(self):
        return not self.server.world.needs_login or "session=yes" in self.headers.get("Cookie", "")

    def do_GET(self):
        where = urlsplit(self.path)
        self.server.asked.append(self.path)
        parts = [unquote(part) for part in where.path.split("/")[1:]]
        try:
            if where.path == "/":
                page, policy = self.server.page
                self.answer(200, page, "text/html; charset=utf-8", **{"Content-Security-Policy": policy})
            elif parts[:3] == ["api", "v1", "me"]:
                self.answer(200, {"name": "alice", "role": "admin", "needs_login": not self.is_known()})
            elif not self.is_known():
                self.refuse(401, "not-allowed", "log in first")
            elif parts[:2] == ["api", "v1"]:
                self.get(parts[2:], dict(parse_qsl(where.query)))
            else:
                self.refuse(404, "not-found", "there is nothing of that name")
        except (BrokenPipeError, ConnectionResetError):
            pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.path == "/api/v1/login" and body.get("token") == "secret":
            self.answer(204, **{"Set-Cookie": "session=yes; HttpOnly; SameSite=Strict; Path=/"})
        elif self.path == "/api/v1/logout":
            self.answer(204, **{"Set-Cookie": "session=; Max-Age=0; HttpOnly; SameSite=Strict; Path=/"})
        else:
            self.refuse(401, "not-allowed", "this token is not known")

    def get(self, parts, query):
        world = self.server.world
        if parts == ["live"]:
            self.live()
        elif parts == ["status"]:
            self.answer(200, world.status())
        elif parts == ["rollouts"]:
            self.answer(200, world.rollouts(query))
        elif parts[0] == "rollouts" and parts[-1] == "events":
            self.events("/".join(parts[1:3]))
        elif parts[0] == "rollouts":
            self.rollout("/".join(parts[1:3]))
        else:
            self.refuse(404, "not-found", "there is nothing of that name")

    def rollout(self, name):
        world = self.server.world
        ended, live = world.find(name), next((one for one in world.live if one["rollout"] == name), None)
        if ended:
            self.answer(200, {**records.trajectory(ended), **world.trajectories.get(name, {})})
        elif live:
            self.answer(200, {key: live[key] for key in ("rollout", "stage", "state", "attempt", "worker", "turn", "tool", "why") if key in live})
        else:
            self.refuse(404, "not-found", "nobody knows this rollout")

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.close_connection = True

    def event(self, name, data):
        self.wfile.write(((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n").encode())
        self.wfile.flush()

    def live(self):
        self.begin_events()
        world = self.server.world
        self.event("history", world.ended[-500:])
        at = len(world.ended)
        beat = 0
        while not self.server.is_over:
            if beat % 10 == 0:
                self.event("status", world.status())
            if beat % 10 == 5 or beat == 0:
                self.event("live", {"rollouts": world.live[:200], "matched": len(world.live)})
            for one in world.ended[at:]:
                self.event("ended", one)
            at = len(world.ended)
            beat += 1
            time.sleep(0.1)

    def events(self, name):
        world = self.server.world
        live = next((one for one in world.live if one["rollout"] == name), None)
        self.begin_events()
        if live and live["state"] != "leased":
            self.event("", {"rollout": name, "events": [{"event": "state", **{key: live[key] for key in ("stage", "state", "attempt", "why") if key in live}}]})
            while not self.server.is_over:
                time.sleep(0.2)
            return
        for batch, pause in records.live_batches(name):
            self.event("", batch)
            time.sleep(pause)
            if self.server.is_over:
                return
        self.server.hold.wait(30)
        if live:
            world.live.remove(live)
            world.ended.append({**world.summary(0, int(time.time() * 1000), live["stream"]), "rollout": name, "group": name.rsplit("/", 1)[0], "outcome": "ok", "reward": 1.0})
        self.event("ended", {})


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, world, page=None, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.world, self.page, self.asked, self.is_over = world, page or put_together(), [], False
        self.hold = threading.Event()  # set: a live rollout may end
        self.hold.set()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a browser that went away
            super().handle_error(request, client_address)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.hold.set()
        self.shutdown()
        self.server_close()


def main():
    name, port = (sys.argv[1:] + ["busy", "5790"])[:2] if len(sys.argv) < 3 else sys.argv[1:3]
    world = World(name, live=2000 if name == "many" else 48)
    with Server(world, port=int(port)) as server:
        print(server.url, flush=True)
        while True:
            time.sleep(0.02 if name == "many" else 0.3)
            world.tick()


if __name__ == "__main__":
    main()
