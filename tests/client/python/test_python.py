"""The Python client against the fake broker, which speaks by the C codec."""
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock
import warnings

from python_world import ENVIRONMENT, Case  # before all that it finds

import numpy as np
from sluice import (BadArgument, BadTask, BrokerSilent, Client, Forgotten, Full, MessageError, NotAllowed, OtherLedger,
                    OtherTokens, Refused, SluiceError)
from sluice.trajectory import Message, Tamper, Turn

NOOP = {"task": "add", "kind": "noop"}


class Streams(Case):
    def test_trajectories_come_once_and_in_order_with_numpy_arrays(self):
        self.broker("add-lost", 2)
        trajectories = self.client.trajectories("train", from_seq=1)
        first = next(trajectories)
        self.assertEqual((first.rollout, first.outcome, first.reward, first.trainable), ("g/0", "ok", 0.0, True))
        trace, = first.traces
        for array, kind, values in ((trace.token_ids, np.uint32, [101, 102, 103]), (trace.mask, np.uint8, [0, 1, 1]),
                                    (trace.logprobs, np.float32, [0, -0.5, -0.25])):
            self.assertEqual(array.dtype, kind)
            self.assertEqual(array.tolist(), values)
        self.assertEqual([(t.role, t.offset, t.length, t.finish) for t in trace.turns],
                         [("prompt", 0, 1, ""), ("assistant", 1, 2, "stop")])
        self.assertEqual([m.content for m in first.messages], ["1+1?", "2"])
        self.assertEqual((first.agent, first.logprobs_mode), ("chat", "raw"))
        self.expect(trajectories, 2, 2)
        self.broker("await")
        self.broker("add", 3)
        self.expect(trajectories, 3, 5)

    def test_gaps_are_fetched_and_duplicates_dropped(self):
        trajectories = self.client.trajectories("train")
        self.broker("add", 1)
        self.expect(trajectories, 1, 1)
        self.broker("again", 1)
        self.broker("add-lost", 1)
        self.broker("add", 1)
        self.broker("again", 2)
        self.expect(trajectories, 2, 3)
        self.broker("add-lost", 1)
        self.broker("head")
        self.expect(trajectories, 4, 4)

    def test_with_a_third_lost_and_restarts_all_come(self):
        trajectories = self.client.trajectories("train")
        for at in range(0, 1200, 300):
            self.broker("add-some-lost", 300)
            self.expect(trajectories, at + 1, at + 150)
            self.assertEqual(self.client.ack("train", at + 150), 3)
            self.broker("restart")
            self.expect(trajectories, at + 151, at + 300)

    def test_a_broker_that_is_away_is_waited_for(self):
        trajectories = self.client.trajectories("train", timeout=20)
        self.broker("add", 1)
        self.expect(trajectories, 1, 1)
        self.broker("leave")
        self.broker("add-lost", 1)
        self.broker("return")
        self.expect(trajectories, 2, 2)

    def test_reading_ends_after_its_timeout(self):
        self.broker("add-lost", 2)
        started = time.monotonic()
        self.assertEqual([t.seq for t in self.client.trajectories("train", timeout=0.3)], [1, 2])
        self.assertLess(time.monotonic() - started, 10)

    def test_zero_begins_at_the_oldest_kept_and_an_older_number_is_refused(self):
        self.broker("add-lost", 5)
        self.broker("forget", 3)
        self.expect(self.client.trajectories("train"), 4, 5)
        with self.assertRaises(Refused) as caught:
            next(self.client.trajectories("train", from_seq=2))
        self.assertEqual((caught.exception.reason, caught.exception.oldest), ("forgotten", 4))
        self.assertIn("the oldest is 4", str(caught.exception))

    def test_what_is_forgotten_while_reading_is_told_with_the_oldest_that_is_kept(self):
        self.broker("add-lost", 200)
        trajectories = self.client.trajectories("train")
        self.expect(trajectories, 1, 64)
        self.broker("forget", 100)
        with self.assertRaisesRegex(Forgotten, "number 65 is no longer kept") as caught:
            next(trajectories)
        self.expect(self.client.trajectories("train", from_seq=caught.exception.oldest), 101, 102)

    def test_reading_until_idle_needs_everything_to_have_ended(self):
        self.broker("add-lost", 2)  # the fake broker says that seven more are pending
        self.assertEqual([t.seq for t in self.client.trajectories("train", timeout=0.3, until_idle=True)], [1, 2])
        self.assertEqual(list(self.client.trajectories("none", until_idle=True)), [])

    def test_a_shorter_ledger_is_told(self):
        self.broker("add-lost", 3)
        trajectories = self.client.trajectories("train")
        self.expect(trajectories, 1, 3)
        self.broker("restart", 1)
        with self.assertRaises(OtherLedger):
            next(trajectories)

    def test_a_restored_back_up_that_has_grown_again_is_told(self):
        self.broker("add-lost", 5)
        trajectories = self.client.trajectories("train")
        self.expect(trajectories, 1, 5)
        self.broker("restore", 3)
        with self.assertRaises(OtherLedger) as caught:
            next(trajectories)
        self.assertEqual([t.rollout for t in self.client.trajectories("train", caught.exception.oldest, timeout=0.3)],
                         [f"g/{k}" for k in range(3)] + [f"restored/{k}" for k in range(10)])

    def test_another_ledger_of_the_same_start_number_is_told(self):
        self.broker("add-lost", 3)
        trajectories = self.client.trajectories("train")
        self.expect(trajectories, 1, 3)
        self.broker("empty", 10)
        with self.assertRaises(OtherLedger) as caught:
            next(trajectories)
        again = self.client.trajectories("train", caught.exception.oldest, timeout=0.3)
        self.assertEqual([t.rollout for t in again], [f"other/{k}" for k in range(10)])

    def test_who_waits_for_what_an_emptied_ledger_does_not_know_is_told(self):
        self.broker("empty-await", 7)
        reading = threading.Timer(1.0, self.broker, ("empty", 0))  # it has read nothing; seven are pending
        reading.start()
        with self.assertRaises(OtherLedger):
            next(self.client.trajectories("train", timeout=20, until_idle=True))
        reading.join()

    def test_a_feed_that_drops_most_of_it_loses_nothing(self):
        self.broker("drop-much")
        trajectories = self.client.trajectories("train")
        self.broker("add", 1)
        self.expect(trajectories, 1, 1)
        self.broker("add", 2000)
        self.expect(trajectories, 2, 2001)

    def test_a_reader_renews_leases_by_itself(self):
        self.client.submit([NOOP], stream="train", lease=1)
        self.assertEqual(list(self.client.trajectories("train", timeout=1.5)), [])
        self.assertIn(int(self.broker("renewals")), range(3, 9))

    def test_a_broker_that_stays_away_is_told_after_patience(self):
        self.client.patience = 2.5
        trajectories = self.client.trajectories("train")
        self.broker("add", 1)
        self.expect(trajectories, 1, 1)
        self.broker("leave")
        with self.assertRaisesRegex(BrokerSilent, "no broker answers at tcp://"):
            next(trajectories)
        self.broker("return")
        self.broker("add-lost", 1)
        self.expect(self.client.trajectories("train", from_seq=2), 2, 2)

    def test_a_broken_record_is_an_error_and_the_next_reader_begins_after_it(self):
        self.broker("add-broken")
        self.broker("add-lost", 1)
        with self.assertRaises(MessageError) as caught:
            next(self.client.trajectories("train", from_seq=1))
        self.expect(self.client.trajectories("train", from_seq=caught.exception.seq + 1), 2, 2)

    def test_tokens_of_another_template_or_tokenizer_are_an_error(self):
        self.broker("add", 3)
        for expected, words in (({"expect_template": "sha256:other"}, "has the template sha256:template, where sha256:other"),
                                ({"expect_template": "sha256:template", "expect_tokenizer": "sha256:other"},
                                 "has the tokenizer sha256:tokenizer, where sha256:other is expected")):
            with self.assertRaisesRegex(OtherTokens, words) as caught:
                next(self.client.trajectories("train", from_seq=2, **expected))
            self.assertEqual(caught.exception.seq, 2)
        self.expect(self.client.trajectories("train", from_seq=1, expect_template="sha256:template",
                                             expect_tokenizer="sha256:tokenizer"), 1, 3)

    def test_garbage_is_passed_over(self):
        trajectories = self.client.trajectories("train")
        self.broker("add", 1)
        self.expect(trajectories, 1, 1)
        self.broker("garbage")
        self.assertEqual(self.client.status(), {"epoch": 3})
        self.assertEqual(self.client.metrics(), "sluice_epoch 1\n")
        self.assertEqual(self.client.metrics(openmetrics=True), "sluice_epoch 1\n# EOF\n")
        self.broker("add", 1)
        self.expect(trajectories, 2, 2)


