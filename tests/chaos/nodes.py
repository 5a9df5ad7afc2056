"""Nodes for workers: network namespaces on a bridge, so that one can be cut off without either side hearing of it."""
import os
import subprocess


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


class Nodes:
    """`count` namespaces that reach the host at `address`. Needs the right to make them (root).

    Cut off means: the link is down on the host's side. No packet passes and no connection ends, as when a switch dies.
    """

    def __init__(self, count):
        mark = os.getpid() % 10000
        self.bridge, net = f"slb{mark}", f"10.213.{mark % 250}"
        self.address = f"{net}.1"
        self.names = {f"node-{k + 1}": (f"slv{mark}-{k + 1}", f"sluice-{mark}-{k + 1}", f"{net}.{k + 2}")
                      for k in range(count)}

    def __enter__(self):
        try:
            ip("link", "add", self.bridge, "type", "bridge")
            ip("addr", "add", f"{self.address}/24", "dev", self.bridge)
            ip("link", "set", self.bridge, "up")
            for link, space, address in self.names.values():
                ip("netns", "add", space)
                ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
                ip("link", "set", link, "master", self.bridge)
                ip("link", "set", link, "up")
                ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
                ip("-n", space, "link", "set", "eth0", "up")
                ip("-n", space, "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for link, space, _ in self.names.values():
            ip("link", "del", link, check=False)
            ip("netns", "del", space, check=False)
        ip("link", "del", self.bridge, check=False)

    def prefix(self, node):
        """What to write before a command so that it runs on this node."""
        return ["nsenter", f"--net=/run/netns/{self.names[node][1]}"]

    def cut_off(self, node):
        ip("link", "set", self.names[node][0], "down")

    def heal(self, node):
        ip("link", "set", self.names[node][0], "up")


def why_not():
    """None where nodes can be made, else a sentence."""
    try:
        with Nodes(1):
            return None
    except (OSError, subprocess.CalledProcessError) as why:
        return f"network namespaces cannot be made here: {(getattr(why, 'stderr', None) or str(why)).strip()}"
