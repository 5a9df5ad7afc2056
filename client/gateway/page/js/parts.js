/* Pieces that several panels have: cards, chips, numbers, dots of rewards, empty places. */
function card(title, options, ...children) {
  const { className, aside, id } = options || {};
  const head = title ? el("div.card-head", null, el("h2", { id }, title), aside ? el("div.card-aside", null, aside) : null) : null;
  return set(el("section.card", id ? { "aria-labelledby": id } : null, head, children), className ? { class: "card " + className } : null);
}

function chip(text, kind, title) {
  return el("span.chip" + (kind ? ".is-" + kind : ""), { title }, text);
}

function setChip(node, text, kind, title) {
  const name = "chip" + (kind ? " is-" + kind : "");
  if (node.className !== name) node.className = name;
  if (title && node.title !== title) node.title = title;
  return say(node, text);
}

/* A name on one line. What does not fit is left out of a rollout's group, and never of its number, for which there is room in --end. */
function nameNode(tag) {
  return el(tag + ".name", null, el("span"), el("span"));
}

function sayName(node, name) {
  const cut = name.includes("/") ? name.lastIndexOf("/") : name.length;
  say(node.firstChild, name.slice(0, cut));
  say(node.lastChild, name.slice(cut));
  node.style.setProperty("--end", 1.2 * (name.length - cut) + "ch");
}

/* A number with its name, and a line of its last minutes. */
function stat(label, hint) {
  const value = el("b.stat-value", null, NONE);
  const unit = el("span.stat-unit");
  const line = sparkline(label);
  const node = el("div.stat", { title: hint }, el("span.stat-label", null, label), el("span.stat-number", null, value, unit), line);
  node.update = (text, unitText, values, most, describe) => {
    say(value, text);
    say(unit, unitText);
    line.update(values, most, describe);
  };
  return node;
}

function empty(head, text) {
  return el("div.empty", null, el("p.empty-head", null, head), text ? el("p.quiet", null, text) : null);
}

/* A meter with its words: how much of so much. */
function meter(label) {
  const inner = el("i");
  const node = el("div.meter", { role: "meter", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 }, inner);
  node.update = (part, kind) => {
    const value = Math.max(0, Math.min(1, part || 0));
    inner.style.transform = "scaleX(" + value + ")";
    node.className = "meter" + (kind ? " is-" + kind : "");
    node.setAttribute("aria-valuenow", Math.round(100 * value));
  };
  return node;
}

/* The colour of a reward between 0 and 1 is the class r0 to r4, without one r-none. */
function rewardClass(value) {
  if (!isNumber(value)) return "r-none";
  return "r" + Math.max(0, Math.min(4, Math.floor(value * 4.999)));
}

/* A group's samples as squares, each a link. */
function sampleDots(rollouts, size) {
  const node = el("span.samples", { "aria-label": "Rewards of the samples" });
  node.update = (list, length) => {
    const bySample = new Map(list.map((one) => [one.sample, one]));
    const places = Array.from({ length: Math.min(64, Math.max(length || 0, ...list.map((one) => one.sample + 1), 0)) }, (_, k) => k);
    keyed(node, places, (k) => k, (k) => el("a.sample"), (child, k) => {
      const one = bySample.get(k);
      set(child, { class: "sample " + (one ? rewardClass(one.reward) + " o-" + one.outcome : "r-live"), href: one ? rolloutPath(one.rollout) : null,
        title: one ? "sample " + k + ": " + one.outcome + ", reward " + reward(one.reward) : "sample " + k + " has not ended",
        "aria-label": one ? "sample " + k + ", " + one.outcome + ", reward " + reward(one.reward) : "sample " + k + " has not ended" });
    });
  };
  node.update(rollouts || [], size);
  return node;
}

function facts(...rows) {
  return el("dl.facts", null, rows.filter((row) => row && row[1] !== null && row[1] !== undefined && row[1] !== "")
    .map(([label, value, title]) => el("div", { title }, el("dt", null, label), el("dd", null, value))));
}

/* A choice of a filter: `options` are [value, text]; `choose(value)`. */
function choice(label, options, value, choose) {
  const select = el("select", { "aria-label": label, on: { change: () => choose(select.value) } });
  select.update = (list, chosen) => {
    keyed(select, list, ([one]) => one, ([one, text]) => el("option", { value: one }, text), (child, [, text]) => say(child, text));
    if (select.value !== chosen && document.activeElement !== select) select.value = chosen;
  };
  select.update(options, value);
  return select;
}

/* Two or three buttons of which one is on. */
function segments(label, options, value, choose) {
  const node = el("div.segments", { role: "group", "aria-label": label });
  const buttons = options.map(([one, text]) => el("button", { type: "button", on: { click: () => choose(one) } }, text));
  node.append(...buttons);
  node.update = (chosen) => buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(options[k][0] === chosen)));
  node.update(value);
  return node;
}

function heading(title, text) {
  return el("div.heading", null, el("h1", null, title), text ? el("p.quiet", null, text) : null);
}

function warningList() {
  const node = el("ul.warnings");
  node.update = (list) => {
    keyed(node, list, (one) => one.stream + one.text, (one) => el("li", null, el("i.dot"), el("div", null, el("b"), el("span.quiet"), el("span.quiet"), el("a"))), (child, one) => {
      child.className = "is-" + one.level;
      const [head, why, stream, link] = child.lastChild.children;
      say(head, one.text);
      say(why, " " + one.why);
      say(stream, one.stream ? " Stream " + one.stream + ". " : " ");
      set(link, { href: one.href || null });
      say(link, one.href ? "Show one" : "");
    });
  };
  return node;
}
