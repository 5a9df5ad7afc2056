/* All streams: how much is in them, how they do, what reads them. */
function streamsView() {
  const list = el("div.stream-cards");
  const nothing = empty("No stream yet", "A stream is there with the first group that is submitted to it.");
  const node = el("div.panel", null, heading("Streams", "Where trajectories go, each with its rewards over time."), list, nothing);

  function draw() {
    const known = new Map(((store.status || {}).streams || []).map((one) => [one.name, one]));
    const items = streamNames().slice(0, 100).map((name) => ({ name, ...known.get(name) }));
    show(nothing, !items.length);
    keyed(list, items, (one) => one.name, streamCard, updateStreamCard);
  }
  const redraw = throttled(1000, draw);
  return { node, title: "Streams", update: (changes) => (changes.has("status") || changes.has("ended")) && redraw() };
}

function streamCard(one) {
  return el("a.card.stream-card", { href: path("stream", one.name) }, el("div.card-head", null, el("h2", null, one.name), el("span.chip")), el("div.stream-line", null, el("b"), el("span.quiet")), sparkline("Rewards of " + one.name),
    facts(["pending", el("span")], ["kept", el("span")], ["reader", el("span")]));
}

function samplerOf(name) {
  return ((store.status || {}).samplers || []).find((one) => one.stream === name);
}

function updateStreamCard(node, one) {
  const list = newest((other) => other.stream === one.name, 300).reverse();
  const rewards = list.map((other) => other.reward).filter(isNumber);
  const [head, line, spark, table] = node.children;
  const warnings = streamWarnings(one.name);
  setChip(head.lastChild, warnings.length ? warnings[0].text : "no warning", warnings.length ? warnings[0].level : "ok");
  say(line.children[0], reward(mean(rewards)));
  say(line.children[1], rewards.length ? "mean reward of the last " + rewards.length : "no reward yet");
  const smooth = rewards.length > 4 ? moving(rewards, Math.max(3, rewards.length / 20)).map((value) => value.mean) : [];
  const least = Math.min(0, ...smooth);
  spark.update(smooth.map((value) => value - least), Math.max(1, ...smooth) - least, (k) => ["mean " + reward(smooth[k])]);
  const cells = table.querySelectorAll("dd > span");
  say(cells[0], isNumber(one.pending) ? plural(one.pending, "rollout") : NONE);
  say(cells[1], isNumber(one.head) ? count(one.head - one.first + 1) + " of " + count(one.head) + (one.kept_bytes ? ", " + bytes(one.kept_bytes) : "") : NONE);
  const sampler = samplerOf(one.name);
  say(cells[2], sampler ? "a sampler, batch " + count(sampler.batch) : one.owner ? one.owner : "a trainer");
}
