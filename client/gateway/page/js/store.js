/* What the page knows, and who is told that it changed. Everything here has a bound: the newest are kept. */
const ENDED_MAX = 5000;
const BIN_MS = 5000;
const BINS = 60;
const BINS_MIN = 12;
const FRAME_MS = 100;

const store = {
  me: null,
  link: "connecting",
  trouble: "", // why the broker says nothing
  status: null,
  statusAt: 0,
  live: { rollouts: [], matched: 0 },
  liveAt: 0,
  ended: [],
  skipped: 0,
  behind: 0, // how far this machine's clock is behind the broker's, at least
};

const seen = new Map();
const bins = new Map();
const listeners = new Set();
const dirty = new Set();
let isScheduled = false;
let drawnAt = 0;

/* `listener(changes)` runs at most ten times a second, with a set of what changed: link, status, live, ended. */
function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed(what) {
  dirty.add(what);
  if (isScheduled) return;
  isScheduled = true;
  setTimeout(() => requestAnimationFrame(draw), Math.max(0, FRAME_MS - (performance.now() - drawnAt)));
}

function draw() {
  isScheduled = false;
  drawnAt = performance.now();
  const changes = new Set(dirty);
  dirty.clear();
  for (const listener of [...listeners]) listener(changes);
}

/* `run`, at most once in `ms`: what costs more than a frame. The last call is never lost. */
function throttled(ms, run) {
  let timer = 0;
  let ranAt = -Infinity;
  const now = () => {
    timer = 0;
    ranAt = performance.now();
    run();
  };
  return () => {
    if (!timer && performance.now() - ranAt >= ms) now();
    else if (!timer) timer = setTimeout(now, ms - (performance.now() - ranAt));
  };
}

function setLink(state) {
  if (store.link !== state) {
    store.link = state;
    changed("link");
  }
}

function endedCount(status) {
  const all = status.rollouts || {};
  return sum(["ok", "agent", "task", "infra", "cancelled"].map((outcome) => all[outcome]));
}

/* The time of the broker's clock, as well as it is known. */
function now() {
  return Date.now() + store.behind;
}

function bin(ms) {
  const key = Math.floor(ms / BIN_MS);
  if (!bins.has(key)) {
    bins.set(key, { ended: 0, told: 0, tokens: 0, rewards: 0, rewarded: 0, failed: 0, live: null });
    for (const old of bins.keys()) if (old < key - BINS - 2 && bins.size > BINS + 2) bins.delete(old);
  }
  return bins.get(key);
}

function takeStatus(status) {
  const before = store.status;
  store.status = status;
  store.statusAt = Date.now();
  store.trouble = "";
  const one = bin(now());
  one.live = (status.rollouts || {}).live;
  if (before && before.epoch === status.epoch) one.ended += Math.max(0, endedCount(status) - endedCount(before));
  changed("status");
}

function takeLive(live) {
  store.live = { rollouts: live.rollouts || [], matched: live.matched || 0 };
  store.liveAt = Date.now();
  changed("live");
}

function keyOf(summary) {
  return summary.stream + "\n" + summary.seq;
}

/* `isOld`: told by the history, so that no status counted it. */
function takeEnded(summary, isOld) {
  if (!summary || !summary.rollout || seen.has(keyOf(summary))) return;
  seen.set(keyOf(summary), summary);
  store.ended.push(summary);
  if (summary.ended_ms > now()) store.behind = summary.ended_ms - Date.now();
  const one = bin(summary.ended_ms);
  one.told += 1;
  if (isOld) one.ended = Math.max(one.ended, one.told);
  one.tokens += summary.sampled_tokens || 0;
  if (isNumber(summary.reward)) {
    one.rewards += summary.reward;
    one.rewarded += 1;
  }
  if (summary.outcome !== "ok") one.failed += 1;
  while (store.ended.length > ENDED_MAX * 1.1) {
    for (const old of store.ended.splice(0, store.ended.length - ENDED_MAX)) seen.delete(keyOf(old));
  }
  changed("ended");
}

/* The broker's ledger was replaced: of this stream it knows nothing any more that was told before. */
function forgetEnded(stream) {
  for (const one of store.ended) if (one.stream === stream) seen.delete(keyOf(one));
  store.ended = store.ended.filter((one) => one.stream !== stream);
  changed("ended");
}

function takeHistory(summaries) {
  for (const summary of summaries) takeEnded(summary, true);
  store.ended.sort((a, b) => a.ended_ms - b.ended_ms);
}

/* The last five minutes, or as much of them as is known but a minute at least, as arrays of equal length. The bin that is not over
   is left out. */
function series() {
  const last = Math.floor(now() / BIN_MS);
  let first = last - BINS;
  while (first < last - BINS_MIN && !bins.has(first)) first++;
  const list = [];
  for (let key = first; key < last; key++) list.push(bins.get(key) || null);
  const per = 1000 / BIN_MS;
  const scale = (one) => (one.told ? Math.max(1, one.ended / one.told) : 1);
  const isBefore = (k) => !list.slice(0, k + 1).some((one) => one);
  const rate = (of) => list.map((one, k) => (one ? of(one) * per : isBefore(k) ? null : 0));
  return {
    rollouts: rate((one) => one.ended),
    tokens: rate((one) => one.tokens * scale(one)),
    reward: list.map((one) => (one && one.rewarded ? one.rewards / one.rewarded : null)),
    failed: list.map((one) => (one && one.told ? one.failed / one.told : null)),
  };
}

/* The mean of the last 30 s. */
function recent(values) {
  const last = values.slice(-6).filter((value) => value !== null);
  return last.length ? mean(last) : null;
}

function totalMs(one) {
  return sum([one.wait_ms, one.init_ms, one.run_ms, one.eval_ms]);
}

/* The newest ended rollouts that `wanted` is true of, newest first, at most `limit`. */
function newest(wanted, limit) {
  const found = [];
  for (let k = store.ended.length - 1; k >= 0 && found.length < limit; k--) if (wanted(store.ended[k])) found.push(store.ended[k]);
  return found;
}

/* What the newest rollouts of a stream took, to compare one with. */
function peers(stream) {
  const list = newest((one) => one.stream === stream && one.outcome !== "cancelled", 500);
  const median = (key) => middle(list.map((one) => one[key]).filter(isNumber));
  return { count: list.length, total: middle(list.map(totalMs)), wait: median("wait_ms"), init: median("init_ms"), run: median("run_ms"),
    eval: median("eval_ms"), turns: median("turns"), tokens: median("sampled_tokens") };
}

/* Names of streams that status or rollouts know. */
function streamNames() {
  const names = new Set(((store.status || {}).streams || []).map((one) => one.name));
  for (const one of store.ended) names.add(one.stream);
  for (const one of store.live.rollouts) names.add(one.stream);
  return [...names].filter(Boolean).sort();
}
