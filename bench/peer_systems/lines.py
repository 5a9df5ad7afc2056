"""What a Python peer's process does, line by line: "flow COUNT WINDOW" is answered with rollouts/s, p50 and p99 in
milliseconds; "ask COUNT" with a line each time that more are answered.

A job is done by Peer.do_many: all at once or within a window, with a call for each that has ended. A run worker that is
to keep its jobs asks holds().
"""
import os
import sys
import time

TASK = b"x" * 1024
answers = sys.stdout


def holds(directory):
    """Whether this process keeps the job in hand: the first that asks while the file `hold` is there."""
    if not os.path.exists(f"{directory}/hold"):
        return False
    try:
        file = os.open(f"{directory}/held-by", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        with open(f"{directory}/held-by", encoding="ascii") as text:
            return text.read() == str(os.getpid())
    os.write(file, str(os.getpid()).encode())
    os.close(file)
    return True


def flow(peer, count, window):
    took, began = [], time.perf_counter()
    peer.do_many(count, window, lambda started: took.append(time.perf_counter() - started))
    rate = count / (time.perf_counter() - began)
    took.sort()
    print(f"{rate:.1f} {took[count // 2] * 1000:.3f} {took[count * 99 // 100] * 1000:.3f}", file=answers, flush=True)


def ask(peer, count):
    answered = []

    def hear(started):
        answered.append(started)
        print(len(answered), file=answers, flush=True)
    peer.do_many(count, count, hear)


def serve(create, *arguments):
    """Answers are all that goes to the standard output; what libraries print goes to the standard error."""
    global answers
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer = create(*arguments)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        command, *numbers = line.split()
        {"flow": flow, "ask": ask}[command](peer, *map(int, numbers))
