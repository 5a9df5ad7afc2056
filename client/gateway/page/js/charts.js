/* Charts drawn by hand. Each is made once as a node with `update(values)`; its size is the node's own, so that nothing jumps. */

/* A line over time with what is below it filled. Nulls are gaps that the line goes across. */
function sparkline(label) {
  const area = svg("path", { class: "spark-area" });
  const line = svg("path", { class: "spark-line", "vector-effect": "non-scaling-stroke" });
  const node = svg("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": label }, area, line);
  let shown = [];
  let texts = () => [];
  hoverable(node, (event) => {
    const box = node.getBoundingClientRect();
    const k = Math.round(((event.clientX - box.left) / box.width) * (shown.length - 1));
    return shown.length ? texts(Math.max(0, Math.min(shown.length - 1, k)), shown) : null;
  });
  node.update = (values, most, describe) => {
    shown = values;
    texts = describe;
    const top = most || Math.max(1e-9, ...values.filter((value) => value !== null)) * 1.08;
    const points = values.map((value, k) => [(k * 100) / Math.max(1, values.length - 1), value]).filter(([, value]) => value !== null)
      .map(([x, value]) => [x.toFixed(2), (29 - (27 * value) / top).toFixed(2)]);
    const drawn = points.length > 1 ? "M" + points.map((point) => point.join(",")).join("L") : "";
    line.setAttribute("d", drawn);
    area.setAttribute("d", drawn ? drawn + "L" + points[points.length - 1][0] + ",30L" + points[0][0] + ",30Z" : "");
  };
  return node;
}

/* Edges of about `wanted` bins of round width that hold all values. */
function edgesFor(values, wanted) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  if (low === high) return { start: low - 0.5, width: 1, bins: 1 };
  const width = roundStep((high - low) / wanted);
  const start = Math.floor(low / width) * width;
  return { start, width, bins: Math.min(200, Math.floor((high - start) / width + 1e-9) + 1) };
}

function roundStep(step) {
  const size = 10 ** Math.floor(Math.log10(step));
  return [1, 2, 2.5, 5, 10].map((part) => part * size).find((part) => part >= step * 0.999);
}

/* Frames of a chart: its axes' texts are HTML, so that they keep their size. */
function frame(kind, label) {
  const drawing = svg("svg", { class: "plot", preserveAspectRatio: "none", "aria-hidden": "true" });
  const low = el("span");
  const middleText = el("span");
  const high = el("span");
  const top = el("span.chart-top");
  const area = el("div.chart-area", { role: "img", "aria-label": label }, drawing, top);
  const node = el("div.chart." + kind, null, area, el("div.chart-axis", null, low, middleText, high));
  return { node, area, drawing, low, middleText, high, top };
}

/* How often values occur. `text(value)` writes a value. */
function histogram(label, text) {
  const { node, area, drawing, low, middleText, high, top } = frame("histogram", label);
  let bars = [];
  let total = 0;
  const rects = [];
  const mark = (k) => rects.forEach((rect, one) => rect.classList.toggle("on", one === k));
  steppable(area, () => bars.length, (k) => ({ x: ((k + 0.5) / bars.length) * area.clientWidth,
    lines: [bars[k].text, plural(bars[k].count, "rollout") + ", " + percent(bars[k].count, total)] }), mark);
  node.update = (values, wanted) => {
    total = values.length;
    bars = values.length ? binned(values, wanted || 24, text) : [];
    const most = Math.max(1, ...bars.map((one) => one.count));
    drawing.setAttribute("viewBox", "0 0 " + Math.max(1, bars.length) + " 100");
    while (rects.length < bars.length) drawing.append(rects[rects.push(svg("rect", { class: "bin" })) - 1]);
    while (rects.length > bars.length) rects.pop().remove();
    bars.forEach((one, k) => {
      const height = one.count ? Math.max(1.5, (96 * one.count) / most) : 0;
      set(rects[k], { x: k + 0.06, width: 0.88, y: 100 - height, height });
    });
    say(low, bars.length ? bars[0].from : NONE);
    say(middleText, bars.length ? "middle " + text(middle(values)) : "no values yet");
    say(high, bars.length > 1 ? bars[bars.length - 1].to : "");
    say(top, bars.length ? plural(most, "rollout") : "");
    area.setAttribute("aria-label", label + ": " + (bars.length ? plural(total, "value") + ", middle " + text(middle(values)) : "no values yet"));
  };
  return node;
}

