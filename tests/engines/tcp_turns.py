#!/usr/bin/env python3
"""An address behind which several servers stand: its connections lead to the ports given, each to the next one.

    tcp_turns.py PORT...

Prints "ready port=N".
"""
import itertools
import socket
import sys
import threading


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def main(ports):
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(f"ready port={listener.getsockname()[1]}", flush=True)
    for port in itertools.cycle(ports):
        client, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", port))
        for ends in ((client, server), (server, client)):
            threading.Thread(target=pump, args=ends, daemon=True).start()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main([int(port) for port in sys.argv[1:]])
