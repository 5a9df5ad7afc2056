"""Services that the page is shown without one being there: status, live and ended rollouts, trajectories and live events, all made from
a seed, in the forms of docs/operations.md, docs/trajectory.md and docs/live.md."""
import math
import random
import time

WHY_ENGINE = "the engine http://gpu2:8000 is failing: connection refused"
FAILURES = {
    "infra": ["the engine http://gpu2:8000 refused the connection 5 times in 41 s", "the store: layer sha256:91ab44c0 is not there",
              "the sandbox was not ready within 8 s on node7"],
    "task": ["the evaluator was killed: over its limit of 512 MiB", "set-up failed: pip install pytest==9.9 ended with status 1"],
    "agent": ["all of agent.max_turns, 20, were used up", "the context of 8192 tokens was used up"],
    "cancelled": ["the sampler's batch was full"],
}
TASKS = ["fix-parser", "sum-columns", "find-leak", "sort-graph", "parse-dates", "merge-trees"]
TOOLS = ["bash: pytest -q tests/", "bash: ls -l src", "edit: src/parser.c", "bash: make -j4", "ipython: solve(17)", "search: def tokenize"]


def now_ms():
    return int(time.time() * 1000)


class World:
    """A service of so many rollouts. `name` is empty, busy, degraded or many."""

    def __init__(self, name="busy", live=48, ended=400, seed=1):
        self.name, self.random, self.seq = name, random.Random(seed), {"train": 0, "eval": 0}
        self.started, self.ok, self.needs_login = now_ms() - 11_520_000, {}, False
        self.live = [self.live_rollout(k) for k in range(0 if name == "empty" else live)]
        self.ended = []
        if name != "empty":
            start = now_ms() - 280_000
            for k in range(ended):
                self.ended.append(self.summary(k, start + k * 280_000 // ended))
        self.counts = {"ok": 18234, "agent": 2210, "task": 143, "infra": 61, "cancelled": 12} if name != "empty" else dict.fromkeys(
            ("ok", "agent", "task", "infra", "cancelled"), 0)
        self.trajectories = {}

    # ---- one rollout ------------------------------------------------------------------------------------------------

    def live_rollout(self, k):
        r = self.random
        stage = r.choices(["init", "run", "eval"], [1, 8, 2])[0]
        state = r.choices(["leased", "queued", "delayed"], [6, 3, 0.4])[0]
        one = {"rollout": f"{r.choice(TASKS)}-{2000 + k // 8}/{k % 8}", "stream": "train" if k % 5 else "eval", "task": TASKS[k % 6], "attempt": 1 if k % 11 else 2,
               "image": "/images/debian.sif", "stage": stage, "state": state, "for_ms": int(r.expovariate(1 / 25_000)) + 300}
        if stage == "run":
            one["engine"] = f"http://gpu{1 + k % 3}:8000"
        if state == "leased":
            one["worker"] = f"node{1 + k % 4}-{4700 + k % 7}-9f2c"
            if stage == "run":
                one.update(turn=r.randint(1, 14), tool="bash")
        elif state == "queued":
            one["why"] = "all 64 slots of run workers are taken, or it is others' turn" if stage == "run" else f"all 16 slots of {stage} workers are taken, or it is others' turn"
        else:
            one["why"] = f"it failed, and is tried again in 4 s; before: {WHY_ENGINE}"
        return one

    def summary(self, k, ended_ms, stream=None):
        r = self.random
        stream = stream or ("train" if k % 5 else "eval")
        self.seq[stream] += 1
        group, sample = f"{TASKS[(k // 8) % 6]}-{1000 + k // 8}", k % 8
        worse = 0.25 if self.name == "degraded" else 0.02
        outcome = r.choices(["ok", "agent", "infra", "task", "cancelled"], [8, 1.4, 10 * worse, 2 * worse, 0.05])[0]
        hard = 0.5 + 0.4 * math.sin(k // 8)
        reward = (1.0 if r.random() < min(0.95, hard + k / 1200) else r.choice([0.0, 0.0, 0.25, 0.5])) if outcome in ("ok", "agent") else None
        turns = max(1, int(r.gammavariate(3, 2.4)))
        tokens = sum(r.randint(40, 220) for _ in range(turns))
        run = int(turns * r.uniform(1500, 5200))
        end = "done" if outcome == "ok" else r.choice(["turns", "context", "loop", "time"]) if outcome == "agent" else ""
        traces = 1 + (r.random() < 0.1 + k / 2500) + (r.random() < 0.05)
        return {"stream": stream, "seq": self.seq[stream], "rollout": f"{group}/{sample}", "group": group, "task": group.rsplit("-", 1)[0], "sample": sample,
                "outcome": outcome, "trainable": outcome in ("ok", "agent"), "reward": reward, "wait_ms": int(r.expovariate(1 / 9000)), "init_ms": r.randint(200, 1800),
                "run_ms": run, "eval_ms": r.randint(300, 5200), "ended_ms": ended_ms, "turns": turns, "sampled_tokens": tokens, "prompt_tokens": tokens * 4 + 700,
                "traces": traces, "reasons": [r.choice(["cut: the last reply", "rewrite: drops reasoning", "end: token 2"]) for _ in range(traces - 1)],
                "truncated": r.random() < 0.06, "end": end, "detail": r.choice(FAILURES[outcome]) if outcome in FAILURES else "", "engine": f"http://gpu{1 + k % 3}:8000", "attempt": 1}

    def find(self, name):
        return next((one for one in self.ended if one["rollout"] == name), None)

    # ---- the service ------------------------------------------------------------------------------------------------

    def status(self):
        if self.name == "empty":
            return self.empty_status()
        degraded = self.name == "degraded"
        queued = 212 if not degraded else 530
        workers = [{"worker": f"node{n}-{4700 + n}-{stage}", "stage": stage, "host": f"node{n}", "state": "hung" if degraded and n == 3 and stage == "run" else "ready", "slots": slots,
                    "jobs": jobs, "beat_ago_ms": 400, "sandbox": "overlay-disk", "sandboxes": jobs, "kernel": "6.1.0"}
                   for n in range(1, 5) for stage, slots, jobs in (("init", 4, 1), ("run", 16, 16), ("eval", 4, 3))]
        engines = [{"url": f"http://gpu{n}:8000", "state": "failing" if degraded and n == 2 else "healthy", "faults": 5 if degraded and n == 2 else 0,
                    "retry_in_ms": 4100 if degraded and n == 2 else 0, "live": 0 if degraded and n == 2 else 21 + n, "tokens": 181_000 + n * 1000, "calls": 0 if degraded and n == 2 else 17 + n, "limit": 32,
                    "version": "v41", "cache_permille": 610 + 90 * n, "policy": "default", "has_answered": True,
                    **({"error": "connection refused"} if degraded and n == 2 else {})} for n in (1, 2, 3)]
        return {
            "health": "degraded" if degraded else "healthy",
            "reasons": ["1 of 3 engines are set aside after faults in a row", "1 run worker was lost within 600 s, and run has 16 fewer slots since"] if degraded else [],
            "epoch": 3, "uptime_ms": now_ms() - self.started, "rollouts": {"accepted": 20660 + len(self.live), "live": len(self.live), "limit": 1_000_000, **self.counts},
            "stages": {"init": {"queued": 6, "leased": 4, "delayed": 0, "alone": 0, "no_engine": 0, "no_offer": 0, "workers": 4, "slots": 16, "free": 12},
                       "run": {"queued": queued, "leased": 64, "delayed": 9 if degraded else 0, "alone": 0, "no_engine": 31 if degraded else 0, "no_offer": 0, "workers": 4, "slots": 64, "free": 0},
                       "eval": {"queued": 2, "leased": 12, "delayed": 0, "alone": 0, "no_engine": 0, "no_offer": 0, "workers": 4, "slots": 16, "free": 4}},
            "bottleneck": {"part": "engines", "why": "every engine has as many rollouts as it may, and 530 run jobs wait"} if degraded
            else {"part": "run", "why": f"all 64 run slots are taken, and {queued} jobs wait"},
            "limits": {"rollouts_max": {"used": len(self.live), "max": 1_000_000, "percent": 0}, "results_max": {"used": 81_200, "max": 100_000, "percent": 81},
                       "results_bytes_max": {"used": 3_100_000_000, "max": 17_179_869_184, "percent": 18}, "task_bytes_max": {"used": 120_000, "max": 1_073_741_824, "percent": 0}},
            "totals": {"workers": len(workers), "streams": 2, "engines": 3},
            "streams": [{"name": "train", "owner": "alice", "first": 1, "head": self.seq["train"], "pending": 250, "kept_bytes": 48_000_000, "expired": 0},
                        {"name": "eval", "owner": "alice", "first": 1, "head": self.seq["eval"], "pending": 32, "kept_bytes": 9_000_000, "expired": 0}],
            "samplers": [{"stream": "train", "trainer": "grpo-1", "rule": {}, "batch": 17, "submitted": 512, "held": 120, "live": 40, "ready": 3, "acceptance": 420, "closing": False,
                          "account": {"kept": 5, "uniform_0": 3, "uniform_1": 2}, "total": {"kept": 139, "uniform_0": 71, "uniform_1": 60, "no_reward": 2, "stale": 1}, "wanted": 8, "told": True,
                          "why": "3 of 8 groups are ready, 40 are at work, 120 are held"}],
            "workers": workers,
            "lost": [{"worker": "node3-4703-run", "stage": "run", "host": "node3", "ago_ms": 42_000, "why": "no beat for 10 s", "jobs": 16}] if degraded else [],
            "id_conflicts": [], "engines": engines, "needs": [], "images": [], "clients": [{"name": "alice", "streams": 2, "live": len(self.live), "queued": queued, "leased": 80, "kept": len(self.ended)}],
            "store": {"state": "tended", "layers": 812, "bytes": 2_400_000_000, "freed_layers": 90, "freed_bytes": 1, "error": ""},
            "counters": {"groups": 2580, "dispatched": 61_000, "lost": 1, "results": 60_900, "beats": 88_000},
            "advice": ["start more run workers: sluice worker run --broker URL"] if not degraded else ["engine http://gpu2:8000 does not answer: is it running?"],
        }

    def empty_status(self):
        stage = {"queued": 0, "leased": 0, "delayed": 0, "alone": 0, "no_engine": 0, "no_offer": 0, "workers": 0, "slots": 0, "free": 0}
        return {"health": "down", "reasons": [f"no {name} worker is ready" for name in ("init", "run", "eval")], "epoch": 1, "uptime_ms": now_ms() - self.started,
                "rollouts": {"accepted": 0, "live": 0, "limit": 1_000_000, **self.counts}, "stages": {name: dict(stage) for name in ("init", "run", "eval")}, "bottleneck": None, "limits": {},
                "totals": {"workers": 0, "streams": 0, "engines": 0}, "streams": [], "samplers": [], "workers": [], "lost": [], "id_conflicts": [], "engines": [], "needs": [], "images": [],
                "clients": [], "store": {"state": "off"}, "counters": {}, "advice": ["no worker is connected: sluice worker run --broker URL"]}

    def tick(self):
        """One more has ended."""
        if self.name == "empty":
            return None
        one = self.summary(len(self.ended), now_ms())
        self.ended.append(one)
        self.counts[one["outcome"]] += 1
        for other in self.live:
            other["for_ms"] += 300
        return one

    def rollouts(self, query):
        if query.get("ended") in ("1", "true"):
            found = [one for one in reversed(self.ended) if all(query.get(key) in (None, one[key]) for key in ("stream", "group", "outcome"))]
        else:
            found = [one for one in self.live if all(query.get(key) in (None, one.get(key)) for key in ("stream", "stage", "state"))
                     and ("group" not in query or one["rollout"].startswith(query["group"] + "/"))]
        return {"rollouts": found[:int(query.get("limit", 100))], "matched": len(found)}
