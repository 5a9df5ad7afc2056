"""The metrics of a busy service (O1): names and labels as documented, sums as `status --json` has them, and what
Prometheus's own tool says of them; the example rules, the dashboard and the page ask for nothing that is not there."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.append(__file__.rsplit("/", 2)[0])  # tests/system
from harness import BINARY, SOURCE, Engine, Service, free_ports, wait_until  # noqa: E402

SCRIPT = {"rules": [
    {"path": "/completion", "if": "write hello", "replies": ["I write it.\n```bash\necho hello >answer.txt\n```\n", "TASK_DONE"]},
    {"path": "/completion", "if": "<returncode>", "reply": "TASK_DONE"},
    {"path": "/completion", "if": "1+1", "reply": "It is \\boxed{2}."},
    {"path": "/completion", "if": "wrong", "reply": "It is \\boxed{3}."},
    {"path": "/completion", "if": "slowly", "reply": "It is \\boxed{2}.", "delay_ms": 4000},
]}
MATH = {"task": "add", "prompt": "What is 1+1?", "agent": {"kind": "chat"}, "eval": {"kind": "math", "answer": "2"}}
WRONG = {"task": "miss", "prompt": "Be wrong.", "agent": {"kind": "chat"}, "eval": {"kind": "math", "answer": "2"}}
SLOW = {"task": "slow", "prompt": "Add slowly.", "agent": {"kind": "chat"}, "eval": {"kind": "math", "answer": "2"}}
SHELL = {"task": "hello", "prompt": "Please write hello.", "agent": {"kind": "bash", "max_turns": 4},
         "setup": ["echo seed >seed.txt"], "eval": {"kind": "command", "command": "grep -qx hello answer.txt"}}
# The names and labels that others build on: what is here is there.
PROMISED = {
    "sluice_build_info": "version commit", "sluice_up_seconds": "", "sluice_epoch": "", "sluice_health": "state",
    "sluice_rollouts_accepted_total": "", "sluice_rollouts_ended_total": "outcome trainable",
    "sluice_rollouts_live": "stage state", "sluice_slots": "stage", "sluice_slots_free": "stage", "sluice_workers": "stage state",
    "sluice_workers_lost_total": "stage why", "sluice_jobs_handed_out_again_total": "stage why",
    "sluice_stage_seconds": "stage", "sluice_queue_seconds": "stage", "sluice_turns_total": "engine",
    "sluice_sampled_tokens_total": "engine", "sluice_prompt_tokens_total": "engine", "sluice_engine_call_seconds": "engine",
    "sluice_engine_calls_in_flight": "engine", "sluice_engine_up": "engine", "sluice_engine_errors_total": "engine why",
    "sluice_tool_seconds": "tool", "sluice_sandbox_start_seconds": "kind", "sluice_traces_total": "reason",
    "sluice_reward": "stream", "sluice_policy_version": "", "sluice_policy_lag": "", "sluice_stream_pending": "stream",
    "sluice_ledger_bytes": "", "sluice_disk_free_bytes": "", "sluice_limit_used_ratio": "limit",
    "process_resident_memory_bytes": "", "process_cpu_seconds_total": "", "process_open_fds": "",
    "process_start_time_seconds": "",
}
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\["\\n])*)"')


class Metrics:
    """A text, read strictly: each family once and in one piece, its samples behind its lines."""

    def __init__(self, text):
        self.kinds, self.samples, self.labels = {}, collections.defaultdict(dict), collections.defaultdict(set)
        family = None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                family = line.split()[2]
                assert family not in self.kinds, f"{family} twice"
            elif line.startswith("# TYPE "):
                assert line.split()[2] == family, line
                self.kinds[family] = line.split()[3]
            elif not line.startswith("#"):
                name, labels, value = SAMPLE.fullmatch(line).groups()
                pairs = tuple(LABEL.findall(labels or ""))
                assert name.startswith(family), f"{name} within {family}"
                assert pairs not in self.samples[name], f"twice: {line}"
                self.samples[name][pairs] = float(value)
                self.labels[name].add(" ".join(label for label, _ in pairs))

    def sum(self, name, **labels):
        return sum(value for pairs, value in self.samples[name].items() if set(labels.items()) <= set(pairs))


def read_metrics(service, *options):
    return Metrics(service.run("metrics", *options).stdout)


def figures(status):
    """What of a status the metrics are compared with."""
    return {part: status[part] for part in ("health", "rollouts", "stages", "totals", "epoch")}


def read_both(service):
    """Metrics and a status of one moment: the statuses before and after are alike."""
    def same():
        before = service.status()
        metrics = read_metrics(service)
        return (metrics, before) if figures(before) == figures(service.status()) else None
    return wait_until(same, 60, "two statuses alike")


class Busy(unittest.TestCase):
    def check_sums(self, metrics, status):
        rollouts, stages = status["rollouts"], status["stages"]
        self.assertEqual(metrics.sum("sluice_rollouts_live"), rollouts["live"])
        self.assertEqual(metrics.sum("sluice_stream_pending"), rollouts["live"])
        self.assertEqual(metrics.sum("sluice_rollouts_accepted_total"), rollouts["accepted"])
        for outcome in ("ok", "agent", "task", "infra", "cancelled"):
            self.assertEqual(metrics.sum("sluice_rollouts_ended_total", outcome=outcome), rollouts[outcome], outcome)
        for stage, told in stages.items():
            self.assertEqual(metrics.sum("sluice_slots", stage=stage), told["slots"])
            self.assertEqual(metrics.sum("sluice_slots_free", stage=stage), told["free"])
            self.assertEqual(metrics.sum("sluice_workers", stage=stage), told["workers"])
            if stage != "init":  # whose jobs are groups
                self.assertEqual(metrics.sum("sluice_rollouts_live", stage=stage, state="leased"), told["leased"])
        self.assertEqual(metrics.sum("sluice_workers"), status["totals"]["workers"])
        self.assertEqual(len(metrics.samples["sluice_engine_up"]), status["totals"]["engines"])
        self.assertEqual(metrics.sum("sluice_health", state=status["health"]), 1)
        self.assertEqual(metrics.sum("sluice_health"), 1)
        self.assertEqual(metrics.sum("sluice_epoch"), status["epoch"])
        for name, limit in status["limits"].items():
            self.assertAlmostEqual(metrics.sum("sluice_limit_used_ratio", limit=name), limit["used"] / limit["max"], 3)

    def check_names(self, metrics):
        for name, labels in PROMISED.items():
            self.assertIn(name, metrics.kinds)
            of = f"{name}_count" if metrics.kinds[name] == "histogram" else name
            self.assertEqual(metrics.labels[of], {labels}, name)

    def check_counts(self, metrics, trajectories):
        """Each trajectory's numbers, once."""
        turns = [turn for t in trajectories for trace in t["traces"] for turn in trace["turns"] if turn["role"] == "assistant"]
        self.assertEqual(metrics.sum("sluice_turns_total"), len(turns))
        self.assertEqual(metrics.sum("sluice_sampled_tokens_total"), sum(turn["length"] for turn in turns))
        self.assertEqual(metrics.sum("sluice_engine_call_seconds_count"), len(turns))
        self.assertAlmostEqual(metrics.sum("sluice_engine_call_seconds_sum"), sum(turn["seconds"] for turn in turns), delta=0.05)
        self.assertEqual(metrics.sum("sluice_traces_total"), sum(len(t["traces"]) for t in trajectories))
        self.assertEqual(metrics.sum("sluice_stage_seconds_count", stage="run"), len(trajectories))
        self.assertEqual(metrics.sum("sluice_reward_count", stream="train"), len(trajectories))
        self.assertAlmostEqual(metrics.sum("sluice_reward_sum"), sum(t["reward"] for t in trajectories))
        commands = sum(message.get("tool") is not None for t in trajectories for message in t["messages"])
        self.assertEqual(metrics.sum("sluice_tool_seconds_count", tool="bash"), commands)
        self.assertGreater(metrics.sum("sluice_sandbox_start_seconds_count"), 0)

    def test_O1_names_labels_and_sums_of_a_busy_service(self):
        port = free_ports(1)
        with Engine(SCRIPT) as engine, Service(engines=[engine.url], options=["--gateway", str(port)]) as service:
            trajectories = service.submit([MATH, WRONG, SHELL], "train", samples=4)
            self.check_counts(read_metrics(service), trajectories)
            waiting = service.submit([SLOW, SLOW | {"task": "slower"}], "held", samples=24, wait=False)
            metrics, status = wait_until(lambda: self.read_at_work(service), 60, "more runs than slots")
            self.check_sums(metrics, status)
            self.check_names(metrics)
            service.finish(*waiting)
            metrics, status = read_both(service)
            self.check_sums(metrics, status)
            self.assertEqual(metrics.sum("sluice_rollouts_ended_total", trainable="true"), 60)
            self.check_formats(service)
            self.check_gateway(port)

    def read_at_work(self, service):
        metrics, status = read_both(service)
        states = [metrics.sum("sluice_rollouts_live", stage="run", state=state) for state in ("queued", "leased")]
        return (metrics, status) if all(states) else None

    def check_formats(self, service):
        text, openmetrics = service.run("metrics").stdout, service.run("metrics", "--openmetrics").stdout
        self.assertTrue(openmetrics.endswith("\n# EOF\n"))
        self.assertEqual(openmetrics.count("# EOF"), 1)
        self.assertNotIn("# EOF", text)
        told, other = Metrics(text), Metrics(openmetrics)
        self.assertEqual({name: set(samples) for name, samples in told.samples.items()},
                         {name: set(samples) for name, samples in other.samples.items()})
        for name, kind in other.kinds.items():
            self.assertFalse(name.endswith(("_total", "_info")), name)
            self.assertIn(kind, ("counter", "gauge", "histogram", "info"))
        for unit in re.findall(r"^# UNIT (\S+ \S+)$", openmetrics, re.M):
            self.assertTrue(unit.split()[0].endswith("_" + unit.split()[1]), unit)
        self.check_by_promtool(text)

    def check_gateway(self, port):
        """The broker's metrics and the gateway's own, as Prometheus asks for them."""
        def ask(accept):
            asked = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return answer.headers["Content-Type"], answer.read().decode()
        kind, text = ask("*/*")
        self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
        kind, openmetrics = ask("application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
        self.assertEqual(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.assertTrue(openmetrics.endswith("\n# EOF\n"))
        self.assertEqual(openmetrics.count("# EOF"), 1)
        for told in (Metrics(text), Metrics(openmetrics)):
            self.assertEqual(told.sum("sluice_rollouts_accepted_total"), 60)
            self.assertGreater(told.sum("sluice_http_connections"), 0)
        self.assertEqual({name for name in Metrics(text).samples if name not in documented()}, set())
        self.check_by_promtool(text)

    def check_by_promtool(self, text):
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))


