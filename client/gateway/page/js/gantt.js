/* Where a rollout's seconds went. A span is {kind, ms, start?, label, turn?}: KINDS of js/words.js are its kinds. */

/* The spans of an ended rollout, one behind the other: a record tells how long each step took, not when it began. */
function spansOf(t, model) {
  const spans = [];
  const push = (kind, ms, label, turn) => ms > 0 && spans.push({ kind, ms, label, turn });
  push("wait", t.wait_ms, "in queues, of all stages together");
  push("sandbox", t.init_ms, "set-up");
  const steps = model ? runSpans(model) : [];
  const known = sum(steps.map((one) => one.ms));
  const scale = known > t.run_ms && known ? t.run_ms / known : 1;
  for (const one of steps) spans.push({ ...one, ms: one.ms * scale });
  push("agent", (t.run_ms || 0) - known, steps.length ? "the agent's own program, its sandbox, packing" : "the run");
  push("evaluating", t.eval_ms, "scoring");
  let at = 0;
  for (const one of spans) {
    one.start = at;
    at += one.ms;
  }
  return spans;
}

function runSpans(model) {
  const spans = [];
  for (const turn of model.turns) {
    const ms = (turn.seconds || 0) * 1000;
    if (!ms) continue;
    if (turn.role === "assistant") {
      const queue = Math.min(ms, (turn.queue_seconds || 0) * 1000);
      if (queue > 0) spans.push({ kind: "queue", ms: queue, label: "turn " + turn.number + ": in the engine's queue", turn: turn.number });
      spans.push({ kind: "sampling", ms: ms - queue, label: "turn " + turn.number + ": " + plural(turn.length, "token") + " sampled", turn: turn.number });
    } else {
      spans.push({ kind: "tool", ms, label: "turn " + turn.number + ": " + (turn.tool || "a tool"), turn: turn.number });
    }
  }
  return spans;
}

/* How much of each kind, in the order in which they first come. */
function partsOf(spans) {
  const parts = new Map();
  for (const one of spans) parts.set(one.kind, (parts.get(one.kind) || 0) + one.ms);
  return [...parts].map(([kind, ms]) => ({ kind, ms, text: KINDS[kind].name + " " + duration(ms) }));
}

function longestOf(spans) {
  return spans.reduce((best, one) => (!best || one.ms > best.ms ? one : best), null);
}

/* Rows of spans on an axis of time, and how much each kind comes to. `update(spans, total)`. */
function gantt(label) {
  const drawing = svg("svg", { class: "gantt-row", viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  const axis = el("div.gantt-axis", { "aria-hidden": "true" });
  const legend = el("ul.legend", { "aria-label": "How long each kind of step took" });
  const area = el("div.gantt-area", { role: "img", "aria-label": label }, drawing);
  const node = el("div.gantt", null, area, axis, legend);
  let spans = [];
  let total = 1;
  const rects = [];
  const mark = (k) => rects.forEach((rect, one) => rect.classList.toggle("on", one === k));
  steppable(area, () => spans.length, (k) => ({ x: ((spans[k].start + spans[k].ms / 2) / total) * area.clientWidth,
    lines: [KINDS[spans[k].kind].name + ": " + duration(spans[k].ms), spans[k].label, percent(spans[k].ms, total) + " of " + duration(total)] }), mark);
  set(area, { on: { pointermove: (event) => {
    const box = area.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * total;
    const k = spans.findIndex((one) => at >= one.start && at < one.start + one.ms);
    if (k >= 0) {
      mark(k);
      tipAt(event.clientX, event.clientY, [KINDS[spans[k].kind].name + ": " + duration(spans[k].ms), spans[k].label,
        percent(spans[k].ms, total) + " of " + duration(total)]);
    }
  } } });
  node.update = (list, whole) => {
    spans = list.slice(0, 3000);
    total = Math.max(1, whole || sum(list.map((one) => one.ms)));
    while (rects.length < spans.length) drawing.append(rects[rects.push(svg("rect", { y: 0, height: 10 })) - 1]);
    while (rects.length > spans.length) rects.pop().remove();
    spans.forEach((one, k) => set(rects[k], { class: "k-" + one.kind, x: ((1000 * one.start) / total).toFixed(2),
      width: Math.max(0.8, (1000 * one.ms) / total - (one.ms / total > 0.01 ? 0.8 : 0)).toFixed(2) }));
    const parts = partsOf(list).sort((a, b) => b.ms - a.ms);
    keyed(axis, [0, 0.25, 0.5, 0.75, 1], (part) => part, () => el("span"), (child, part) => say(child, part ? duration(total * part) : "0"));
    keyed(legend, parts, (one) => one.kind, (one) => el("li", { title: KINDS[one.kind].says }, el("i.swatch.k-" + one.kind), el("span.legend-name", null, KINDS[one.kind].name), el("b"), el("small")),
      (child, one) => {
        say(child.children[2], duration(one.ms));
        say(child.children[3], percent(one.ms, total));
      });
    area.setAttribute("aria-label", label + ", " + duration(total) + ": " + parts.map((one) => one.text).join(", "));
  };
  return node;
}
