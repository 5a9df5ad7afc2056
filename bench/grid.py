"""The control plane, one thing changed at a time: rollouts a second by size of the task and by number of workers, and
the CPU that a rollout takes, by kind of process."""
import resource

import page
import processes
from parts import FEED, FRONT, url

SIZES = (224, 1024, 8192, 65536)
WORKERS = (1, 2, 4, 8)
TASK_BYTES, STAFF = 1024, 4  # what is not changed
DURABILITIES = ("full", "none")
WINDOW_BYTES = 64 << 20  # of tasks that are outstanding, at most
KINDS = ("broker", "workers", "client")


class Grid:
    def __init__(self, service, quick):
        self.service, self.values = service, page.Values()
        sizes = SIZES[-1:] if quick else SIZES
        workers = WORKERS[:1] if quick else WORKERS
        cells = [(size, STAFF) for size in sizes] + [(TASK_BYTES, count) for count in workers]
        self.cells = list(dict.fromkeys(cells))
        self.count, self.rounds = (500, 1) if quick else (8000, 3)

    @staticmethod
    def name(size, workers):
        return f"tasks of {size:,} bytes, {workers} worker{'s' * (workers > 1)} a stage"

    def flow(self, size, count):
        window = min(4000, WINDOW_BYTES // size)
        return self.service.program("rollouts", "flow", url(FRONT), url(FEED), count, window, size)[0]

    def cell(self, size, workers, durability):
        with self.service.broker(durability=durability, workers=workers) as broker:
            self.flow(size, self.count // 10)  # everything is up and warm
            kinds = {"broker": [broker.process], "workers": broker.others}
            before = {kind: processes.cpu_s(*of) for kind, of in kinds.items()}
            client = resource.getrusage(resource.RUSAGE_CHILDREN)
            what = self.name(size, workers)
            self.values.note(f"{what}, {durability}", self.flow(size, self.count))
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            if durability == "full":
                took = {kind: processes.cpu_s(*of) - before[kind] for kind, of in kinds.items()}
                took["client"] = ended.ru_utime + ended.ru_stime - client.ru_utime - client.ru_stime
                for kind in KINDS:
                    self.values.note(f"{what}, {kind}", took[kind] * 1e6 / self.count)

    def measure(self, number):
        if number <= self.rounds:
            for size, workers in self.cells:
                for durability in DURABILITIES:
                    self.cell(size, workers, durability)

    def table(self):
        rows = ["| what | rollouts/s, full | rollouts/s, none | CPU us a rollout: broker | all workers | client |",
                "|---|---|---|---|---|---|"]
        for cell in self.cells:
            name = self.name(*cell)
            rows.append(f"| {name} | " + " | ".join(self.values.cell(f"{name}, {column}")
                                                   for column in (*DURABILITIES, *KINDS)) + " |")
        return "\n".join(rows)
