/* The three stages as queues and slots, and what flows between them. */
const CELLS = 48;

function pipeline() {
  const stages = ["init", "run", "eval"].map((stage) => stageBox(stage));
  const out = outBox();
  const node = el("section.flow", { "aria-label": "Stages" });
  for (const one of stages) node.append(one.node, channel());
  node.append(out.node);
  return { node, update(status) {
    if (!status) return;
    const data = series();
    const rate = recent(data.rollouts) || 0;
    node.classList.toggle("is-flowing", rate > 0);
    node.style.setProperty("--pace", Math.max(0.6, Math.min(6, 3 / Math.max(0.2, Math.sqrt(rate)))).toFixed(1) + "s");
    const part = status.bottleneck ? status.bottleneck.part : "";
    stages.forEach((one) => one.update((status.stages || {})[one.stage] || {}, part));
    out.update(status, rate);
  } };
}

function channel() {
  return el("div.channel", { "aria-hidden": "true" }, svg("svg", { viewBox: "0 0 40 12", preserveAspectRatio: "none" },
    svg("path", { d: "M0,6H40", class: "channel-bed" }), svg("path", { d: "M0,6H40", class: "channel-flow" })));
}

function stageBox(stage) {
  const words = STAGES[stage];
  const queued = el("b");
  const queue = meter("Jobs that wait for " + stage);
  const slotsText = el("span");
  const cells = el("div.slots", { role: "img" });
  const waits = el("div.waits");
  const times = el("p.stage-times");
  const badge = el("span.chip.is-warn", { hidden: true }, "what work waits for");
  const node = el("a.stage.s-" + stage, { href: withQuery("#/rollouts", { stage }) },
    el("div.stage-head", null, el("span.stage-name", null, words.name), el("code", null, stage), badge),
    el("p.quiet.stage-says", null, words.says),
    el("div.stage-queue", null, el("span", null, queued, " in the queue"), queue),
    el("div.stage-slots", null, slotsText, cells), waits, times);
  return { node, stage, update(jobs, bottleneck) {
    const isShort = bottleneck === stage || (stage === "run" && bottleneck === "engines");
    node.classList.toggle("is-short", isShort);
    show(badge, isShort);
    say(queued, count(jobs.queued || 0));
    queue.update(jobs.slots ? (jobs.queued || 0) / (2 * jobs.slots) : jobs.queued ? 1 : 0, isShort ? "warn" : "");
    const busy = Math.max(0, (jobs.slots || 0) - (jobs.free || 0));
    say(slotsText, jobs.slots ? count(busy) + " of " + plural(jobs.slots, "slot") + " at work, " + plural(jobs.workers || 0, "worker") : "no worker is ready");
    set(cells, { "aria-label": count(busy) + " of " + count(jobs.slots || 0) + " slots at work" });
    say(times, timesOf(stage));
    drawCells(cells, jobs.slots || 0, busy);
    const list = [["delayed", "being tried again"], ["alone", "wait for an idle worker"], ["no_engine", "without an engine"], ["no_offer", "without a handler"]]
      .filter(([key]) => jobs[key]);
    keyed(waits, list, ([key]) => key, () => el("span.chip.is-warn"), (child, [key, text]) => say(child, count(jobs[key]) + " " + text));
  } };
}

/* How long this stage took the last 300. */
function timesOf(stage) {
  const taken = newest(() => true, 300).map((one) => one[stage + "_ms"]).filter((ms) => ms > 0).sort((a, b) => a - b);
  return taken.length > 4 ? "each " + duration(quantile(taken, 0.5)) + ", 1 in 10 over " + duration(quantile(taken, 0.9)) : "";
}

/* One cell a slot, or where there are many one for so many. */
function drawCells(node, slots, busy) {
  const length = Math.min(CELLS, slots);
  const lit = slots ? Math.round((busy * length) / slots) : 0;
  keyed(node, Array.from({ length }, (_, k) => k), (k) => k, () => el("i"), (child, k) => child.classList.toggle("on", k < lit));
}

function outBox() {
  const number = el("b.out-rate");
  const pending = el("p.quiet");
  const bars = el("ul.out-outcomes");
  const node = el("a.stage.s-out", { href: "#/streams" }, el("div.stage-head", null, el("span.stage-name", null, "Ended"), el("code", null, "streams")),
    el("p.out-line", null, number, " a second"), pending, bars);
  return { node, update(status, rate) {
    say(number, short(rate));
    say(pending, plural((status.totals || {}).streams || (status.streams || []).length, "stream") + ", " + plural((status.rollouts || {}).live || 0, "rollout") + " live");
    const all = status.rollouts || {};
    const total = endedCount(status);
    keyed(bars, ["ok", "agent", "task", "infra", "cancelled"].filter((outcome) => all[outcome]), (outcome) => outcome,
      (outcome) => el("li", { title: OUTCOMES[outcome] }, el("i.dot.is-" + outcome), el("span", null, outcome), el("b"), el("small.quiet")), (child, outcome) => {
        say(child.children[2], short(all[outcome]));
        say(child.children[3], percent(all[outcome], total));
      });
  } };
}
