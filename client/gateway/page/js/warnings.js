/* What somebody who trains should look at, found in the rollouts that ended of late. Each: {level, text, why, href}. */
const WARN_LAST = 200;

function share(list, wanted) {
  return list.length ? list.filter(wanted).length / list.length : 0;
}

function example(list, wanted) {
  const one = list.find(wanted);
  return one ? rolloutPath(one.rollout) : "";
}

function breaks(one) {
  return (one.traces || 1) > 1;
}

/* Repeated text: 0 where all is new, 1 where all was said before. By runs of eight words, and by runs of one character. */
function repetition(text) {
  const words = text.split(/\s+/).filter(Boolean);
  const run = /(.)\1{79,}/su.exec(text);
  if (run) return 1;
  if (words.length < 40) return 0;
  const known = new Set();
  let again = 0;
  const runs = words.length - 7;
  for (let k = 0; k < runs; k++) {
    const key = words.slice(k, k + 8).join(" ");
    if (known.has(key)) again += 1;
    else known.add(key);
  }
  return again / runs;
}

const looked = new Map(); // rollout -> its repetition; the newest LOOKED_MAX
const LOOKED_MAX = 60;

function noteRepetition(name, stream, text) {
  looked.set(name, { stream, value: repetition(text) });
  if (looked.size > LOOKED_MAX) looked.delete(looked.keys().next().value);
}

/* Now and then one of those that ended is read for repeats: the longest of the newest that was not. */
async function lookForRepeats() {
  const fresh = newest((one) => one.sampled_tokens > 60 && one.sampled_tokens < 16384 && !looked.has(one.rollout), 20);
  const one = fresh.sort((a, b) => b.sampled_tokens - a.sampled_tokens)[0];
  if (!one || document.hidden || store.link !== "live") return;
  looked.set(one.rollout, { stream: one.stream, value: 0 });
  try {
    const t = await ask(rolloutUrl(one.rollout));
    noteRepetition(one.rollout, one.stream, (t.messages || []).filter((m) => m.role === "assistant" && m.sampled !== false).map((m) => m.content).join("\n"));
    changed("ended");
  } catch (error) {
    // It may have been forgotten meanwhile.
  }
}

function repeatWarning(stream) {
  const found = [...looked].filter(([, one]) => one.stream === stream && one.value > 0.3);
  if (!found.length) return null;
  const all = [...looked.values()].filter((one) => one.stream === stream).length;
  return { level: "warn", text: "Replies repeat themselves", why: found.length + " of " + all + " that were read say the same again and again.",
    href: rolloutPath(found[found.length - 1][0]) };
}

function cutWarning(list) {
  const isCut = (one) => one.truncated;
  const part = share(list, isCut);
  if (part < 0.1) return null;
  return { level: part > 0.3 ? "bad" : "warn", text: "Replies are cut off", why: percent(part, 1) + " of the last " + list.length + " ran into a limit on tokens or into the context's end.",
    href: example(list, isCut) };
}

function endWarning(list) {
  const noEnd = (one) => (one.reasons || []).some((reason) => ["cut", "end"].includes(reasonWord(reason)));
  const part = share(list, noEnd);
  if (part < 0.1) return null;
  return { level: "warn", text: "Replies without an end token", why: percent(part, 1) + " of the last " + list.length + " have a turn that did not end as the template ends turns.",
    href: example(list, noEnd) };
}

function loopWarning(list) {
  const isLoop = (one) => one.end === "loop" || one.end === "format";
  const part = share(list, isLoop);
  if (part < 0.05) return null;
  return { level: "warn", text: "Agents go in circles", why: percent(part, 1) + " of the last " + list.length + " ended because the agent repeated itself or broke the format.",
    href: example(list, isLoop) };
}

/* Complete groups of two or more, newest first: [name, rollouts]. */
function groupsOf(list) {
  const groups = new Map();
  for (const one of list) groups.set(one.group, [...(groups.get(one.group) || []), one]);
  return [...groups];
}

function constantWarning(list) {
  const groups = groupsOf(list).map(([name, rollouts]) => [name, rollouts.map((one) => one.reward).filter(isNumber)]).filter(([, rewards]) => rewards.length > 1);
  if (groups.length < 4) return null;
  const same = groups.filter(([, rewards]) => rewards.every((value) => value === rewards[0]));
  if (same.length < 0.5 * groups.length) return null;
  return { level: "warn", text: "Rewards are the same in whole groups", why: same.length + " of " + groups.length + " groups: there is nothing to tell better from worse.",
    href: path("group", same[0][0]) };
}

function breakWarning(list) {
  if (list.length < 40) return null;
  const half = Math.floor(list.length / 2);
  const late = share(list.slice(0, half), breaks);
  const early = share(list.slice(half), breaks);
  if (late < 0.1 || late < 1.5 * early) return null;
  return { level: "warn", text: "Traces break more often", why: percent(late, 1) + " of the newest have more than one trace, " + percent(early, 1) + " of those before.",
    href: example(list, breaks) };
}

function failWarning(list) {
  const isBroken = (one) => one.outcome === "infra" || one.outcome === "task";
  const part = share(list, isBroken);
  if (list.length < 10 || part < 0.1) return null;
  return { level: "bad", text: "Many fail without the agent's doing", why: percent(part, 1) + " of the last " + list.length + " ended as infra or task.", href: "#/failures" };
}

function streamWarnings(stream) {
  const list = newest((one) => one.stream === stream, WARN_LAST);
  return [failWarning, cutWarning, endWarning, loopWarning, constantWarning, breakWarning].map((find) => find(list)).concat(repeatWarning(stream))
    .filter(Boolean).map((one) => ({ ...one, stream }));
}

function allWarnings() {
  return streamNames().slice(0, 24).flatMap(streamWarnings).sort((a, b) => (a.level > b.level ? 1 : -1));
}