class Cursors(Case):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.enter(tempfile.TemporaryDirectory()), "cursor")

    def read(self, count):
        """The numbers that a process of its own gets, killed with the last of them in hand."""
        with Client(self.broker.url) as client:
            trajectories = client.trajectories("train", cursor=self.path)
            return [next(trajectories).seq for _ in range(count)]

    def test_a_new_process_goes_on_with_the_one_in_hand(self):
        self.broker("add-lost", 9)
        self.assertEqual(self.read(1), [1])
        self.assertEqual(self.read(4), [1, 2, 3, 4])
        self.broker("restart")
        self.assertEqual(self.read(2), [4, 5])
        trajectories = self.client.trajectories("train", cursor=self.path)
        self.expect(trajectories, 5, 6)
        self.client.save_cursor()
        self.assertEqual(self.read(3), [7, 8, 9])

    def test_the_command_and_python_keep_the_same_file(self):
        self.broker("add-lost", 9)
        watch = [os.environ["SLUICE_PROGRAM"], "watch", "train", "--broker", self.broker.url, "--cursor", self.path]
        self.assertEqual(self.read(3), [1, 2, 3])
        said = subprocess.run([*watch, "--count", "3"], check=True, capture_output=True, text=True).stdout
        self.assertEqual([line.split()[0] for line in said.splitlines()], ["3", "4", "5"])
        self.assertEqual(self.read(2), [6, 7])

    def test_a_ledger_that_is_another_is_told(self):
        self.broker("add-lost", 5)
        self.expect(self.client.trajectories("train", cursor=self.path), 1, 5)
        self.client.save_cursor()
        self.broker("restore", 3)
        with self.assertRaises(OtherLedger):
            self.read(1)

    def test_a_file_that_is_no_cursor_of_the_stream_is_refused(self):
        self.broker("add-lost", 2)
        self.read(2)
        with self.assertRaisesRegex(SluiceError, "is not a cursor of stream other; remove it to start over"):
            next(self.client.trajectories("other", cursor=self.path))
        for text in ("", "{", "[]", "null", '{"sluice_cursor": 1}', "\xff" * 9000):
            with open(self.path, "w", encoding="latin-1") as file:
                file.write(text)
            with self.assertRaisesRegex(SluiceError, "is not a cursor of stream train"):
                next(self.client.trajectories("train", cursor=self.path))

    def test_a_trainer_killed_at_any_moment_gets_every_number_and_at_most_one_twice_a_kill(self):
        program = ("import sys\n"
                   "from sluice import Client\n"
                   "for t in Client(sys.argv[1]).trajectories('train', cursor=sys.argv[2]):\n"
                   "    print(t.seq, flush=True)\n")
        self.broker("add-some-lost", 400)
        got, kills = [], 0
        while not got or got[-1] < 400:
            trainer = subprocess.Popen([sys.executable, "-c", program, self.broker.url, self.path], text=True,
                                       stdout=subprocess.PIPE,
                                       env=ENVIRONMENT)
            for _ in range(100):
                line = trainer.stdout.readline()
                got.append(int(line))
                if got[-1] == 400:
                    break
            trainer.kill()
            got += [int(line) for line in trainer.stdout]
            trainer.stdout.close()
            trainer.wait()
            kills += 1
            self.broker("restart")
        self.assertEqual(sorted(set(got)), list(range(1, 401)))
        self.assertGreaterEqual(kills, 3)
        self.assertLessEqual(len(got) - 400, kills)


