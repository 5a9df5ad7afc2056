/* Addresses: what stands behind # names a panel and what it shows, and so can be kept, sent and gone back to. */
const PANELS = [
  { name: "Overview", href: "#/", make: overview, first: [""] },
  { name: "Rollouts", href: "#/rollouts", make: rolloutsView, first: ["rollouts"] },
  { name: "Groups", href: "#/groups", make: groupsView, first: ["groups"] },
  { name: "Streams", href: "#/streams", make: streamsView, first: ["streams"] },
  { name: "Failures", href: "#/failures", make: failuresView, first: ["failures"] },
  { name: "Fleet", href: "#/fleet", make: fleetView, first: ["fleet"] },
];
const INNER = {
  rollout: { make: rolloutView, tab: "Rollouts", parts: 3 },
  group: { make: groupView, tab: "Groups", parts: 2 },
  stream: { make: streamView, tab: "Streams", parts: 2 },
};

let view = null;

/* {parts, query} of the address, its parts decoded. */
function readAddress() {
  const [where, query] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const parts = where.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch (error) {
      return part;
    }
  });
  return { parts, query: Object.fromEntries(new URLSearchParams(query || "")) };
}

function panelOf(parts) {
  const inner = INNER[parts[0]];
  if (inner && parts.length === inner.parts) return inner;
  return PANELS.find((one) => one.first.includes(parts[0])) || null;
}

function route() {
  const { parts, query } = readAddress();
  const panel = panelOf(parts);
  const main = document.getElementById("main");
  if (view && view.stop) view.stop();
  hideTip();
  view = panel ? panel.make(parts, query) : { node: el("div.panel", null, heading("No such panel"), el("p", null, el("a", { href: "#/" }, "To the overview"))), title: "No such panel", update() {} };
  fill(main, view.node);
  document.title = (view.title === "Overview" ? "" : view.title + " · ") + "Sluice";
  const tab = panel ? panel.tab || panel.name : "";
  for (const link of document.getElementById("tabs").children) set(link, { "aria-current": link.textContent === tab ? "page" : null });
  const current = document.querySelector("#tabs [aria-current]");
  if (current) current.scrollIntoView({ inline: "nearest", block: "nearest" }); // on a phone the tabs scroll
  scrollTo(0, 0);
  view.update(new Set(["status", "live", "ended", "link"]));
}
