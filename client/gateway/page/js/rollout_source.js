/* Where what is known of one rollout comes from: its trajectory once it has ended, until then its state and a stream of its events, which is
   opened again by itself. `shown` is what is known; `onChange()` is told that it is more. */
const RETRY_ROLLOUT_MS = 15000;
const UNKNOWN = "Nobody knows this rollout: it was never submitted, or its trajectory was acknowledged and is no longer kept.";

function whyUnknown(error) {
  return [404, 410].includes(error.status) || error.reason === "forgotten" ? UNKNOWN : "It could not be fetched: " + error.message;
}

function rolloutSource(name, onChange) {
  const shown = { live: newLive(), state: null, trajectory: null, model: null, mode: "text", error: "", trouble: "" };
  let stream = null;
  let isOver = false;
  let isLoading = false;
  let tries = 0;

  async function load() {
    if (isLoading || isOver || shown.trajectory) return;
    isLoading = true;
    try {
      take(await ask(rolloutUrl(name)));
    } catch (error) {
      shown.error = whyUnknown(error);
      if (!error.status || error.status >= 500) later();
    } finally {
      isLoading = false;
    }
    if (!isOver) onChange();
  }

  const later = () => setTimeout(load, Math.min(RETRY_ROLLOUT_MS, 1000 * 2 ** tries++));

  function take(answer) {
    if (isOver) return;
    shown.error = "";
    if (!answer.outcome) {
      shown.state = { ...answer };
      if (!stream) watch();
      return;
    }
    close();
    shown.trajectory = answer;
    shown.model = modelOf(answer);
    noteRepetition(answer.rollout, answer.stream, shown.model.messages.filter(isSampled).map((one) => one.content).join("\n"));
  }

  function watch() {
    stream = events(rolloutUrl(name) + "/events", {
      message: hear,
      live: hear,
      ended: () => hear({ events: [{ event: "ended" }] }),
      failed: (data) => {
        shown.trouble = (data && data.text) || "";
        close();
        later();
        changed("rollout");
      },
    }, () => {
      close();
      later();
    });
    stream.onopen = () => (tries = 0);
  }

  function hear(batch) {
    if (!batch) return;
    takeBatch(shown.live, batch);
    shown.trouble = "";
    if (shown.live.state) shown.state = { ...shown.live.state };
    if (shown.live.ended) {
      shown.live.ended = false;
      close();
      load();
    }
    changed("rollout");
  }

  function close() {
    if (stream) stream.close();
    stream = null;
  }

  addEventListener("pagehide", close);
  return { shown, load, stop() {
    isOver = true;
    close();
    removeEventListener("pagehide", close);
  } };
}
