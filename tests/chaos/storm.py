"""Carries the plan out: hurts members, and undoes it when its time has come."""
import errno
import heapq
import os
import signal
import struct
import time

import hostile

BALLAST_BYTES = 1 << 16
DISK_FULL = 75         # the broker's exit status then
PAGE_BYTES = 4096      # of the disk: what is written reaches it by these
WAL_HEADER_BYTES = 32  # in one sector, and synced before anything follows it: no write is torn there


class Storm:
    """Over a Fleet. `counts`: harms done by name; `kills`: by whose; `damaged`: whether a layer was."""

    def __init__(self, fleet, nodes, store, disk):
        self.fleet, self.nodes, self.store, self.disk = fleet, nodes, store, disk
        self.due, self.serial = [], 0
        self.counts, self.kills, self.damaged = {}, {}, False
        self.cut_off, self.most_kib, self.measured = {}, 0, 0.0
        self.unsynced, self.lost_pages = os.path.join(fleet.root, "unsynced"), 0

    def later(self, seconds, action):
        self.serial += 1
        heapq.heappush(self.due, (time.monotonic() + seconds, self.serial, action))

    def watch_until(self, when):
        """Lets time pass: undoes what is due, notices who ended."""
        while True:
            now = time.monotonic()
            while self.due and self.due[0][0] <= now:
                heapq.heappop(self.due)[2]()
            for member in self.fleet.members.values():
                member.is_running()
            if self.fleet.surprises:
                raise AssertionError(self.fleet.surprises[0])
            if now - self.measured > 0.5:
                self.measured = now
                self.most_kib = max(self.most_kib, self.fleet.broker.resident_kib())
            if now >= when:
                return
            time.sleep(max(0.0, min(0.05, when - now)))

    def harm(self, step):
        self.counts[step.harm] = self.counts.get(step.harm, 0) + 1
        getattr(self, "do_" + step.harm)(step)

    # ---- members ---------------------------------------------------------------------------------

    def up(self, name):
        """The member, running and not stopped; waits for what is still to be undone."""
        member = self.fleet[name]
        end = time.monotonic() + 60
        while not member.is_running() or member.stopped:
            if time.monotonic() > end:
                raise AssertionError(f"{name} does not come back")
            self.watch_until(time.monotonic() + 0.02)
        return member

    def start(self, member):
        if not member.is_running() and not member.finished:
            member.start(wait=False)

    def do_kill(self, step):
        member = self.up(step.target)
        member.kill()
        kind = step.target.split("-")[0]
        self.kills[kind] = self.kills.get(kind, 0) + 1
        self.later(step.seconds, lambda: self.start(member))

    def do_freeze(self, step):
        member = self.up(step.target)
        member.send(signal.SIGSTOP)
        self.later(step.seconds, lambda: member.send(signal.SIGCONT))

    def do_end(self, step):
        member = self.up(step.target)
        member.send(signal.SIGTERM)

        def again():
            if member.is_running():
                self.later(0.1, again)
            else:
                self.start(member)
        self.later(step.seconds, again)

    # ---- peers, files, disks, links ------------------------------------------------------------------

    def do_hostile(self, step):
        front = self.fleet.url
        if self.fleet.port:
            host = front.rsplit(":", 1)[0]
            urls = [f"{host}:{self.fleet.port + k}" for k in range(3)]
        else:
            urls = [front[:-len("front")] + name for name in ("front", "sink", "feed")]
        hostile.at_all(step.dice, *urls)

    def do_torn(self, step):
        self.do_kill(step)
        wal = os.path.join(self.fleet.data, "ledger.db-wal")
        if os.path.exists(wal) and os.path.getsize(wal) > WAL_HEADER_BYTES:
            try:
                with open(wal, "ab") as file:
                    file.write(hostile.noise(step.dice))
            except OSError:  # the disk is full already
                pass

    def do_power(self, step):
        """Of what was written to the WAL and not synced, some pages reach the disk and some do not (frames of an
        earlier log, or none, are there then; an earlier header would be whole, with all its frames)."""
        self.do_kill(step)
        wal = os.path.join(self.fleet.data, "ledger.db-wal")
        with open(self.unsynced, "rb") as file:
            ends = struct.unpack("4Q", file.read(32))
        ranges = [range(*pair) for pair in (ends[:2], ends[2:]) if pair[1] > pair[0]]
        if not ranges or not os.path.exists(wal):
            return
        first = max(min(r.start for r in ranges), WAL_HEADER_BYTES)
        end = min(max(r.stop for r in ranges), os.path.getsize(wal))
        with open(wal, "r+b") as file:
            for at in range(first - first % PAGE_BYTES, end, PAGE_BYTES):
                if step.dice.random() < 0.5:
                    start, stop = max(at, first), min(at + PAGE_BYTES, end)
                    file.seek(start)
                    file.write(bytes(stop - start))
                    self.lost_pages += 1

    def do_damage(self, step):
        self.damaged = bool(hostile.turn_bytes_over(step.dice, self.store)) or self.damaged

    def do_full(self, step):
        """To the last byte, so that the next write of anybody fails; the broker may stop over it."""
        path = os.path.join(self.disk, "ballast")
        with open(path, "ab", buffering=0) as file:
            size = BALLAST_BYTES
            while size:
                try:
                    file.write(b"x" * size)
                except OSError as why:
                    if why.errno != errno.ENOSPC:
                        raise
                    size //= 16
        broker = self.fleet.broker
        broker.may_end_with = {DISK_FULL}

        def watch_over(rounds):
            """It may be at its end and not have ended yet."""
            self.start(broker)
            if rounds:
                self.later(0.1, lambda: watch_over(rounds - 1))

        def room_again():
            if os.path.exists(path):
                os.unlink(path)
            watch_over(50)
        self.later(step.seconds, room_again)

    def do_partition(self, step):
        node = step.target
        if self.cut_off.get(node):
            return
        self.cut_off[node] = True
        self.nodes.cut_off(node)

        def heal():
            self.nodes.heal(node)
            self.cut_off[node] = False
        self.later(step.seconds, heal)

    # ---- the end ------------------------------------------------------------------------------------------

    def calm(self):
        """Everything undone at once: all continued, healed, and running."""
        for _, _, action in sorted(self.due):
            action()
        end = time.monotonic() + 60
        self.due, pending = [], True
        while pending:
            for member in self.fleet.members.values():
                member.send(signal.SIGCONT)
                self.start(member)
            pending = self.due or any(not m.is_running() and not m.finished for m in self.fleet.members.values())
            self.watch_until(time.monotonic() + 0.1)
            if time.monotonic() > end:
                raise AssertionError("not everything came back")
