"""The client for asyncio against the fake broker: the same answers, many tasks at a time, and cancelled at any moment."""
import asyncio
import random
import sys
import time
import unittest

from python_world import Case  # before all that it finds

from sluice import AsyncClient, BrokerSilent, OtherLedger, OtherTokens, Refused, SluiceError

NOOP = {"task": "add", "kind": "noop"}


class Asyncio(Case):
    def run_with_client(self, work, **options):
        async def main():
            async with AsyncClient(self.broker.url, **options) as client:
                return await asyncio.wait_for(work(client), 30)
        return asyncio.run(main())

    async def expect(self, trajectories, first, last):
        for seq in range(first, last + 1):
            self.assertEqual((await trajectories.__anext__()).seq, seq)

    def test_its_calls_are_those_of_the_other_client(self):
        async def work(client):
            names = await client.submit([dict(NOOP, metadata={"k": k}) for k in range(150)], stream="train", samples=2)
            self.assertEqual(names, self.client.submit([dict(NOOP, metadata={"k": k}) for k in range(150)], stream="train",
                                                       samples=2))
            self.broker("add-lost", 1)
            self.assertEqual((await client.get("g/0")).seq, 1)
            self.assertEqual((await client.get("waiting/0"))["state"], "leased")
            self.assertEqual(await client.status(), {"epoch": 3})
            self.assertEqual(await client.metrics(openmetrics=True), "sluice_epoch 1\n# EOF\n")
            self.assertEqual(await client.engines(), [])
            self.assertEqual((await client.renew("train"), await client.ack("train", 1), await client.cancel(group="g")), (3, 3, 3))
            await client.engine_add("http://127.0.0.1:9", runs_max=64)
            self.assertEqual(await client.engine_drain("http://127.0.0.1:9"), 3)
            await client.engine_remove("http://127.0.0.1:9")
            await client.policy_set("step-7")
            with self.assertRaisesRegex(TimeoutError, "taken back"):
                await client.policy_pause(wait=0.1)
            self.assertEqual((await client.policy_resume(), await client.drain(worker="w7"), await client.backup("monday")), (3, 3, 3))
            with self.assertRaises(Refused):
                await client.get("none/0")
        self.run_with_client(work)

    def test_many_tasks_use_one_client_at_a_time(self):
        self.broker("add-lost", 300)

        async def read(client):
            return [t.seq async for t in client.trajectories("train", timeout=1)]

        async def work(client):
            reading = asyncio.ensure_future(read(client))
            states = await asyncio.gather(*(client.get("waiting/0") for _ in range(500)), *(client.status() for _ in range(50)))
            self.assertEqual([state["state"] for state in states[:500]], ["leased"] * 500)
            self.assertEqual(await reading, list(range(1, 301)))
        began = time.monotonic()
        self.run_with_client(work)
        self.assertLess(time.monotonic() - began, 15)

    def test_a_stream_is_read_over_losses_and_restarts(self):
        async def work(client):
            trajectories = client.trajectories("train")
            self.broker("add", 1)
            await self.expect(trajectories, 1, 1)
            for at in range(1, 601, 300):
                self.broker("add-some-lost", 300)
                await self.expect(trajectories, at + 1, at + 150)
                self.broker("restart")
                await self.expect(trajectories, at + 151, at + 300)
            self.broker("leave")
            self.broker("add-lost", 1)
            self.broker("return")
            await self.expect(trajectories, 602, 602)
            self.broker("restart", 1)
            with self.assertRaises(OtherLedger):
                await trajectories.__anext__()
            with self.assertRaises(StopAsyncIteration):
                await trajectories.__anext__()
        self.run_with_client(work)

    def test_what_is_cancelled_loses_nothing(self):
        chance = random.Random(16)

        async def work(client):
            trajectories, got = client.trajectories("train"), []
            self.broker("add", 1)
            while len(got) < 400:
                if len(got) % 40 == 0:
                    self.broker("add-some-lost", 40)
                    self.broker("head")
                call = asyncio.ensure_future(client.get("waiting/0"))
                try:
                    got.append((await asyncio.wait_for(trajectories.__anext__(), chance.choice((0, 0.0005, 0.002, 5)))).seq)
                except asyncio.TimeoutError:
                    pass
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
            self.assertEqual(got, list(range(1, 401)))
            self.assertEqual(client._session._open, {})
            self.assertEqual(await client.status(), {"epoch": 3})
            self.assertEqual((client._waiters, client._watched), (set(), {}))
        self.run_with_client(work)

    def test_a_submit_that_is_cancelled_and_said_again_is_one(self):
        tasks = [dict(NOOP, metadata={"k": k}) for k in range(300)]

        async def work(client):
            for _ in range(5):
                submit = asyncio.ensure_future(client.submit(tasks, stream="train"))
                await asyncio.sleep(0.001)
                submit.cancel()
                await asyncio.gather(submit, return_exceptions=True)
            await client.submit(tasks, stream="train")
        self.run_with_client(work)
        self.assertEqual(self.broker("groups"), "300")

    def test_waiting_leaves_the_loop_to_others_and_uses_no_cpu(self):
        async def work(client):
            reading = asyncio.ensure_future(client.trajectories("train").__anext__())
            ticks, used = 0, time.process_time()
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                await asyncio.sleep(0.01)
                ticks += 1
            self.assertGreater(ticks, 50)
            self.assertLess(time.process_time() - used, 0.5)
            self.broker("add", 1)
            began = time.monotonic()
            self.assertEqual((await reading).seq, 1)
            self.assertLess(time.monotonic() - began, 1)
        self.run_with_client(work)

    def test_a_broken_record_or_other_tokens_end_an_iterator_and_the_next_begins_after_it(self):
        self.broker("add-lost", 3)

        async def work(client):
            with self.assertRaises(OtherTokens) as caught:
                async for _ in client.trajectories("train", from_seq=2, expect_template="sha256:other"):
                    pass
            self.assertEqual(caught.exception.seq, 2)
            await self.expect(client.trajectories("train", from_seq=3), 3, 3)
        self.run_with_client(work)

    def test_no_broker_is_an_error_and_one_that_comes_late_is_met(self):
        async def work():
            async with AsyncClient("tcp://127.0.0.1:9", timeout=0.3) as client:
                with self.assertRaisesRegex(BrokerSilent, "no broker answers at tcp://127.0.0.1:9"):
                    await client.status()
        asyncio.run(work())

        async def late(client):
            self.broker("leave")
            call = asyncio.ensure_future(client.status())
            await asyncio.sleep(0.2)
            self.broker("return")
            self.assertIn("epoch", await call)
        self.run_with_client(late)

    def test_it_belongs_to_one_loop_and_says_when_it_is_closed(self):
        client = AsyncClient(self.broker.url)
        asyncio.run(client.status())
        with self.assertRaisesRegex(SluiceError, "belongs to another event loop"):
            asyncio.run(client.status())

        async def work():
            other = AsyncClient(self.broker.url)
            reading = other.trajectories("train")
            waiting = asyncio.ensure_future(reading.__anext__())
            await asyncio.sleep(0.1)
            with self.assertRaisesRegex(SluiceError, "another task waits"):
                await reading.__anext__()
            await other.close()
            await other.close()
            with self.assertRaisesRegex(SluiceError, "closed"):
                await waiting
            with self.assertRaisesRegex(SluiceError, "closed"):
                await other.status()
        asyncio.run(work())


if __name__ == "__main__":
    sys.exit(unittest.main())
