#!/usr/bin/env python3
"""Writes down every byte that is exchanged with an engine, both ways, per connection, in order.

    recording_proxy.py --to HOST:PORT --into DIRECTORY [--port N]

Prints "ready port=N". Each connection is a file of its own, DIRECTORY/000001.wire and so on, of frames: a line
    > LENGTH SECONDS        to the engine (<: from it), so many bytes follow; SECONDS since the proxy began
and then the bytes. A frame is on file before its bytes go on, so what anybody has read was written down before.
`| 0 SECONDS` is the connection's end. wire.py reads these files as HTTP.
"""
import argparse
import os
import select
import signal
import socket
import sys
import threading
import time

PART = 1 << 16


class Connection:
    """One client's connection, and ours to the engine for it; in a thread of its own."""

    def __init__(self, client, engine_address, path, began):
        self.client, self.address, self.began = client, engine_address, began
        self.file = open(path, "xb", buffering=0)

    def note(self, way, data=b""):
        self.file.write(b"%s %d %.6f\n" % (way, len(data), time.monotonic() - self.began) + data)

    def pass_on(self, source, target, way):
        """False at the source's end."""
        data = source.recv(PART)
        if data:
            self.note(way, data)
            target.sendall(data)
        return bool(data)

    def run(self):
        try:
            with self.client, socket.create_connection(self.address) as engine:
                for one in (self.client, engine):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ways = {self.client: (engine, b">"), engine: (self.client, b"<")}
                while all(self.pass_on(one, *ways[one]) for one in select.select(list(ways), [], [])[0]):
                    pass
        except OSError:
            pass  # one side is gone; the other is told by the end of its connection
        self.note(b"|")
        self.file.close()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--to", required=True, metavar="HOST:PORT")
    arguments.add_argument("--into", required=True, metavar="DIRECTORY")
    arguments.add_argument("--port", type=int, default=0, help="default: a free one")
    options = arguments.parse_args()
    host, _, port = options.to.rpartition(":")
    os.makedirs(options.into, exist_ok=True)
    listening = socket.create_server(("127.0.0.1", options.port), backlog=128)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"ready port={listening.getsockname()[1]}", flush=True)
    began, count = time.monotonic(), 0
    while True:
        client, _ = listening.accept()
        count += 1
        connection = Connection(client, (host, int(port)), os.path.join(options.into, f"{count:06}.wire"), began)
        threading.Thread(target=connection.run, daemon=True).start()


if __name__ == "__main__":
    main()
