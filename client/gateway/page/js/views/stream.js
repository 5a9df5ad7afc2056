/* One stream: rewards, lengths, turns and times as histograms and over time, its sampler, its warnings. */
const SHOWN_LAST = 1000;

const MEASURES = [
  { key: "reward", name: "Reward", text: reward, of: (one) => one.reward },
  { key: "length", name: "Sampled tokens", text: short, of: (one) => one.sampled_tokens },
  { key: "turns", name: "Turns", text: short, of: (one) => one.turns },
  { key: "time", name: "Time without queues", text: duration, of: (one) => sum([one.init_ms, one.run_ms, one.eval_ms]) },
];

function streamView(parts) {
  const name = parts[1];
  const older = new Map();
  let isOver = false;
  const mark = el("span.quiet");
  const outcomes = stackBar("How they ended");
  const outcomeText = el("p.quiet");
  const warnings = warningList();
  const calm = el("p.quiet", null, "Nothing to warn of.");
  const sampler = el("div");
  const charts = MEASURES.map((measure) => ({ measure, bars: histogram(measure.name + ", how often", measure.text), line: trend(measure.name + " over time", measure.text) }));
  const node = el("div.panel", null, el("nav.crumbs", { "aria-label": "Where this is" }, el("a", { href: "#/streams" }, "Streams"), " / " + name),
    el("div.one-head", null, el("h1", null, name), mark, el("a", { href: withQuery("#/rollouts", { view: "ended", stream: name }) }, "Its rollouts"), el("a", { href: withQuery("#/groups", { stream: name }) }, "Its groups")),
    el("div.grid.two", null, card("How they ended", {}, outcomes, outcomeText), card("Look at this", {}, warnings, calm)), sampler,
    charts.map((one) => card(one.measure.name, { className: "measure" }, el("div.measure-charts", null, one.line, one.bars))));

  async function load() {
    try {
      const answer = await ask(withQuery("/rollouts", { ended: "true", stream: name, limit: SHOWN_LAST }));
      for (const one of answer.rollouts || []) older.set(keyOf(one), one);
      if (!isOver) draw();
    } catch (error) {
      // What ends from now on is told by the page's own stream.
    }
  }

  function draw() {
    const known = new Map(older);
    for (const one of newest((other) => other.stream === name, SHOWN_LAST)) known.set(keyOf(one), one);
    const list = [...known.values()].sort((a, b) => a.seq - b.seq).slice(-SHOWN_LAST);
    const status = ((store.status || {}).streams || []).find((one) => one.name === name) || {};
    say(mark, isNumber(status.head) ? count(status.head) + " ended, " + plural(status.pending, "is", "are") + " pending" : "");
    for (const one of charts) drawMeasure(one, list);
    drawOutcomes(list);
    const found = streamWarnings(name);
    warnings.update(found.map((one) => ({ ...one, stream: "" })));
    show(calm, !found.length);
    drawSampler(sampler, samplerOf(name));
  }

  function drawMeasure({ measure, bars, line }, list) {
    const known = list.filter((one) => isNumber(measure.of(one)));
    bars.update(known.map(measure.of), 20);
    line.update(known.map((one) => ({ value: measure.of(one), href: rolloutPath(one.rollout), when: () => clock(one.ended_ms),
      lines: () => [measure.text(measure.of(one)), one.rollout, one.outcome + ", " + clock(one.ended_ms)] })));
  }

  function drawOutcomes(list) {
    const counts = Object.keys(OUTCOMES).map((outcome) => ({ outcome, kind: "end-" + outcome, ms: list.filter((one) => one.outcome === outcome).length }))
      .map((one) => ({ ...one, text: one.outcome + " " + count(one.ms) + ", " + percent(one.ms, list.length) }));
    outcomes.update(counts, ["The last " + plural(list.length, "rollout"), ...counts.filter((one) => one.ms).map((one) => one.text)]);
    fill(outcomeText, list.length ? counts.filter((one) => one.ms).map((one) => el("a.outcome-link", { href: withQuery("#/rollouts", { view: "ended", stream: name, outcome: one.outcome }) }, el("i.dot.is-" + one.outcome), one.text)) : "None has ended yet.");
  }

  const redraw = throttled(1000, draw);
  load();
  return { node, title: name, update: (changes) => (changes.has("ended") || changes.has("status")) && redraw(), stop() {
    isOver = true;
  } };
}

const VERDICT_KINDS = { kept: "end-ok", uniform_0: "wait", uniform_1: "queue", uniform_other: "agent", no_reward: "end-task", stale: "waiting", forgotten: "end-infra" };

/* In thousandths, or a share. */
function acceptanceOf(sampler) {
  return sampler.acceptance > 1 ? sampler.acceptance / 1000 : sampler.acceptance;
}

/* What there is of each kind, as one bar with its names: `list` has [name, kind, count]. */
function stockRow(label) {
  const bar = stackBar(label);
  const names = el("ul.legend");
  const more = el("span.quiet");
  const node = el("div.stock", null, el("div.stock-head", null, el("b", null, label), more), bar, names);
  node.update = (list, text) => {
    const known = list.filter(([, , value]) => value);
    const total = sum(known.map(([, , value]) => value));
    bar.update(known.map(([name, kind, value]) => ({ kind, ms: value, text: name + " " + count(value) })), [label, ...known.map(([name, , value]) => name + ": " + count(value) + ", " + percent(value, total))]);
    keyed(names, known, ([name]) => name, ([name, kind]) => el("li", null, el("i.swatch.k-" + kind), el("span.legend-name", null, name), el("b")), (child, [, , value]) => say(child.lastChild, count(value)));
    say(more, text);
  };
  return node;
}

/* A sampler and its accounting: where all groups that were submitted are. */
function drawSampler(node, one) {
  if (!one) {
    if (node.firstChild) fill(node);
    return;
  }
  if (!node.firstChild) node.append(card("Sampler", {}, el("p.lead"), stockRow("Groups on their way"), stockRow("Verdicts so far"), el("div.grid.two", null, el("div"), el("div"))));
  const [, lead, stock, verdicts, tables] = node.firstChild.children;
  say(lead, one.why ? "Why the next batch is not there: " + sentence(one.why) : "Batch " + count(one.batch) + (one.told ? " was told, and the next is being made." : " is there."));
  stock.update([["held", "wait", one.held], ["at work", "sampling", one.live], ["ready", "end-ok", one.ready]], one.wanted ? "of " + count(one.wanted) + " wanted at once" : "");
  verdicts.update(Object.entries(one.total || {}).map(([key, value]) => [key.replace(/_/g, " "), VERDICT_KINDS[key] || "wait", value]), isNumber(one.acceptance) ? percent(acceptanceOf(one), 1) + " kept of late" : "");
  fill(tables.children[0], facts(["trainer", one.trainer], ["batch", count(one.batch)], ["submitted", plural(one.submitted, "group")], ["closing", one.closing ? "yes" : ""]));
  fill(tables.children[1], el("h3", null, "Verdicts, since the last batch and ever"), facts(...Object.keys(one.total || {}).map((key) => [key.replace(/_/g, " "), count((one.account || {})[key] || 0) + " · " + count(one.total[key])])));
}
