/* The first panel: how the service is, in words, and what it waits for. */
function overview() {
  const health = el("span.health", { role: "status" }, el("i.dot"), el("span"));
  const head = el("h1.hero-head");
  const why = el("p.hero-why");
  const hint = el("p.quiet");
  const reasons = el("ul.reasons");
  const numbers = statRow();
  const flow = pipeline();
  const slow = el("ol.brief");
  const recentList = el("ol.brief");
  const warnings = warningList();
  const advice = el("ul.reasons");
  const nothing = el("p.quiet", null, "Nothing to warn of.");
  const engines = el("ul.brief.fleet");
  const hosts = el("ul.brief.fleet");
  const streams = el("ul.brief");
  const node = el("div.overview", null,
    el("section.hero", { "aria-label": "Health" }, el("div.hero-words", null, health, head, why, hint, reasons), numbers.node),
    flow.node,
    el("div.grid", null,
      card("Longest at work", { aside: el("a", { href: "#/rollouts" }, "All live") }, slow),
      card("Just ended", { aside: el("a", { href: "#/rollouts?view=ended" }, "All ended") }, recentList),
      card("Look at this", { aside: el("a", { href: "#/failures" }, "Failures") }, warnings, nothing, advice),
      card("Engines", { aside: el("a", { href: "#/fleet" }, "Fleet") }, engines),
      card("Hosts", { aside: el("a", { href: "#/fleet" }, "Fleet") }, hosts),
      card("Streams", { aside: el("a", { href: "#/streams" }, "All streams") }, streams)));

  function drawWords() {
    const status = store.status;
    const words = explainFleet(status);
    say(head, words.head);
    say(why, words.why);
    say(hint, words.hint);
    health.className = "health is-" + (status ? status.health : "none");
    say(health.lastChild, status ? sentence(status.health).slice(0, -1) + " · the broker is up for " + duration(status.uptime_ms) : "no word yet");
    const list = (status ? status.reasons || [] : []).filter((one) => sentence(one) !== words.why);
    keyed(reasons, list.slice(0, 6), (one) => one, (one) => el("li", null, sentence(one)));
    const told = status ? (status.advice || []).slice(0, 5) : [];
    keyed(advice, told, (one) => one, (one) => el("li", null, sentence(one)));
  }

  function drawWarnings() {
    const list = allWarnings();
    warnings.update(list.slice(0, 6));
    show(nothing, !list.length && !((store.status || {}).advice || []).length);
  }

  const warn = throttled(2000, drawWarnings);
  const briefStreams = throttled(1000, () => drawStreams(streams));
  return { node, title: "Overview", update(changes) {
    if (changes.has("status")) {
      drawWords();
      flow.update(store.status);
      if (store.status) drawEngines(engines);
      if (store.status) drawHosts(hosts);
    }
    if (changes.has("status") || changes.has("ended")) numbers.update();
    if (changes.has("live")) drawSlow(slow);
    if (changes.has("ended")) {
      drawEnded(recentList);
      warn();
      briefStreams();
    }
  } };
}

function statRow() {
  const rollouts = stat("Rollouts a second", "How many end, the mean of the last 30 s");
  const tokens = stat("Tokens a second", "Sampled tokens of rollouts that end, the mean of the last 30 s");
  const rewards = stat("Mean reward", "Of rollouts that ended in the last 30 s");
  const failed = stat("Not ok", "The share of rollouts that end otherwise than ok, of the last 30 s");
  const node = el("div.stats", null, rollouts, tokens, rewards, failed);
  return { node, update() {
    const data = series();
    const when = (k) => duration((data.rollouts.length - k) * BIN_MS) + " ago";
    rollouts.update(short(recent(data.rollouts)), "/s", data.rollouts, 0, (k, values) => [short(values[k]) + " rollouts/s", when(k)]);
    tokens.update(short(recent(data.tokens)), "/s", data.tokens, 0, (k, values) => [short(values[k]) + " tokens/s", when(k)]);
    const least = Math.min(0, ...data.reward.filter((one) => one !== null));
    rewards.update(reward(recent(data.reward)), "", data.reward.map((one) => (one === null ? null : one - least)), Math.max(1, ...data.reward.filter((one) => one !== null)) - least,
      (k) => ["mean " + reward(data.reward[k]), when(k)]);
    const part = recent(data.failed);
    failed.update(part === null ? NONE : percent(part, 1).replace("\u00a0%", ""), part === null ? "" : "%", data.failed, 1, (k, values) => [values[k] === null ? NONE : percent(values[k], 1), when(k)]);
    failed.classList.toggle("is-warn", part > 0.2);
  } };
}

function briefRow(withBar) {
  return el("li", null, el("a.brief-row", null, nameNode("span.brief-name"), el("span.brief-say"), el("span.brief-number"), withBar ? stackBar("Where its time went") : null));
}

function drawSlow(list) {
  const atWork = (one) => Number(one.state === "leased");
  const items = [...store.live.rollouts].sort((a, b) => atWork(b) - atWork(a) || (b.for_ms || 0) - (a.for_ms || 0)).slice(0, 7);
  keyed(list, items.length ? items : [null], (one) => (one ? one.rollout : "none"), (one) => (one ? briefRow(false) : el("li", null, empty("Nothing is live", "Rollouts appear here as soon as they are submitted."))), (child, one) => {
    if (!one) return;
    const row = child.firstChild;
    set(row, { href: rolloutPath(one.rollout), title: one.why || null });
    sayName(row.children[0], one.rollout);
    say(row.children[1], one.stage + ", " + liveWords(one));
    say(row.children[2], duration(one.for_ms));
  });
}

