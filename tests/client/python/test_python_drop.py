"""A client that nobody closes ends by itself, however it is dropped: no program here may hang.

Left to Python it would: the cyclic collector clears the weak references by which pyzmq's context knows its sockets
before it calls the context's __del__, which then waits for sockets that nobody closes. Each program is therefore run
with what it drops in a cycle, too, and collected.
"""
import subprocess
import sys
import textwrap
import unittest

from python_world import ENVIRONMENT, Case

SECONDS = 30
BEGIN = """\
import asyncio, gc, os, sys, threading, time, warnings, weakref
from sluice import AsyncClient, BrokerSilent, Client, SluiceError
warnings.simplefilter("ignore")
url = sys.argv[1]
def cycle(thing):
    thing.itself = thing
    return thing
"""
END = "gc.collect()\nprint('ended')\n"


class Dropped(Case):
    def run_program(self, program, last=END):
        text = BEGIN + textwrap.dedent(program) + last
        try:
            done = subprocess.run([sys.executable, "-c", text, self.broker.url], env=ENVIRONMENT, text=True,
                                  capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            self.fail(f"it hangs:\n{text}")
        self.assertEqual((done.returncode, done.stderr), (0, ""), text + done.stderr)
        return done.stdout

    def check(self, program):
        self.assertEqual(self.run_program(program), "ended\n")

    def test_with_del(self):
        self.check("""
            client = Client(url); client.status(); del client
            client = cycle(Client(url)); client.status(); del client
            """)

    def test_without_a_word_to_the_broker_or_without_a_broker(self):
        self.check("""
            client = cycle(Client(url)); del client; gc.collect()
            client = cycle(Client("tcp://127.0.0.1:9", timeout=0.1))
            try: client.submit({"task": "t", "kind": "noop"}, stream="s")
            except BrokerSilent: pass
            del client
            """)

    def test_with_a_half_read_iterator(self):
        self.broker("add-lost", 9)
        self.check("""
            client = cycle(Client(url)); some = client.trajectories("train"); assert next(some).seq == 1
            del client; gc.collect(); assert next(some).seq == 2
            del some; gc.collect()
            for trajectory in cycle(Client(url)).trajectories("train"):
                break
            groups = cycle(Client(url)).groups("train", timeout=0.1); next(groups, None)
            del groups
            """)

    def test_with_an_exception(self):
        self.check("""
            def work():
                client = cycle(Client(url))
                for trajectory in client.trajectories("none", timeout=0):
                    pass
                raise KeyError
            try: work()
            except KeyError as why: kept = cycle(why)
            del kept; gc.collect()
            for wrong in ({"key": "/nowhere"}, {"url": "tcp://10.255.255.1:5750"}):
                try: cycle(Client(**{"url": url, **wrong}))
                except SluiceError: pass
            """)

    def test_with_a_cell_that_is_run_again(self):
        self.check("""
            for _ in range(5):
                client = cycle(Client(url)); client.status(); gc.collect()
            """)

    def test_at_the_interpreters_exit(self):
        self.broker("add-lost", 9)
        self.assertEqual(self.run_program("""
            client = cycle(Client(url)); some = client.trajectories("train"); next(some)
            other = Client(url); other.status()
            def wait():
                for _ in cycle(Client(url)).trajectories("none"): pass
            threading.Thread(target=wait, daemon=True).start()
            time.sleep(0.2)
            """, "print('at the end')"), "at the end\n")

    def test_in_another_thread(self):
        self.check("""
            clients = [cycle(Client(url)) for _ in range(4)]
            for client in clients: client.status()
            def drop():
                clients.clear(); gc.collect()
            del client
            thread = threading.Thread(target=drop); thread.start(); thread.join()
            """)

    def test_in_a_forked_child_and_the_parent_goes_on(self):
        self.check("""
            client = cycle(Client(url)); client.status()
            some = client.trajectories("train", timeout=0.1); list(some)
            for how in ("drop", "close", "use", "leave"):
                child = os.fork()
                if not child:
                    if how == "drop": del client, some; gc.collect()
                    if how == "close": client.close()
                    if how == "use":
                        try: client.status()
                        except SluiceError as why: assert "before a fork" in str(why)
                        else: os._exit(3)
                        assert Client(url).status()
                    sys.exit(0)
                assert os.waitpid(child, 0)[1] == 0, how
                client.status()
            del client, some
            """)

    def test_of_asyncio(self):
        self.check("""
            async def work(close):
                client = cycle(AsyncClient(url)); await client.status()
                some = client.trajectories("train"); task = asyncio.ensure_future(some.__anext__())
                await asyncio.sleep(0.1)
                if not close: return
                await client.close()
                try: await task
                except SluiceError as why: assert "closed" in str(why)
            asyncio.run(work(False)); gc.collect()
            asyncio.run(work(True)); gc.collect()
            """)

    def test_at_once_where_nothing_refers_to_it_and_with_its_sockets(self):
        self.check("""
            client = Client(url); client.status(); list(client.trajectories("none", timeout=0))
            seen = weakref.ref(client); gc.disable(); del client
            assert seen() is None
            count = lambda: len(os.listdir("/proc/self/fd"))
            before = count()
            for _ in range(50):
                client = Client(url); client.status(); list(client.trajectories("none", timeout=0)); del client
            assert count() <= before, (before, count())
            """)

    def test_one_that_two_threads_use_says_so(self):
        self.check("""
            client = Client(url)
            thread = threading.Thread(target=lambda: list(client.trajectories("none", timeout=1))); thread.start()
            time.sleep(0.3)
            try: client.status()
            except SluiceError as why: assert "in use by another thread" in str(why)
            else: sys.exit(3)
            thread.join(); client.status(); del client, thread
            """)


if __name__ == "__main__":
    unittest.main()
