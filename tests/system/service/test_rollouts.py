"""sluice.adapters.rollouts against a real service: many callers, one reader, and whoever is killed or cancelled."""
import asyncio
import sys
import unittest
import warnings
from types import SimpleNamespace

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from case import Case, Fleet, chat, noop, sandbox, script  # noqa: E402

from sluice import BadTask, Client, Forgotten, OtherTokens, Refused, SluiceError  # noqa: E402
from sluice.adapters import rollouts as module  # noqa: E402
from sluice.adapters.rollouts import Rollouts  # noqa: E402
from sluice.adapters.parts.shared import shared_rollouts  # noqa: E402
from sluice.adapters.parts.tries import run_wanted  # noqa: E402

NEVER = sandbox(0, "sleep 600")


class Awaited(Case):
    def setUp(self):
        self.fleet = self.enter(Fleet(slots=4))
        self.url = self.fleet.url

    def run_with(self, work, **options):
        """`work` with Rollouts of stream train; nothing it started is left."""
        async def main():
            async with Rollouts("train", self.url, **options) as rollouts:
                await asyncio.wait_for(work(rollouts), 90)
            self.assertEqual((rollouts._claims, rollouts._carrying, rollouts._telling), ({}, set(), set()))
            self.assertEqual(asyncio.all_tasks() - {asyncio.current_task()}, set())
        asyncio.run(main())

    def first_kept(self):
        """The stream's oldest number that is kept; None: there is none."""
        with Client(self.url) as client:
            return next((t.seq for t in client.trajectories("train", until_idle=True)), None)

    async def until(self, holds):
        end = asyncio.get_running_loop().time() + 30
        while not holds():
            self.assertLess(asyncio.get_running_loop().time(), end)
            await asyncio.sleep(0.02)

    def state(self, group):
        with Client(self.url) as client:
            return [(row["rollout"], row.get("outcome")) for row in client.rollouts(ended=True, group=group)]

    def test_each_of_many_callers_has_its_group_by_sample(self):
        async def work(rollouts):
            groups = await asyncio.gather(*(rollouts.run(noop(k), samples=1 + k % 4) for k in range(60)))
            for k, group in enumerate(groups):
                self.assertEqual([(t.task, t.sample) for t in group], [(f"noop-{k}", n) for n in range(1 + k % 4)])
            self.assertEqual(len({t.seq for group in groups for t in group}), 150)
        self.run_with(work)
        self.assertIsNone(self.first_kept())  # all were taken, and acknowledged at the latest by close()

    def test_one_name_is_one_group_for_all_that_ask(self):
        async def work(rollouts):
            same = await asyncio.gather(*(rollouts.run(noop(1), samples=3, group="one") for _ in range(20)))
            self.assertEqual({tuple(t.seq for t in group) for group in same}, {(1, 2, 3)})
            with self.assertRaisesRegex(SluiceError, "another task or number of samples"):
                await asyncio.gather(rollouts.run(noop(2), group="two"), rollouts.run(noop(3), group="two"))
            with self.assertRaises(Refused) as caught:
                await rollouts.run(noop(7), group="one")
            self.assertEqual(caught.exception.reason, "group-exists")
            with self.assertRaises(BadTask):
                await rollouts.run({"task": "none", "agent": {"kind": "x"}})
        self.run_with(work)

    def test_what_comes_before_the_broker_has_a_group_does_not_answer_it(self):
        async def main():
            claim = module.Claim("one", noop(7), 1, True)
            claim.take(SimpleNamespace(sample=0))  # of an earlier group of this name, which the reader comes to late
            self.assertFalse(claim.done.done())
            claim.accept()
            self.assertTrue(claim.is_answered)
        asyncio.run(main())

    def test_rollouts_that_are_not_wanted_are_begun_again_until_there_were_so_many_tries(self):
        def wants(*numbers):
            return lambda trajectory: trajectory.seq in numbers

        async def work(rollouts):
            for wanted, told in ((wants(1, 2, 3), [1, 2, 3]),     # all of the first try
                                 (wants(5, 7), [5, 7, 8]),        # 4 and 6, then 7 and 8, then none is left to try
                                 (wants(), [12, 13, 14])):
                made = await run_wanted(rollouts, noop(1), 3, 2, wanted)
                self.assertEqual(sorted(trajectory.seq for trajectory in made), told)
        self.run_with(work)

    def test_one_stream_of_an_event_loop_is_one_object(self):
        async def main():
            first, other = (shared_rollouts(name, self.url, {}) for name in ("train", "other"))
            self.assertIs(shared_rollouts("train", self.url, {"priority": 3}), first)
            self.assertIsNot(first, other)
            await first.close()
            await other.close()
            return first
        self.assertIsNot(asyncio.run(main()), asyncio.run(main()))

    def test_a_process_that_starts_again_has_what_it_had_asked_for(self):
        async def asks(rollouts):
            waiting = [asyncio.ensure_future(rollouts.run(noop(k), samples=2, group=f"step-1-{k}")) for k in range(10)]
            await waiting[0]
            await rollouts.close()  # without the others
            await asyncio.gather(*waiting, return_exceptions=True)
        self.run_with(asks, acknowledge=False)

        async def asks_again(rollouts):
            groups = await asyncio.gather(*(rollouts.run(noop(k), samples=2, group=f"step-1-{k}") for k in range(10)))
            self.assertEqual(sorted(t.seq for group in groups for t in group), list(range(1, 21)))
            self.assertEqual(await rollouts.acknowledge(), 20)
            with self.assertRaisesRegex(Forgotten, "with the step in it"):
                await rollouts.run(noop(0), samples=2, group="step-1-0")
        self.run_with(asks_again, acknowledge=False)

    def test_a_group_is_cancelled_with_the_last_of_its_callers_and_holds_nothing_back(self):
        async def work(rollouts):
            waiting = [asyncio.ensure_future(rollouts.run(NEVER, samples=2, group="never")) for _ in range(3)]
            other = asyncio.ensure_future(rollouts.run(NEVER, samples=1))
            await asyncio.gather(*(rollouts.run(noop(k)) for k in range(3)))
            for caller in waiting[:2]:
                caller.cancel()
            await asyncio.gather(*waiting[:2], return_exceptions=True)
            await asyncio.sleep(0.3)
            self.assertEqual(self.state("never"), [])
            waiting[2].cancel()
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(other, 0.01)
            await self.until(lambda: not rollouts._unwanted)
            self.assertEqual(sorted(self.state("never")), [("never/0", "cancelled"), ("never/1", "cancelled")])
            await rollouts.run(noop(9))
            self.assertEqual(await rollouts.acknowledge(), 7)
        self.run_with(work, acknowledge=False)

    def test_callers_that_close_meets_hear_so_and_only_what_nobody_can_ask_for_is_cancelled(self):
        left = {}

        async def work(rollouts):
            left.update(named=asyncio.ensure_future(rollouts.run(NEVER, group="named")),
                        unnamed=asyncio.ensure_future(rollouts.run(NEVER)))
            await self.until(lambda: len(Client(self.url).rollouts()) == 2)
            await rollouts.close()
            for caller in left.values():
                with self.assertRaisesRegex(SluiceError, "closed"):
                    await caller
            with self.assertRaisesRegex(SluiceError, "closed"):
                await rollouts.run(noop(1))
        self.run_with(work)
        with Client(self.url) as client:
            self.fleet.wait_for(lambda status: status["rollouts"]["live"] == 1, 30, "the one without a name is cancelled")
            self.assertEqual([row["rollout"] for row in client.rollouts()], ["named/0"])
            client.cancel(group="named")

    def test_a_broker_that_is_killed_is_waited_for(self):
        async def work(rollouts):
            before = await rollouts.run(noop(0))
            waiting = [asyncio.ensure_future(rollouts.run(sandbox(k, "sleep 1"), samples=2)) for k in range(4)]
            await asyncio.sleep(0.5)
            self.fleet["broker"].kill()
            late = [asyncio.ensure_future(rollouts.run(noop(k))) for k in range(1, 5)]
            await asyncio.sleep(0.5)
            self.fleet["broker"].start()
            groups = await asyncio.gather(*waiting, *late)
            self.assertEqual([[t.outcome for t in group] for group in groups], [["ok", "ok"]] * 4 + [["ok"]] * 4)
            self.assertEqual(len({t.seq for group in [before, *groups] for t in group}), 13)
        self.run_with(work, timeout=60)

    def test_no_broker_is_an_error_of_every_caller(self):
        async def main():
            async with Rollouts("train", "tcp://127.0.0.1:9", timeout=0.3) as rollouts:
                said = await asyncio.gather(*(rollouts.run(noop(k)) for k in range(3)), return_exceptions=True)
            self.assertEqual([str(why).split(" at")[0] for why in said], ["no broker answers"] * 3)
        asyncio.run(main())

    def test_what_others_read_is_not_acknowledged_for_them(self):
        with Client(self.url) as client:
            client.submit([noop(0)], stream="train", group=lambda task: "others")
            next(client.trajectories("train"))

        async def work(rollouts):
            await rollouts.run(noop(1))
            async with Rollouts("train", self.url) as second:
                await asyncio.gather(*(one.run(noop(k), samples=2) for one in (rollouts, second) for k in range(5)))
        self.run_with(work)
        self.assertEqual(self.first_kept(), 1)

        async def takes_it(rollouts):
            self.assertEqual([t.seq for t in await rollouts.run(noop(0), group="others")], [1])
        self.run_with(takes_it)
        self.assertEqual(self.first_kept(), 2)
        self.run_with(lambda rollouts: rollouts.run(noop(2)), exclusive=True)
        self.assertIsNone(self.first_kept())

    def test_much_that_nobody_asked_for_is_said_once(self):
        with Client(self.url) as client:
            client.submit([noop(0)], stream="train", samples=20)
        self.fleet.wait_for(lambda status: status["rollouts"]["live"] == 0, 30, "they have ended")
        most, module.FOREIGN_MAX = module.FOREIGN_MAX, 10
        self.addCleanup(setattr, module, "FOREIGN_MAX", most)

        async def work(rollouts):
            await rollouts.run(noop(1))
            await self.until(lambda: rollouts._prefix.last == 21)  # the reader has come to its end

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.run_with(work)
        self.assertEqual([str(one.message).split(" that ")[0] for one in told], ["stream train holds 11 trajectories"])

    def test_other_tokens_than_expected_are_an_error_of_their_group_alone(self):
        fleet = Fleet(slots=4)
        fleet.add_engine(script())
        self.fleet = self.enter(fleet)
        self.url = fleet.url

        async def work(rollouts):
            got = await asyncio.gather(rollouts.run(chat(1), samples=2), rollouts.run(noop(0)), return_exceptions=True)
            self.assertIsInstance(got[0], OtherTokens)
            self.assertEqual([t.outcome for t in got[1]], ["ok"])  # no tokens: it passes
            await self.until(lambda: rollouts._acknowledged == 3)  # the other sample comes, and is nobody's
        self.run_with(work, expect_template="sha256:" + "0" * 64)


if __name__ == "__main__":
    sys.exit(unittest.main())
