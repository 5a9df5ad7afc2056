"""Nodes for run workers: network namespaces on one bridge, or groups of processes where those are not permitted.

The ends of a link can be made slow (`tc netem` where the kernel has it, else `tc tbf`: less bandwidth alone) or cut.
"""
import os
import subprocess


def run(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


class Namespaces:
    """`count` nodes that reach the host at `address`. Needs the right to make them (root)."""

    what = "each node a network namespace, joined to the others' by a veth on a bridge"

    def __init__(self, count):
        self.mark = os.getpid() % 10000
        net = f"10.214.{self.mark % 250}"
        self.bridge, self.address = f"slnb{self.mark}", f"{net}.1"
        self.spaces = [(f"slnv{self.mark}-{k}", f"sluice-nodes-{self.mark}-{k}", f"{net}.{k + 2}") for k in range(count)]

    def __enter__(self):
        try:
            run("ip", "link", "add", self.bridge, "type", "bridge")
            run("ip", "addr", "add", f"{self.address}/24", "dev", self.bridge)
            run("ip", "link", "set", self.bridge, "up")
            for space in self.spaces:
                self._join(*space)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _join(self, link, space, address):
        run("ip", "netns", "add", space)
        run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
        run("ip", "link", "set", link, "master", self.bridge, "up")
        run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", space, "link", "set", "eth0", "up")
        run("ip", "-n", space, "link", "set", "lo", "up")

    def __exit__(self, *_):
        for link, space, _ in self.spaces:
            run("ip", "link", "del", link, check=False)
            run("ip", "netns", "del", space, check=False)
        run("ip", "link", "del", self.bridge, check=False)

    def prefix(self, node):
        """What to write before a command so that it runs on this node."""
        return ["nsenter", f"--net=/run/netns/{self.spaces[node][1]}"]

    def cut(self, node, _process):
        run("ip", "link", "set", self.spaces[node][0], "down")

    def heal(self, node, _process):
        run("ip", "link", "set", self.spaces[node][0], "up")

    def slow(self, node):
        """What was done to its link, both ways, in words."""
        link, space, _ = self.spaces[node]
        ways = ((["delay", "200ms"], "netem", "200 ms more each way"),
                (["rate", "64kbit", "burst", "1600", "latency", "4s"], "tbf", "64 kbit/s"))
        for words, kind, said in ways:
            done = [run("tc", *where, "qdisc", "replace", "dev", device, "root", kind, *words, check=False).returncode
                    for where, device in (((), link), (("-n", space), "eth0"))]
            if done == [0, 0]:
                return said
        return None

    def quicken(self, node):
        link, space, _ = self.spaces[node]
        run("tc", "qdisc", "del", "dev", link, "root", check=False)
        run("tc", "-n", space, "qdisc", "del", "dev", "eth0", "root", check=False)


class Groups:
    """Where namespaces are not permitted: nodes are workers on this machine; cut off is stopped, and slow cannot be."""

    what = "**each node a group of processes, since network namespaces are not permitted here; cut off is stopped**"
    address = "127.0.0.1"

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def prefix(self, _node):
        return []

    def cut(self, _node, process):
        os.kill(process.pid, 19)  # SIGSTOP

    def heal(self, _node, process):
        os.kill(process.pid, 18)  # SIGCONT

    def slow(self, _node):
        return None

    def quicken(self, _node):
        pass


def kind():
    """Namespaces where one can be made, else Groups."""
    try:
        with Namespaces(1):
            return Namespaces
    except (OSError, subprocess.CalledProcessError):
        return Groups
