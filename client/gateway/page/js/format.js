/* Numbers and times as people read them. What is not known is an en dash. */
const NONE = "–";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function count(value) {
  return isNumber(value) ? whole.format(value) : NONE;
}

function plural(value, one, many) {
  return count(value) + " " + (value === 1 ? one : many || one + "s");
}

/* Three digits that matter, and k, M, G. */
function short(value) {
  if (!isNumber(value)) return NONE;
  const size = Math.abs(value);
  for (const [unit, name] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (size >= unit * 0.9995) return digits(value / unit) + name;
  }
  return digits(value);
}

function digits(value) {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return whole.format(value);
  return value.toFixed(size >= 10 ? 1 : 2);
}

function reward(value) {
  if (!isNumber(value)) return NONE;
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 10 ? 3 : 1).replace(/0+$/, "").replace(/\.$/, "");
}

function duration(ms) {
  if (!isNumber(ms)) return NONE;
  if (ms < 1000) return Math.round(ms) + " ms";
  const seconds = ms / 1000;
  if (seconds < 10) return seconds.toFixed(1) + " s";
  if (seconds < 99.5) return Math.round(seconds) + " s";
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 60) return minutes + " min " + String(Math.round(seconds) % 60).padStart(2, "0") + " s";
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return hours + " h " + String(minutes % 60).padStart(2, "0") + " min";
  return Math.floor(hours / 24) + " d " + (hours % 24) + " h";
}

function ago(ms) {
  return isNumber(ms) ? (ms < 1500 ? "just now" : duration(ms) + " ago") : NONE;
}

function percent(part, all) {
  if (!isNumber(part) || !all) return NONE;
  const value = (100 * part) / all;
  return (value > 0 && value < 1 ? "< 1" : value > 99 && value < 100 ? "> 99" : String(Math.round(value))) + "\u00a0%";
}

function bytes(value) {
  if (!isNumber(value)) return NONE;
  for (const [unit, name] of [[2 ** 30, " GiB"], [2 ** 20, " MiB"], [2 ** 10, " KiB"]]) {
    if (value >= unit) return digits(value / unit) + name;
  }
  return value + " B";
}

function clock(ms) {
  return new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

function middle(values) {
  if (!values.length) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return quantile(sorted, 0.5);
}

/* Of sorted values. */
function quantile(sorted, q) {
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - low);
}

function mean(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

function sum(values) {
  return values.reduce((total, value) => total + (value || 0), 0);
}

/* An engine's address without what all have in common. */
function host(url) {
  return (url || "").replace(/^https?:\/\//, "").replace(/\/$/, "");
}