class Requests(Case):
    def test_a_submit_carries_its_priority_and_lease_or_none(self):
        self.client.submit([NOOP], stream="train")
        self.assertEqual(self.broker("options"), "priority=- lease_ms=-")
        self.client.submit([NOOP], stream="train", priority=0, lease=90)
        self.assertEqual(self.broker("options"), "priority=0 lease_ms=90000")
        for wrong in ({"priority": 10}, {"lease": 0.5}):
            with self.assertRaises(BadArgument):
                self.client.submit([NOOP], stream="train", **wrong)

    def test_a_warning_is_a_python_warning(self):
        self.broker("warn")
        with self.assertWarnsRegex(UserWarning, "nearly full") as told:
            self.client.submit([NOOP], stream="train")
        self.assertEqual(told.filename, __file__)  # its line is the caller's, wherever in the package it arose

    def test_patience_ends_and_what_can_never_fit_does_not_wait(self):
        self.client.patience = 0.1
        self.broker("full", 1000000)
        with self.assertRaisesRegex(Full, "too many are queued"):
            self.client.submit([NOOP], stream="train")
        self.client.patience = None
        self.broker("full", 0)
        self.broker("never")
        with self.assertRaisesRegex(Refused, "more than ever fits") as caught:
            self.client.submit([NOOP], stream="train")
        self.assertNotIsInstance(caught.exception, Full)
        self.assertEqual((caught.exception.reason, caught.exception.retry_after), ("too-large", None))

    def test_what_this_key_may_not_do_is_an_error_of_its_own(self):
        self.broker("forbid")
        with self.assertRaisesRegex(NotAllowed, "not with this key"):
            self.client.engine_add("http://127.0.0.1:9")

    def test_leases_are_renewed_workers_drained_ledgers_copied(self):
        self.assertEqual(self.client.renew("train"), 3)
        self.assertEqual(self.client.drain(worker="w7"), 3)
        self.assertEqual(self.broker("options"), "grace_s=- is_host=0")
        self.client.drain(host="node7", grace=30)
        self.assertEqual(self.broker("options"), "grace_s=30 is_host=1")
        self.assertEqual(self.client.backup("monday"), 3)
        self.broker("ignore", 1)
        with self.assertRaises(BrokerSilent):
            self.client.backup("monday", timeout=1.2)

    def test_time_in_which_the_process_stood_still_does_not_count(self):
        program = "import sys\nfrom sluice import Client\nprint(Client(sys.argv[1], timeout=1).status())\n"
        self.broker("ignore", 1)
        asking = subprocess.Popen([sys.executable, "-c", program, self.broker.url], text=True, stdout=subprocess.PIPE,
                                  env=ENVIRONMENT)
        while self.broker("asked") == "0":
            time.sleep(0.005)
        asking.send_signal(signal.SIGSTOP)
        time.sleep(3)  # the stop itself
        asking.send_signal(signal.SIGCONT)
        self.assertEqual(asking.communicate(timeout=20)[0], "{'epoch': 3}\n")
        self.assertEqual(self.broker("asked"), "2")

    def test_submitting_again_is_the_same_groups(self):
        tasks = [dict(NOOP, metadata={"k": k}) for k in range(150)] + [dict(NOOP, metadata={"k": 0})]
        names = self.client.submit(iter(tasks), stream="train", samples=2)
        self.assertEqual(len(set(names)), 151)
        self.assertEqual(self.client.submit(tasks, stream="train", samples=2), names)
        self.assertEqual(self.broker("groups"), "151")

    def test_a_full_broker_is_waited_for(self):
        self.broker("full", 2)
        self.client.submit([dict(NOOP, metadata={"k": k}) for k in range(4)], stream="train")
        self.assertEqual(self.broker("groups"), "4")

    def test_a_file_has_the_same_groups_as_the_command_gives_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "some.tasks.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"task": "a",  "kind": "noop"}\n \n'
                           '  {"task": "b", "kind": "noop", "samples": 3}\t\r\n'
                           '{"task": "c", "kind": "noop", "metadata": {"k": "one\u2028two\x85three"}}\n')
            names = self.client.submit(path, stream="train")
            said = subprocess.run([os.environ["SLUICE_PROGRAM"], "submit", path, "--stream", "train", "--json"],
                                  env=dict(os.environ, SLUICE_BROKER=self.broker.url), check=True,
                                  capture_output=True, text=True).stdout
        self.assertEqual([json.loads(line)["group"] for line in said.splitlines()], names)
        self.assertEqual(self.broker("groups"), "3")

    def test_one_task_may_be_a_dict(self):
        name, = self.client.submit(NOOP, stream="train")
        self.assertEqual(self.client.submit([NOOP], stream="train"), [name])

    def test_a_bad_task_of_many_is_named_by_its_place_and_nothing_is_submitted(self):
        bad = {"task": "a", "kind": "noop", "promt": "b"}
        with self.assertRaises(BadTask) as caught:
            self.client.submit([NOOP, bad, NOOP, 7, {"task": {1}}], stream="train")
        self.assertEqual(str(caught.exception).splitlines(), [
            "tasks[1]: promt: a task has no field 'promt'; did you mean 'prompt'?",
            "tasks[3]: a task must be a dict, not int",
            "tasks[4]: it cannot be written as JSON: Object of type set is not JSON serializable",
            "3 of 5 tasks are not tasks; nothing was submitted"])
        self.assertEqual((caught.exception.reason, caught.exception.field), ("unknown-field", "promt"))
        self.assertEqual([at for at, _, _ in caught.exception.problems], [1, 3, 4])
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            print(json.dumps(NOOP), "", json.dumps(bad), '{"task": "a", "task": "b"}', sep="\n", file=file, flush=True)
            with self.assertRaises(BadTask) as caught:
                self.client.submit(file.name, stream="train")
        self.assertEqual(str(caught.exception).splitlines()[0],
                         f"{file.name}:3: promt: a task has no field 'promt'; did you mean 'prompt'?")
        self.assertEqual([at for at, _, _ in caught.exception.problems], [3, 4])
        self.assertEqual(self.broker("groups"), "0")

    def test_a_bad_task_of_a_sampler_is_named_by_its_place_among_all(self):
        for bad, why in (({"task": "a", "promt": "b"}, "promt: a task has no field"), (7, r"wants a dict .*, not a int")):
            with self.assertRaisesRegex(BadArgument if bad == 7 else BadTask, rf"^tasks\[64\]:? {why}"):
                list(self.client.sampler("train", [NOOP] * 64 + [bad], groups=4, after=3, pool=65, timeout=0.1))

    def test_refusals_have_their_reason(self):
        self.client.submit([NOOP], stream="train", group=lambda task: "mine")
        with self.assertRaises(Refused) as caught:
            self.client.submit([dict(NOOP, samples=2)], stream="train", group=lambda task: "mine")
        self.assertEqual((caught.exception.reason, str(caught.exception)), ("group-exists", "the name is taken"))
        with self.assertRaises(Refused):
            self.client.get("none/0")

    def test_why_there_is_no_batch_is_said_each_minute(self):
        clock = types.SimpleNamespace(monotonic=itertools.count(0, 20).__next__)
        with unittest.mock.patch("sluice.sampler.time", clock), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("default")  # Python's own: one that was said is not said again
            self.assertEqual(list(self.client.sampler("train", [], groups=4, after=3, timeout=600)), [])
        self.assertGreaterEqual(len(told), 5)
        for warning in told:
            self.assertRegex(str(warning.message), r"^batch 4 of train is not there after \d+ s: 1 of 4 groups is ready$")

    def test_the_small_requests(self):
        self.broker("add-lost", 1)
        self.assertEqual(self.client.get("g/0").seq, 1)
        state = self.client.get("waiting/0")
        self.assertEqual((state["state"], state["turn"], state["tool"], state["why"]),
                         ("leased", 3, "bash", "http://gpu1:8000: HTTP 503; tried 2 times"))
        for call in (lambda: self.client.cancel("g"), lambda: self.client.cancel("g/0"),
                     lambda: self.client.cancel(group="g"), lambda: self.client.cancel(stream="train")):
            self.assertEqual(call(), 3)
        self.client.engine_add("http://127.0.0.1:9")
        self.assertIsNone(self.client.engine_add("http://127.0.0.1:9", runs_max=64))
        self.assertEqual(self.client.engine_add("http://127.0.0.1:9", policy="critic"), "default")
        self.assertEqual(self.client.engine_drain("http://127.0.0.1:9"), 3)
        self.client.engine_remove("http://127.0.0.1:9")
        self.assertEqual(self.client.engines(), [])
        self.client.ack("train", 1)
        self.assertEqual(self.broker("acked"), "1")
        self.client.policy_set("step-7")
        with self.assertRaisesRegex(TimeoutError, "taken back"):
            self.client.policy_pause(wait=0.1)
        self.assertEqual(self.client.policy_resume(engine="http://127.0.0.1:9"), 3)

    def test_no_broker_is_an_error_that_says_where(self):
        with Client("tcp://127.0.0.1:9", timeout=0.1) as nobody, self.assertRaises(BrokerSilent) as caught:
            nobody.status()
        self.assertEqual(str(caught.exception), "no broker answers at tcp://127.0.0.1:9")