function liveWords(one) {
  if (one.why) return one.why;
  if (one.state !== "leased") return STATES[one.state] || one.state;
  return (one.turn ? "turn " + one.turn : "at work") + (one.tool ? ", " + one.tool : "");
}

function timeParts(one) {
  return [["wait", one.wait_ms], ["sandbox", one.init_ms], ["sampling", one.run_ms], ["evaluating", one.eval_ms]]
    .map(([kind, ms]) => ({ kind, ms: ms || 0, text: { wait: "waiting", sandbox: "set-up", sampling: "run", evaluating: "scoring" }[kind] + " " + duration(ms || 0) }));
}

function drawEnded(list) {
  const items = newest(() => true, 7);
  keyed(list, items.length ? items : [null], (one) => (one ? keyOf(one) : "none"), (one) => (one ? briefRow(true) : el("li", null, empty("Nothing has ended yet"))), (child, one) => {
    if (!one || child.isDrawn) return;
    child.isDrawn = true;
    const row = child.firstChild;
    set(row, { href: rolloutPath(one.rollout) });
    sayName(row.children[0], one.rollout);
    fill(row.children[1], chip(one.outcome, one.outcome), isNumber(one.reward) ? " reward " + reward(one.reward) : "");
    say(row.children[2], duration(totalMs(one)));
    const parts = timeParts(one);
    row.children[3].update(parts, [one.rollout, ...parts.filter((part) => part.ms > 0).map((part) => part.text)]);
  });
}

function drawEngines(list) {
  const items = (store.status.engines || []).slice(0, 6);
  keyed(list, items.length ? items : [null], (one) => (one ? one.url : "none"), (one) => (one ? el("li", null, el("i.dot"), el("span.brief-name"), el("span.brief-number"), meter("In use"), el("small.quiet")) : el("li.none", null, noneOf("engines", "No engine is registered", "Add one: sluice engine add URL"))), (child, one) => {
    if (!one) return;
    const [dot, name, number, bar, more] = child.children;
    dot.className = "dot is-" + one.state;
    say(name, host(one.url));
    say(number, count(one.live) + (one.limit ? " of " + count(one.limit) : "") + " rollouts");
    const part = one.limit ? one.live / one.limit : (one.cache_permille || 0) / 1000;
    show(bar, Boolean(one.limit || one.cache_permille)).update(part, part >= 1 ? "warn" : "");
    say(more, (FLEET_STATES[one.state] || one.state) + (one.version ? ", version " + one.version : "") + (one.error ? ": " + one.error : ""));
  });
}

function drawStreams(list) {
  const known = new Map(((store.status || {}).streams || []).map((one) => [one.name, one]));
  const names = streamNames().sort((a, b) => ((known.get(b) || {}).pending || 0) - ((known.get(a) || {}).pending || 0)).slice(0, 5);
  keyed(list, names.length ? names : [null], (name) => name || "none", (name) => (name ? briefRow(false) : el("li", null, empty("No stream yet"))), (child, name) => {
    if (!name) return;
    const row = child.firstChild;
    const last = newest((one) => one.stream === name && isNumber(one.reward), 100);
    const one = known.get(name) || {};
    set(row, { href: path("stream", name) });
    sayName(row.children[0], name);
    say(row.children[1], isNumber(one.pending) ? plural(one.pending, "rollout is", "rollouts are") + " pending, " + count(one.head) + " ended" : "");
    say(row.children[2], last.length ? "reward " + reward(mean(last.map((other) => other.reward))) : "");
  });
}

/* An empty list of what only admins are told is not an empty fleet. */
function noneOf(kind, head, text) {
  const total = ((store.status || {}).totals || {})[kind];
  return total ? empty(plural(total, kind.slice(0, -1)), "Only admins see their names and how they are.") : empty(head, text);
}

/* Workers by host, those first that have one that is not ready. */
function hostsOf(status) {
  const hosts = new Map();
  for (const worker of status.workers || []) {
    const one = hosts.get(worker.host) || { host: worker.host, slots: 0, jobs: 0, workers: [], stages: new Set(), unwell: 0 };
    one.slots += worker.slots || 0;
    one.jobs += worker.jobs || 0;
    one.stages.add(worker.stage);
    one.workers.push(worker);
    if (worker.state !== "ready") one.unwell += 1;
    hosts.set(worker.host, one);
  }
  return [...hosts.values()].sort((a, b) => b.unwell - a.unwell || a.host.localeCompare(b.host, "en", { numeric: true }));
}

function drawHosts(list) {
  const items = hostsOf(store.status).slice(0, 6);
  keyed(list, items.length ? items : [null], (one) => (one ? one.host : "none"), (one) => (one ? el("li", null, el("i.dot"), el("span.brief-name"), el("span.brief-number"), meter("Slots in use"), el("small.quiet")) : el("li.none", null, noneOf("workers", "No worker is connected", "Start one: sluice worker run --broker URL"))), (child, one) => {
    if (!one) return;
    const [dot, name, number, bar, more] = child.children;
    dot.className = "dot is-" + (one.unwell ? "failing" : "healthy");
    say(name, one.host);
    say(number, count(one.jobs) + " of " + count(one.slots) + " slots");
    bar.update(one.slots ? one.jobs / one.slots : 0);
    say(more, plural(one.workers.length, "worker") + " for " + Object.keys(STAGES).filter((stage) => one.stages.has(stage)).join(", ") + (one.unwell ? ", " + one.unwell + " not ready" : ""));
  });
}