def documented():
    """The names of the table, as samples have them."""
    done = subprocess.run([os.path.join(BINARY, "schemas", "sluice-describe"), "metrics-md"], capture_output=True, text=True, check=True)
    names = set()
    for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", done.stdout, re.M):
        names.update([f"{name}_bucket", f"{name}_sum", f"{name}_count"] if kind == "histogram" else [name])
    return names


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as text:
        return text.read()


class Examples(unittest.TestCase):
    def queries(self):
        """(where, expression) of the dashboard and of the page."""
        dashboard = json.loads(read("docs", "examples", "grafana.json"))
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield panel["title"], target["expr"].replace("$instance", ".*")
        for row in read("docs", "metrics.md").split("| question | query |", 1)[1].splitlines():
            for query in re.findall(r"`([^`]+)`", row):
                yield "docs/metrics.md", query

    def test_each_query_is_of_a_metric_that_there_is(self):
        asked = [*self.queries(), ("alerts.yml", read("docs", "examples", "alerts.yml"))]
        self.assertGreater(len(asked), 30)
        names = documented()
        for where, query in asked:
            for name in re.findall(r"\b(?:sluice|process)_[a-z_]+\b", query):
                self.assertIn(name, names, where)

    def test_panels_do_not_lie_over_each_other(self):
        taken = {}
        for panel in json.loads(read("docs", "examples", "grafana.json"))["panels"]:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            for x in range(at["x"], at["x"] + at["w"]):
                for y in range(at["y"], at["y"] + at["h"]):
                    self.assertNotIn((x, y), taken, panel["title"])
                    taken[x, y] = panel["title"]

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (Debian's package prometheus)")
    def test_O1_promtool_reads_the_rules_and_each_query(self):
        done = subprocess.run(["promtool", "check", "rules", os.path.join(SOURCE, "docs", "examples", "alerts.yml")],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rules = [{"record": f"q:{i}", "expr": query} for i, (_, query) in enumerate(self.queries())]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "q", "rules": rules}]}, file)
            file.flush()
            done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