function binned(values, wanted, text) {
  const distinct = new Set(values);
  if (distinct.size <= 12) {
    return [...distinct].sort((a, b) => a - b).map((value) => ({ from: text(value), to: text(value), text: text(value),
      count: values.filter((one) => one === value).length }));
  }
  const { start, width, bins: length } = edgesFor(values, wanted);
  const list = Array.from({ length }, (_, k) => ({ from: text(start + k * width), to: text(start + (k + 1) * width), count: 0 }));
  for (const value of values) list[Math.min(length - 1, Math.floor((value - start) / width + 1e-9))].count += 1;
  return list.map((one) => ({ ...one, text: one.from + " to " + one.to }));
}

/* Values one after the other, their moving mean, and the band in which four of five lie. Points are {value, href, lines(), when()}. */
function trend(label, text) {
  const { node, area, drawing, low, middleText, high, top } = frame("trend", label);
  const dots = svg("path", { class: "trend-dots", "vector-effect": "non-scaling-stroke" });
  const band = svg("path", { class: "trend-band" });
  const line = svg("path", { class: "trend-line", "vector-effect": "non-scaling-stroke" });
  const cursor = svg("line", { class: "cursor", y1: 0, y2: 100, "vector-effect": "non-scaling-stroke", visibility: "hidden" });
  drawing.append(band, dots, line, cursor);
  let points = [];
  const xOf = (k) => (points.length < 2 ? 50 : (k * 100) / (points.length - 1));
  drawing.setAttribute("viewBox", "0 0 100 100");
  steppable(area, () => points.length, (k) => ({ x: (xOf(k) / 100) * area.clientWidth, lines: points[k].lines() }), (k) => {
    set(cursor, { x1: xOf(k), x2: xOf(k), visibility: k < 0 ? "hidden" : "visible" });
  }, (k) => {
    if (points[k].href) location.hash = points[k].href;
  });
  node.update = (list) => {
    points = list;
    const values = list.map((one) => one.value);
    const least = Math.min(0, ...values);
    const most = Math.max(least + 1e-9, ...values);
    const yOf = (value) => 97 - (93 * (value - least)) / (most - least);
    dots.setAttribute("d", values.map((value, k) => "M" + xOf(k).toFixed(2) + "," + yOf(value).toFixed(2) + "h0.001").join(""));
    const window = Math.max(5, Math.round(values.length / 25));
    const smooth = moving(values, window);
    const to = (list, key) => list.map((one, k) => xOf(k).toFixed(2) + "," + yOf(one[key]).toFixed(2));
    line.setAttribute("d", smooth.length > 1 ? "M" + to(smooth, "mean").join("L") : "");
    const isCoarse = new Set(values).size < 5; // of two values it would tell nothing
    band.setAttribute("d", smooth.length > 1 && !isCoarse ? "M" + to(smooth, "high").join("L") + "L" + to(smooth, "low").reverse().join("L") + "Z" : "");
    say(low, list.length ? list[0].when() : NONE);
    say(middleText, list.length ? "mean of the last " + Math.min(values.length, 2 * window) + ": " + text(mean(values.slice(-2 * window))) : "no values yet");
    say(high, list.length > 1 ? list[list.length - 1].when() : "");
    say(top, list.length ? text(most) : "");
    area.setAttribute("aria-label", label + ": " + (list.length ? plural(list.length, "value") + ", mean " + text(mean(values)) : "no values yet"));
  };
  return node;
}

/* Of each place: mean and the 10th and 90th of a hundred of those around it. */
function moving(values, half) {
  const step = Math.max(1, Math.floor(values.length / 400));
  let last = null;
  return values.map((_, k) => {
    if (last && k % step) return last;
    const around = values.slice(Math.max(0, k - half), k + half + 1).sort((a, b) => a - b);
    last = { mean: mean(around), low: quantile(around, 0.1), high: quantile(around, 0.9) };
    return last;
  });
}

/* Parts of a whole as one bar: [{kind, ms, text}]. */
function stackBar(label) {
  const node = el("div.stack", { role: "img", "aria-label": label });
  node.update = (parts, lines) => {
    const total = sum(parts.map((one) => one.ms)) || 1;
    keyed(node, parts.filter((one) => one.ms > 0), (one) => one.kind, (one) => el("i.k-" + one.kind), (child, one) => {
      child.style.flexGrow = String(Math.max(0.004, one.ms / total));
    });
    node.setAttribute("aria-label", label + ": " + parts.filter((one) => one.ms > 0).map((one) => one.text).join(", "));
    node.lines = lines;
  };
  hoverable(node, () => node.lines);
  return node;
}
