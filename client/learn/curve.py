"""What a run was like: a line a step in the terminal, metrics.jsonl, TensorBoard where it is installed, and a picture."""
import json
import os

WIDTH, HEIGHT, LEFT, TOP = 640, 220, 56, 28


def _bar(value, width=24):
    return "█" * round(value * width) + "·" * (width - round(value * width))


class Metrics:
    """metrics.jsonl holds one object a step, each step once: what a killed run wrote of a step that is done again goes."""

    def __init__(self, folder, steps):
        self.path, self.rows = os.path.join(folder, "metrics.jsonl"), []
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                told = (line for line in file if line.endswith("}\n"))
                self.rows = [row for row in map(json.loads, told) if row["step"] <= steps]
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in self.rows)
        try:
            from torch.utils.tensorboard import SummaryWriter
            self.board = SummaryWriter(os.path.join(folder, "tensorboard"), purge_step=steps + 1)
        except ImportError:
            self.board = None

    def add(self, row):
        self.rows.append(row)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if self.board:
            for name, value in row.items():
                self.board.add_scalar(name, value, row["step"])
            self.board.flush()
        print(f"step {row['step']:>2}  {_bar(row['reward'])} reward {row['reward']:.3f} of {row['rollouts']:>3} rollouts  "
              f"|Δ log p| {row['difference']:.6f}  ratio {row['ratio']:.4f}  "
              f"sampled {row['sample_s']:.0f} s, trained {row['train_s']:.0f} s, updated {row['update_s']:.1f} s", flush=True)


def _panel(top, title, values, low, high, lines):
    """An SVG's pieces: a curve over the steps, between two values, with dashed lines at some."""
    across = (WIDTH - LEFT - 20) / max(1, len(values) - 1)
    place = lambda value: top + TOP + (HEIGHT - 2 * TOP) * (1 - (min(max(value, low), high) - low) / (high - low))
    points = [(LEFT + across * k, place(value)) for k, value in enumerate(values)]
    yield f'<text x="{LEFT}" y="{top + 16}" font-weight="bold">{title}</text>'
    for line in lines:
        yield (f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{place(line):.1f}" y2="{place(line):.1f}" stroke="#bbb" '
               f'stroke-dasharray="4"/><text x="{LEFT - 6}" y="{place(line) + 4:.1f}" text-anchor="end">{line:g}</text>')
    yield f'<polyline fill="none" stroke="#2563a8" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'
    for k, (x, y) in enumerate(points):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#2563a8"/>'
        yield f'<text x="{x:.1f}" y="{top + HEIGHT - 8}" text-anchor="middle">{k + 1}</text>'


def draw(path, rows, held_out):
    """The rewards and the importance ratios of a run as an SVG. held_out: [step, mean reward], the first before any."""
    told = ", ".join(f"{mean:.2f} at step {step}" for step, mean in held_out)
    title = f"reward of all that was sampled, by step (held out: {told})"
    pieces = [*_panel(0, title, [row["reward"] for row in rows], 0, 1, (0, 0.25, 0.5, 0.75, 1)),
              *_panel(HEIGHT, "mean importance ratio at the step's start", [row["ratio"] for row in rows], 0.99, 1.01,
                      (0.99, 0.995, 1, 1.005, 1.01))]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{2 * HEIGHT}" '
                   'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>' +
                   "\n".join(pieces) + "</svg>\n")
