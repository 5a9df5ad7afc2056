/* Workers by host, engines, what was lost or set aside, limits, clients. */
const HOSTS_MAX = 100;

function fleetView() {
  const hosts = el("div.hosts");
  const more = el("p.quiet", { hidden: true });
  const engines = el("div.engines");
  const lost = el("ul.reasons");
  const aside = el("ul.reasons");
  const limits = el("div.bars");
  const clients = el("div");
  const needs = el("ul.reasons");
  const counters = el("div");
  const service = el("div");
  const node = el("div.panel", null, heading("Fleet"), el("h2.part", null, "Engines"), engines, el("h2.part", null, "Workers by host"), hosts, more,
    el("div.grid", null, card("Lost of late", {}, lost), card("Set aside, or missing", {}, aside, needs), card("Limits", {}, limits), card("Clients", {}, clients), card("Broker", {}, service), card("Counters", {}, counters)));

  function draw() {
    const status = store.status;
    if (!status) return;
    drawEngineCards(engines, status);
    drawHostCards(hosts, more, status);
    lines(lost, (status.lost || []).map((one) => one.worker + " (" + one.stage + ", " + one.host + "), " + ago(one.ago_ms) + ": " + one.why + "; " + plural(one.jobs, "job was", "jobs were") + " handed out again"), "No worker was lost of late.");
    lines(aside, (status.images || []).map((one) => one.image + " is " + one.state + ", " + plural(one.waiting, "group waits", "groups wait") + (one.retry_in_ms ? ", tried again in " + duration(one.retry_in_ms) : ""))
      .concat((status.id_conflicts || []).map((one) => one.worker + " is also spoken for by the key " + one.key)), "No image is set aside.");
    lines(needs, (status.needs || []).filter((one) => one.waiting || !one.workers).map((one) => plural(one.waiting, "job waits", "jobs wait") + " for " + one.needs + ", which " + plural(one.workers, "worker offers", "workers offer")), "");
    keyed(limits, Object.entries(status.limits || {}), ([name]) => name, ([name]) => el("div.bar-row", null, el("span", null, name.replace(/_/g, " ")), el("b"), meter(name)), (child, [name, one]) => {
      say(child.children[1], (/bytes/.test(name) ? bytes(one.used) + " of " + bytes(one.max) : short(one.used) + " of " + short(one.max)));
      child.children[2].update((one.percent || 0) / 100, one.percent >= 95 ? "bad" : one.percent >= 75 ? "warn" : "");
    });
    fill(clients, (status.clients || []).slice(0, 40).map((one) => facts([one.name || "anybody", plural(one.live, "rollout") + " live, " + count(one.queued) + " queued, " + count(one.kept) + " kept"])));
    fill(service, facts(["starts", count(status.epoch)], ["up", duration(status.uptime_ms)], ["accepted", count((status.rollouts || {}).accepted)], ["live", count((status.rollouts || {}).live) + " of " + count((status.rollouts || {}).limit)],
      ["store", status.store ? status.store.state + (status.store.layers ? ", " + plural(status.store.layers, "layer") + ", " + bytes(status.store.bytes) : "") : ""], ["store's error", status.store ? status.store.error : ""]));
    fill(counters, facts(...Object.entries(status.counters || {}).filter(([, value]) => value).map(([name, value]) => [name.replace(/_/g, " "), count(value)])));
  }
  return { node, title: "Fleet", update: (changes) => changes.has("status") && draw() };
}

function meterRow(label) {
  const bar = meter(label);
  const value = el("b");
  const node = el("div.bar-row", null, el("span.quiet", null, label), value, bar);
  node.update = (part, kind, text) => {
    show(bar, part !== null).update(part, kind);
    say(value, text);
  };
  return node;
}

function lines(node, texts, otherwise) {
  keyed(node, texts.length ? texts.slice(0, 50) : otherwise ? [otherwise] : [], (text) => text, (text) => el("li", null, text));
}

