"""A handler that comes with a task, in a test: it speaks frames with nothing but the standard library."""
import json
import os
import socket
import struct
import sys

wire = socket.socket(fileno=int(os.environ["SLUICE_HANDLER_FD"]))


def packed(value):
    if isinstance(value, str):
        raw = value.encode()
        return b"\xda" + struct.pack(">H", len(raw)) + raw
    return b"\xcb" + struct.pack(">d", value) if isinstance(value, float) else b"\xce" + struct.pack(">I", value)


def say(name, **fields):
    body = packed(name) + b"\xde" + struct.pack(">H", len(fields))
    body += b"".join(packed(key) + packed(value) for key, value in fields.items())
    wire.sendall(struct.pack(">I", len(body)) + body)


def hear():
    head = wire.recv(4, socket.MSG_WAITALL)
    return wire.recv(struct.unpack(">I", head)[0], socket.MSG_WAITALL) if head else sys.exit()


role, what = sys.argv[1:3]
offered = "another" if what == "other" else os.environ["SLUICE_HANDLER"]
if what == "exits":
    sys.exit(3)
say("handler.hello", protocol=1, offers=json.dumps([{"role": role, "name": offered, "doc": "It is the task's."}]))
begin = hear()
if what == "dies":
    os._exit(3)
if what == "asks":
    say("handler.exec", id=1, call=1, command="true")
    refused = b"can run commands there" in hear()
if role == "evaluator":
    left = open("left").read() if os.path.exists("left") else "nothing"
    say("handler.score", id=1, reward=0.5 if what == "asks" and refused else 1.0, detail=left)
elif role == "agent":
    print("working")
    open("made", "w").write("by the agent")
    say("handler.sample", id=1, call=1)
    hear()
    say("handler.end", id=1, answer="done by " + os.environ["SLUICE_STAGE"])
else:
    say("handler.output", id=1, text="the tool sees " + ",".join(sorted(os.listdir("."))))
hear()
