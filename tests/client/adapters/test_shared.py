"""What the adapters share and needs no service: tasks of rows, versions, and up to where a stream may be acknowledged."""
import asyncio
import json
import random
import unittest
import unittest.mock

import python_path  # noqa: F401  before all that it finds
import numpy as np

from sluice import BadArgument, SluiceError, Trace, Trajectory
from sluice.adapters.parts import versions
from sluice.adapters.parts.prefix import Prefix
from sluice.adapters.tasks import may_have_several_traces, only_trace, prompt_of, task_of
from sluice.adapters.parts.together import all_of

TASK = {"task": "t", "prompt": "1+1?", "metadata": {"level": 3}}


def deep():
    told = {}
    for _ in range(100000):
        told = {"a": told}
    return told


def trajectory(traces):
    one = Trajectory("s", 7, "g/0", "g", "t", 0, 1, "agent", True, 0, 0, 0, 0, 0, detail="a limit")
    one.traces = [Trace(np.zeros(1, np.uint32), np.ones(1, np.uint8), np.zeros(1, np.float32), [], reason)
                  for reason in traces]
    return one


class Rows(unittest.TestCase):
    def test_a_task_is_found_in_each_place_as_a_dict_and_as_text(self):
        for value in (TASK, json.dumps(TASK), json.dumps(TASK).encode()):
            self.assertEqual(task_of({"task": value, "prompt": "other"}), TASK)
            for place in ("extra_info", "metadata", "env_extras"):
                self.assertEqual(task_of({place: {"task": value}, "data_source": "x"}), TASK)
        self.assertEqual(task_of({"metadata": json.dumps({"task": TASK})}), TASK)

    def test_a_label_named_task_does_not_hide_the_task(self):
        self.assertEqual(task_of({"task": "math", "extra_info": {"task": TASK}}), TASK)

    def test_what_a_table_filled_in_is_left_out_and_its_numbers_are_plain(self):
        row = {"task": {"task": "t", "agent": None, "limits": {"wall_s": np.int64(3), "tokens": None},
                        "messages": np.array([{"role": "user", "content": "a", "tool": None}], dtype=object)}}
        self.assertEqual(task_of(row), {"task": "t", "limits": {"wall_s": 3},
                                        "messages": [{"role": "user", "content": "a"}]})

    def test_a_row_without_a_task_is_told_what_it_has_and_what_it_wants(self):
        for row, told in (({"prompt": "a", "answer": "b"}, "it has the columns prompt, answer"), ({}, r"columns \(none\)"),
                          ({"task": "math"}, r"row\[\"task\"\] is 'math'"),
                          ({"task": '{"task": '}, r'row\["task"\] is not JSON'),
                          ({"task": b'{"\xff": 1}'}, r'row\["task"\] is not JSON'),
                          ({"task": '{"a":' * 100000}, r'row\["task"\] is not JSON'),
                          ({"extra_info": {"task": deep()}}, r'row\["extra_info"\]\["task"\] has too many levels')):
            with self.assertRaisesRegex(BadArgument, told) as caught:
                task_of(row)
            self.assertEqual(caught.exception.field, "task")
        with self.assertRaisesRegex(BadArgument, r"row\['extra_info'\]/row\['metadata'\]/row\['env_extras'\]"):
            task_of({})
        with self.assertRaisesRegex(BadArgument, "row wants a mapping of columns, not a list"):
            task_of([TASK])

    def test_what_is_no_object_of_a_task_is_refused_by_name(self):
        for part in ("x", [1], 7):
            with self.assertRaisesRegex(BadArgument, "the task 't' has the agent .*, where a dict is wanted") as caught:
                may_have_several_traces({"task": "t", "agent": part})
            self.assertEqual(caught.exception.field, "agent")
        self.assertFalse(may_have_several_traces({"task": "t", "agent": {"kind": "chat"}}))

    def test_a_row_shows_the_messages_of_its_task_or_its_prompt_or_its_name(self):
        said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": []}]
        self.assertEqual(prompt_of({"task": "t", "messages": said}),
                         [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}])
        self.assertEqual(prompt_of({"task": "t", "prompt": "p"}), [{"role": "user", "content": "p"}])
        self.assertEqual(prompt_of({"task": "t"}), [{"role": "user", "content": "t"}])

    def test_one_trace_is_given_and_none_or_several_say_what_to_do(self):
        one = trajectory([""])
        self.assertIs(only_trace(one), one.traces[0])
        with self.assertRaisesRegex(BadArgument, "g/0 has 3 traces .retokenized, context.*agent.max_traces to 1"):
            only_trace(trajectory(["", "retokenized", "context"]))
        with self.assertRaisesRegex(BadArgument, "g/0 has no tokens .outcome agent: a limit.*trainable"):
            only_trace(trajectory([]))