function drawEngineCards(node, status) {
  const list = (status.engines || []).slice(0, 200);
  keyed(node, list.length ? list : [null], (one) => (one ? one.url : "none"), (one) => (one ? el("article.card.engine", null, el("div.card-head", null, el("h3"), el("span.chip")), el("p.error"), meterRow("rollouts"), meterRow("cache"), el("div"))
    : card("", {}, noneOf("engines", "No engine is registered", "Add one: sluice engine add URL"))), (child, one) => {
    if (!one) return;
    const [head, error, rollouts, cache, table] = child.children;
    say(head.children[0], host(one.url));
    setChip(head.children[1], one.state, { healthy: "ok", failing: "bad", silent: "bad", other: "bad" }[one.state] || "warn", FLEET_STATES[one.state]);
    say(error, one.error || (one.state !== "healthy" ? sentence(FLEET_STATES[one.state] || one.state) : ""));
    show(error, Boolean(error.textContent));
    rollouts.update(one.limit ? one.live / one.limit : null, one.limit && one.live >= one.limit ? "warn" : "", count(one.live) + (one.limit ? " of " + count(one.limit) : ""));
    show(cache, isNumber(one.cache_permille)).update((one.cache_permille || 0) / 1000, one.cache_permille > 950 ? "warn" : "", percent(one.cache_permille, 1000));
    fill(table, facts(["calls in flight", count(one.calls)], ["tokens in contexts", count(one.tokens)],
      ["policy", one.policy], ["version", one.version], ["faults in a row", one.faults || ""], ["tried again in", one.retry_in_ms ? duration(one.retry_in_ms) : ""], ["resumes in", one.resume_in_ms ? duration(one.resume_in_ms) : ""]));
  });
}

function drawHostCards(node, note, status) {
  const all = hostsOf(status);
  const list = all.slice(0, HOSTS_MAX);
  show(note, all.length > list.length);
  say(note, "and " + plural(all.length - list.length, "more host") + (all.slice(HOSTS_MAX).some((one) => one.unwell) ? "" : ", all of whose workers are ready"));
  keyed(node, list.length ? list : [null], (one) => (one ? one.host : "none"), (one) => (one ? el("article.card.host", null, el("div.card-head", null, el("h3", null, one.host), el("span.quiet")), meter("Slots in use"), el("ul.workers"))
    : card("", {}, noneOf("workers", "No worker is connected", "Start one: sluice worker run --broker URL"))), (child, one) => {
    if (!one) return;
    const [head, bar, workers] = child.children;
    say(head.children[1], count(one.jobs) + " of " + plural(one.slots, "slot"));
    bar.update(one.slots ? one.jobs / one.slots : 0);
    keyed(workers, [...one.workers].sort(byStage).slice(0, 64), (worker) => worker.worker, () => el("li", null, el("i.dot"), el("b"), el("span"), el("span.quiet"), el("small.quiet")), updateWorker);
  });
}

function byStage(a, b) {
  const order = Object.keys(STAGES);
  return order.indexOf(a.stage) - order.indexOf(b.stage) || (a.worker < b.worker ? -1 : 1);
}

function updateWorker(child, worker) {
  const [dot, stage, jobs, name, more] = child.children;
  dot.className = "dot is-" + (worker.state === "ready" ? "healthy" : "failing");
  say(stage, worker.stage);
  say(jobs, count(worker.jobs) + " of " + count(worker.slots));
  say(name, worker.worker);
  set(name, { title: worker.worker });
  const until = worker.until_ms || worker.until_in_ms;
  const words = [worker.state === "ready" ? "" : worker.state, worker.sandbox ? "sandbox " + worker.sandbox : "", until ? "until " + clock(until) : "", worker.unreached ? "unreached: " + worker.unreached : "",
    worker.node_error ? "error: " + worker.node_error : "", worker.offers_error ? "offers: " + worker.offers_error : "", worker.beat_ago_ms > 5000 ? "last heard " + ago(worker.beat_ago_ms) : ""];
  say(more, words.filter(Boolean).join(" · "));
}
