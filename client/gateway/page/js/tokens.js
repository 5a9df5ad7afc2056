/* Tokens of a turn: cells or ids, coloured by who said them and how likely they were. */
const CELLS_MAX = 600;
const IDS_MAX = 400;
const TURNS_MAX = 1000;

/* What is only made when it comes into sight: a rollout may have a million tokens. `height` keeps its place until then. */
const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    sight.unobserve(target);
    target.style.minHeight = "";
    target.append(target.make());
  }
}, { rootMargin: "400px" });

function lazily(height, make) {
  const node = el("div.lazy");
  node.style.minHeight = height + "px";
  node.make = make;
  sight.observe(node);
  return node;
}

/* The class of a token: given, or sampled with one of five ranges of probability. */
function tokenClass(turn, k) {
  if (!turn.mask[k]) return "given";
  const p = Math.exp(turn.logprobs[k]);
  return p >= 0.9 ? "lp0" : p >= 0.5 ? "lp1" : p >= 0.2 ? "lp2" : p >= 0.05 ? "lp3" : "lp4";
}

function tokenLines(turn, k) {
  const lines = ["id " + turn.ids[k]];
  if (turn.mask[k]) {
    const lp = turn.logprobs[k];
    lines.push("log-probability " + lp.toFixed(3) + ", " + (100 * Math.exp(lp)).toPrecision(3) + " %");
    const version = versionAt(turn, k);
    if (version) lines.push("version " + version);
  } else {
    lines.push("given, mask 0" + (turn.masked ? " (" + turn.masked + ")" : ""));
  }
  lines.push("token " + (k + 1) + " of " + turn.length);
  return lines;
}

/* Small cells, one a token, as a picture of how sure the model was. */
function tokenCells(turn) {
  const node = el("div.cells", { role: "img", "aria-label": "How likely the model found each of its " + plural(turn.length, "token") });
  const shown = Math.min(turn.ids.length, CELLS_MAX);
  const cells = document.createDocumentFragment();
  for (let k = 0; k < shown; k++) cells.append(set(el("i." + tokenClass(turn, k)), null));
  node.append(cells);
  if (turn.ids.length > shown) node.append(el("span.quiet", null, "and " + plural(turn.ids.length - shown, "more", "more")));
  return hoverable(node, (event) => {
    const k = Array.prototype.indexOf.call(node.children, event.target);
    return k >= 0 && k < shown ? tokenLines(turn, k) : null;
  });
}

/* The ids themselves; the rest of a long turn on demand. */
function tokenIds(turn) {
  const node = el("div.ids");
  const add = (from, to) => {
    const some = document.createDocumentFragment();
    for (let k = from; k < to; k++) {
      const one = el("span.tok." + tokenClass(turn, k), null, turn.ids[k] === undefined ? "?" : turn.ids[k]);
      one.place = k;
      some.append(one);
    }
    node.append(some);
  };
  const length = turn.ids.length;
  add(0, Math.min(length, IDS_MAX));
  if (length > IDS_MAX) {
    const more = el("button.plain", { type: "button", on: { click: () => {
      more.remove();
      add(IDS_MAX, Math.min(length, 20000));
    } } }, "Show " + plural(Math.min(length, 20000) - IDS_MAX, "more", "more"));
    node.append(more);
  }
  if (length < turn.length) node.append(el("span.quiet", null, plural(turn.length - length, "token is", "tokens are") + " not told"));
  return hoverable(node, (event) => (event.target.place === undefined ? null : tokenLines(turn, event.target.place)));
}

function tokenLegend() {
  return el("div.token-legend", null, [["given", "given"], ["lp0", "≥ 90 %"], ["lp1", "≥ 50 %"], ["lp2", "≥ 20 %"], ["lp3", "≥ 5 %"], ["lp4", "less likely"]]
    .map(([kind, text]) => el("span", null, el("i." + kind), text)));
}

/* Every trace with its turns as ids. */
function tokenTraces() {
  const node = el("div.traces");
  node.update = (model) => {
    keyed(node, model.traces, (one) => one.number, (one) => el("section.trace", null, el("h3"), el("div")), (child, trace) => {
      say(child.firstChild, "Trace " + (trace.number + 1) + ": " + reasonSentence(trace.reason) + " · " + plural(trace.length, "token") + ", " + count(trace.sampled) + " sampled");
      const turns = model.turns.filter((one) => one.trace === trace.number);
      turns.forEach((one, k) => {
        one.place = k;
      });
      keyed(child.lastChild, turns.slice(0, TURNS_MAX), (one) => one.place + ":" + one.ids.length, (turn) => el("div.turn." + turn.role, null,
        el("div.turn-head", null, turnTitle(turn)), lazily(20 * Math.ceil(Math.min(turn.ids.length, IDS_MAX) / 14), () => tokenIds(turn))));
    });
  };
  return node;
}

function turnTitle(turn) {
  const parts = [turn.role === "assistant" ? "turn " + turn.number + ", the model" : turn.role === "prompt" ? "prompt" : turn.role, plural(turn.length, "token")];
  if (turn.seconds) parts.push(duration(turn.seconds * 1000));
  if (turn.finish) parts.push(turn.finish);
  if (turn.version) parts.push("version " + turn.version);
  if (turn.masked) parts.push("masked: " + turn.masked);
  return parts.join(" · ");
}