class Together(unittest.TestCase):
    def test_what_all_come_to_is_told_in_order(self):
        async def after(turns, value):
            for _ in range(turns):
                await asyncio.sleep(0)
            return value
        self.assertEqual(asyncio.run(all_of(after(5 - k, k) for k in range(5))), [0, 1, 2, 3, 4])

    def test_where_one_raises_or_the_caller_is_cancelled_the_others_have_ended_before(self):
        ended = []

        async def endless(name):
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append(name)

        async def fails():
            await asyncio.sleep(0)
            raise KeyError("one")

        async def main():
            with self.assertRaises(KeyError):
                await all_of([endless("a"), fails(), endless("b")])
            self.assertEqual(sorted(ended), ["a", "b"])
            caller = asyncio.ensure_future(all_of([endless("c")]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            caller.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await caller
            self.assertEqual(ended[2:], ["c"])
        asyncio.run(asyncio.wait_for(main(), 30))


class Versions(unittest.TestCase):
    def require(self, version, least="1.16", below="1.17", module=None):
        with unittest.mock.patch.object(versions.importlib.metadata, "version", lambda _: version):
            return versions.require("sluice.adapters.trl", "trl", least, below, module)

    def test_a_version_within_the_bounds_is_told(self):
        for version in ("1.16", "1.16.0", "1.16.9", "1.16.0rc1", "v1.16.2+cpu", "1.16.1.dev0"):
            self.assertEqual(self.require(version), version)
        self.assertEqual(self.require("0.10.2", "0.9", "0.11"), "0.10.2")  # by number, not by letter

    def test_one_outside_names_itself_and_the_cure(self):
        for version in ("1.15.9", "1.17.0", "1.17", "2", "unknown"):
            with self.assertRaisesRegex(versions.WrongPackage, rf'trl>=1.16,<1.17; {version} is installed: pip install "trl>='):
                self.require(version)

    def test_a_missing_package_is_an_import_error_that_says_how_to_get_it(self):
        with self.assertRaisesRegex(ImportError, 'which is not installed: pip install "no-such-thing>=1,<2"') as caught:
            versions.require("sluice.adapters.x", "no-such-thing", "1", "2")
        self.assertIsInstance(caught.exception, SluiceError)
        self.assertEqual(caught.exception.name, "no-such-thing")

    def test_another_package_of_the_name_is_known_by_what_it_lacks(self):
        self.assertEqual(self.require("1.16.1", module="json.decoder"), "1.16.1")
        for module in ("json.rollout", "no_such_module.rollout"):
            with self.assertRaisesRegex(versions.WrongPackage, f"has no module {module}: it is another package"):
                self.require("1.16.1", module=module)


class Prefixes(unittest.TestCase):
    def test_it_ends_before_the_first_that_is_held(self):
        prefix = Prefix()
        self.assertEqual(prefix.up_to, 0)
        prefix.come(11, False)
        prefix.come(12, True)
        prefix.come(13, True)
        self.assertEqual(prefix.up_to, 11)
        prefix.let_go(13)
        self.assertEqual(prefix.up_to, 11)
        prefix.let_go(12)
        self.assertEqual(prefix.up_to, 13)

    def test_one_that_was_let_go_before_it_came_is_not_held(self):
        prefix = Prefix()
        prefix.let_go(2)
        self.assertTrue(prefix.is_behind)
        prefix.come(1, False)
        prefix.come(2, True)
        self.assertEqual((prefix.up_to, prefix.is_behind), (2, False))
        prefix.let_go(5)
        prefix.skip_to(6)
        self.assertEqual((prefix.up_to, prefix.is_behind), (5, False))

    def test_in_any_order_it_is_what_it_means(self):
        chance = random.Random(7)
        for _ in range(50):
            prefix, held, let_go, last = Prefix(), set(), set(), 0
            for _ in range(100):
                if chance.random() < 0.5:
                    last += 1
                    is_held = chance.random() < 0.7
                    prefix.come(last, is_held)
                    if is_held and last not in let_go:
                        held.add(last)
                else:
                    seq = chance.randint(1, last + 3)
                    prefix.let_go(seq)
                    held.discard(seq)
                    let_go.add(seq)
                self.assertEqual(prefix.up_to, min(held) - 1 if held else last)


if __name__ == "__main__":
    unittest.main()
