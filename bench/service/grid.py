"""The control plane, one thing changed at a time: rollouts a second by size of the task, by number of workers and by samples
of a group, and the CPU that a rollout takes, by kind of process."""
import page
import processes
from parts import FEED, FRONT, url

SIZES = (224, 1024, 8192, 65536)
WORKERS = (1, 2, 4, 8)
SAMPLES = (1, 8, 16)
TASK_BYTES, STAFF = 1024, 4  # what is not changed
DURABILITIES = ("full", "none")
WINDOW_BYTES = 64 << 20  # of tasks that are outstanding, at most
KINDS = ("broker", "workers", "client")


class Grid:
    def __init__(self, service, quick):
        self.service, self.values = service, page.Values()
        sizes = SIZES[-1:] if quick else SIZES
        workers = WORKERS[:1] if quick else WORKERS
        samples = SAMPLES[1:2] if quick else SAMPLES
        cells = [*((size, STAFF, 1) for size in sizes), *((TASK_BYTES, count, 1) for count in workers),
                 *((TASK_BYTES, STAFF, count) for count in samples)]
        self.cells = list(dict.fromkeys(cells))
        self.count, self.rounds = (512, 1) if quick else (8000, 3)

    @staticmethod
    def name(size, workers, samples):
        groups = f", groups of {samples}" if samples > 1 else ""
        return f"tasks of {size:,} bytes, {workers} worker{'s' * (workers > 1)} a stage{groups}"

    def flow(self, size, samples, count):
        window = min(4000, WINDOW_BYTES // size)
        return self.service.program("rollouts", "flow", url(FRONT), url(FEED), count, window, size, samples)[0]

    def cell(self, size, workers, samples, durability):
        with self.service.broker(durability=durability, workers=workers) as broker:
            self.flow(size, samples, self.count // 10 // samples * samples)  # everything is up and warm
            kinds = {"broker": [broker.process], "workers": broker.others}
            before = {kind: processes.cpu_s(*of) for kind, of in kinds.items()}
            client = processes.children_cpu_s()
            what = self.name(size, workers, samples)
            self.values.note(f"{what}, {durability}", self.flow(size, samples, self.count))
            client_took = processes.children_cpu_s() - client
            if durability == "full":
                took = {kind: processes.cpu_s(*of) - before[kind] for kind, of in kinds.items()}
                took["client"] = client_took
                for kind in KINDS:
                    self.values.note(f"{what}, {kind}", took[kind] * 1e6 / self.count)

    def measure(self, number):
        if number <= self.rounds:
            for cell in self.cells:
                for durability in DURABILITIES:
                    self.cell(*cell, durability)

    def table(self):
        rows = ["| what | rollouts/s, full | rollouts/s, none | CPU us a rollout: broker | all workers | client |",
                "|---|---|---|---|---|---|"]
        for cell in self.cells:
            name = self.name(*cell)
            rows.append(f"| {name} | " + " | ".join(self.values.cell(f"{name}, {column}")
                                                   for column in (*DURABILITIES, *KINDS)) + " |")
        return "\n".join(rows)
