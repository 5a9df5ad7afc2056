/* The line to the gateway: one stream of events for the whole page. It is opened again by itself, and begins with all there is to know. */
const API = "/api/v1";
const RETRY_MS = 1000;
const RETRY_MOST_MS = 5000;

let source = null;
let retries = 0;

class Refusal extends Error {
  constructor(status, said) {
    super((said && said.text) || "the answer was " + status);
    this.status = status;
    this.reason = (said && said.reason) || "";
  }
}

/* JSON of the API; throws a Refusal, or a TypeError where nobody answers. */
async function ask(where, options) {
  const answer = await fetch(API + where, { credentials: "same-origin", cache: "no-store", ...options });
  const text = await answer.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch (error) {
    if (answer.ok) throw new Refusal(answer.status, { text: "the answer is not JSON" });
  }
  if (!answer.ok) {
    if (answer.status === 401) needLogin();
    throw new Refusal(answer.status, value && value.error);
  }
  return value;
}

function post(where, body) {
  return ask(where, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

function rolloutUrl(name) {
  const cut = name.lastIndexOf("/");
  return "/rollouts/" + encodeURIComponent(name.slice(0, cut)) + "/" + encodeURIComponent(name.slice(cut + 1));
}

/* Handlers by event's name; each gets the data as an object. What is not JSON is skipped. */
function events(where, handlers, onError) {
  const stream = new EventSource(API + where);
  for (const [name, handler] of Object.entries(handlers)) {
    stream.addEventListener(name, (event) => {
      let data;
      try {
        data = event.data ? JSON.parse(event.data) : null;
      } catch (error) {
        return;
      }
      handler(data);
    });
  }
  stream.onerror = onError;
  return stream;
}

function needLogin() {
  if (source) source.close();
  source = null;
  setLink("login");
}

function again() {
  if (source) source.close();
  source = null;
  if (store.link === "login") return;
  setLink("away");
  setTimeout(connect, Math.min(RETRY_MOST_MS, RETRY_MS * 1.5 ** retries++) * (0.8 + 0.4 * Math.random()));
}

async function connect() {
  try {
    store.me = await ask("/me");
  } catch (error) {
    if (store.link !== "login") again();
    return;
  }
  if (store.me && store.me.needs_login) {
    needLogin();
    return;
  }
  source = events("/live", {
    status: (data) => {
      heard();
      takeStatus(data);
    },
    away: (data) => {
      store.trouble = (data && data.text) || "";
      changed("link");
    },
    live: (data) => takeLive(data),
    ended: (data) => takeEnded(data, false),
    history: (data) => {
      heard();
      takeHistory(data || []);
    },
    replaced: (data) => forgetEnded((data && data.stream) || ""),
    skipped: (data) => {
      store.skipped += (data && data.count) || 0;
    },
  }, again);
  source.onopen = heard;
}

/* A page that nobody sees for a minute, or that was left, holds no connection: a browser has but six to a server. */
function rest() {
  if (source) source.close();
  source = null;
  if (store.link === "live") setLink("resting");
}

function wake() {
  if (source || document.hidden || store.link === "login" || store.link === "away") return;
  connect();
}

const HIDDEN_MS = 60000;
let hiddenTimer = 0;
addEventListener("pagehide", rest);
addEventListener("pageshow", (event) => event.persisted && wake());
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) hiddenTimer = setTimeout(rest, HIDDEN_MS);
  else if (store.link === "resting") wake();
});

function heard() {
  retries = 0;
  setLink("live");
}

async function login(token) {
  await post("/login", { token });
  setLink("connecting");
  await connect();
}