class Words(Case):
    def test_every_repr_is_one_short_line(self):
        self.broker("add-lost", 1)
        got = self.client.get("g/0")
        long = Message("tool", "x\ny" * 5000, "bash: " + "y\n" * 3000)
        for thing in (self.client, got, got.traces[0], got.messages[0], long, Tamper(2, [("shell", "a\n" * 900)]),
                      Turn(0, 1, "prompt")):
            self.assertEqual(len(repr(thing).splitlines()), 1)
            self.assertLess(len(repr(thing)), 300)
        self.assertEqual(repr(got), "Trajectory(train 1, g/0, ok, reward 0, 3 tokens, 2 of them sampled)")
        self.assertEqual(repr(got.traces[0]), "Trace(3 tokens, 2 of them sampled, in 1 turns)")
        self.client.close()
        self.assertEqual(repr(self.client), f"Client('{self.broker.url}', closed)")

    def test_a_closed_client_and_a_left_stream_say_so(self):
        first, second = self.client.trajectories("train"), self.client.trajectories("other", timeout=0.1)
        self.broker("add", 1)
        self.expect(first, 1, 1)
        self.assertEqual(list(second), [])
        with self.assertRaisesRegex(SluiceError, "stream train is not read any more"):
            next(first)
        self.client.close()
        with self.assertRaisesRegex(SluiceError, "this client is closed"):
            self.client.status()

    def test_a_stream_of_which_nobody_knows_is_warned_of(self):
        with self.assertWarnsRegex(UserWarning, "nothing has been submitted to the stream nostream yet") as told:
            self.assertEqual(list(self.client.trajectories("nostream", until_idle=True)), [])
        self.assertEqual(told.filename, __file__)


if __name__ == "__main__":
    unittest.main()
