/* The frame around the panels: tabs, search, colours, the state of the line, logging in. */
const THEMES = [["auto", "Colours: as the system has them"], ["light", "Colours: light"], ["dark", "Colours: dark"]];
const LINKS = { connecting: "connecting", live: "live", away: "away, trying again", resting: "resting", login: "logged out" };

function remember(key, value) {
  try {
    if (value === undefined) return localStorage.getItem(key);
    localStorage.setItem(key, value);
  } catch (error) {
    // A browser may keep nothing.
  }
  return null;
}

function setTheme(name) {
  const [theme, label] = THEMES.find(([one]) => one === name) || THEMES[0];
  document.documentElement.style.colorScheme = theme === "auto" ? "light dark" : theme;
  const button = document.getElementById("theme");
  set(button, { "aria-label": label, title: label, "data-theme": theme });
  remember("sluice-theme", theme);
}

function nextTheme() {
  const at = THEMES.findIndex(([one]) => one === document.getElementById("theme").dataset.theme);
  setTheme(THEMES[(at + 1) % THEMES.length][0]);
}

function drawLink() {
  const node = document.getElementById("link");
  const isSilent = store.link === "live" && store.status && (store.trouble || Date.now() - store.statusAt > 6000);
  node.className = "link is-" + (isSilent ? "away" : store.link);
  say(document.getElementById("link-text"), isSilent ? "no broker for " + duration(Date.now() - store.statusAt) : LINKS[store.link]);
  set(node, { title: isSilent ? store.trouble : null });
  show(document.getElementById("login"), store.link === "login");
  document.body.classList.toggle("is-stale", store.link !== "live" || Boolean(isSilent));
  drawFoot(store.me);
}

function drawFoot(me) {
  const foot = document.getElementById("foot");
  const text = me && me.name ? "You are " + me.name + (me.role ? ", " + me.role : "") : "";
  if (foot.said === text) return;
  foot.said = text;
  fill(foot, text, text ? el("button.plain", { type: "button", on: { click: logout } }, "Log out") : null);
}

async function logout() {
  try {
    await ask("/logout", { method: "POST" });
  } catch (error) {
    // Nobody answers: the cookie stays, and the page says that it is away.
  }
  location.reload();
}

/* What is looked for: a rollout's name opens it, the rest is searched for in the lists. */
function find(text) {
  const value = text.trim();
  if (!value) return;
  if (/^[^\s/]+\/\d+$/.test(value)) location.hash = rolloutPath(value);
  else if (streamNames().includes(value)) location.hash = path("stream", value);
  else location.hash = withQuery("#/rollouts", { q: value, view: store.live.rollouts.some((one) => one.rollout.includes(value) || (one.task || "").includes(value)) ? "" : "ended" });
}

function bindSearch() {
  const text = document.getElementById("find-text");
  document.getElementById("find").addEventListener("submit", (event) => {
    event.preventDefault();
    find(text.value);
    text.blur();
  });
  addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      text.focus();
      text.select();
    }
    if (event.key === "Escape" && document.activeElement === text) text.blur();
  });
}

function bindLogin() {
  const token = document.getElementById("login-token");
  document.getElementById("login-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const error = document.getElementById("login-error");
    say(error, "");
    try {
      await login(token.value);
      token.value = "";
      route();
    } catch (refusal) {
      say(error, refusal.status ? sentence(refusal.message) : "The service does not answer.");
    }
  });
}

document.getElementById("tabs").append(...PANELS.map((one) => el("a", { href: one.href }, one.name)));
document.getElementById("theme").addEventListener("click", nextTheme);
setTheme(remember("sluice-theme") || "auto");
bindSearch();
bindLogin();
listen((changes) => {
  if (changes.has("link") || changes.has("status")) drawLink();
  if (view) view.update(changes);
});
setInterval(drawLink, 1000);
setInterval(lookForRepeats, 10000);
addEventListener("hashchange", route);
route();
drawLink();
connect();
