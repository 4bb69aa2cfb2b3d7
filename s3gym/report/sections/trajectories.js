// The viewer: chooses an embedded episode and steps through it. Texts are models' words, so they only ever
// become textContent.
(() => {
  "use strict";
  const viewer = document.getElementById("viewer");
  if (!viewer) return;
  const fields = ["model", "game", "pathway", "phase", "checkpoint", "episode"];
  // An entry is an episode as one cell used it: the evaluation before any experience serves several cells.
  const entries = JSON.parse(document.getElementById("trajectory-data").textContent).flatMap(
    ({ uses, ...played }) => uses.map((use) => ({ ...use, played })),
  );
  const order = (a, b) => fields.reduce((sign, f) => sign || (a[f] > b[f]) - (a[f] < b[f]), 0);
  entries.sort(order);
  const part = (name) => viewer.querySelector(`[data-part="${name}"]`);
  const select = (field) => viewer.querySelector(`select[name="${field}"]`);
  let entry = entries[0];
  let step = 0;

  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const number = (value) =>
    value === null ? "–" : value.toLocaleString("en-US", { maximumFractionDigits: 4 }).replace("-", "−");
  const facts = (target, pairs) =>
    target.replaceChildren(
      ...pairs.map(([name, value]) => {
        const item = make("div");
        item.append(make("dt", name), make("dd", value));
        return item;
      }),
    );

  // Entries that agree with the choice in every field before `depth`.
  const agreeing = (depth) => entries.filter((e) => fields.slice(0, depth).every((f) => e[f] === entry[f]));

  const choose = (field, value) => {
    const depth = fields.indexOf(field);
    const open = agreeing(depth).filter((e) => String(e[field]) === value);
    const likeness = (e) => fields.slice(depth + 1).reduce((n, f) => n + (e[f] === entry[f] ? 1 : 0), 0);
    entry = open.reduce((best, e) => (likeness(e) > likeness(best) ? e : best));
    show(0);
  };

  const showFields = () =>
    fields.forEach((field, depth) => {
      const values = [...new Set(agreeing(depth).map((e) => e[field]))];
      select(field).replaceChildren(
        ...values.map((value) => {
          const option = make("option", field === "episode" ? `${value + 1}` : `${value}`);
          option.value = String(value);
          option.selected = value === entry[field];
          return option;
        }),
      );
    });

  const showEpisode = (episode) => {
    facts(part("episode"), [
      ["final score", episode.status === "valid" ? number(episode.final_score) : "none: the episode is invalid"],
      ["ended by", episode.end_reason],
      ["steps", String(episode.steps.length)],
      ["seed", String(episode.seed)],
      ["instance", episode.instance_id],
      ["episode", episode.episode_id],
    ]);
    part("steps").replaceChildren(
      ...episode.steps.map((s, index) => {
        const button = make("button");
        button.type = "button";
        button.append(
          make("span", String(index + 1), "at"),
          make("span", s.action ?? s.error_kind ?? s.action_status, s.action === null ? "refused" : ""),
          make("span", number(s.verifier_reward), "reward"),
        );
        button.addEventListener("click", () => show(index));
        const item = make("li");
        item.append(button);
        return item;
      }),
    );
    part("experience").hidden = entry.memory === null;
    part("experience-text").textContent = entry.memory;
    const judged = entry.judgment;
    part("judgment").hidden = !judged;
    if (judged) {
      facts(part("judgment-facts"), [
        ["expected final score", number(judged.expected_final_score)],
        ["belief in success", number(judged.success_belief)],
        ["retain", judged.retain ?? "–"],
        ["avoid", judged.avoid ?? "–"],
      ]);
    }
  };

  const showStep = (episode) => {
    const s = episode.steps[step];
    part("position").textContent = `Step ${step + 1} of ${episode.steps.length}`;
    part("observation").textContent = s.observation;
    part("reply").textContent = s.reply ?? `No reply: ${s.error_kind ?? "unknown"}. ${s.error_message ?? ""}`;
    part("thinking").hidden = s.reasoning === null;
    part("thinking-text").textContent = s.reasoning;
    part("feedback").textContent = s.feedback || "–";
    facts(part("facts"), [
      ["action", s.action ?? "none"],
      ["status", s.action_status ?? s.error_kind ?? "–"],
      ["self-score", number(s.self_score)],
      ["verifier reward", number(s.verifier_reward)],
      ["running total", number(s.running_total)],
    ]);
    const isLast = step === episode.steps.length - 1;
    part("end").hidden = !isLast;
    part("final").textContent = episode.final_observation;
    part("previous").disabled = step === 0;
    part("next").disabled = isLast;
    [...part("steps").children].forEach((item, index) =>
      item.firstChild.setAttribute("aria-current", index === step ? "step" : "false"),
    );
  };

  const show = (index, link = true) => {
    const episode = entry.played;
    step = Math.min(Math.max(index, 0), episode.steps.length - 1);
    showFields();
    if (shown !== entry) showEpisode(episode);
    shown = entry;
    showStep(episode);
    if (link) history.replaceState(null, "", `#episode=${encodeURIComponent(episode.episode_id)}&step=${step + 1}`);
  };
  let shown = null;

  const follow = () => {
    const link = new URLSearchParams(location.hash.slice(1));
    if (!link.has("episode")) return false;
    const found = entries.find((e) => e.played.episode_id === link.get("episode"));
    part("absent").hidden = Boolean(found);
    part("absent-id").textContent = `s3gym replay ${link.get("episode")}`;
    if (found) {
      entry = found;
      show(Number(link.get("step") ?? 1) - 1, false);
    }
    viewer.scrollIntoView();
    part("stage").focus({ preventScroll: true });
    return Boolean(found);
  };

  fields.forEach((field) => select(field).addEventListener("change", (event) => choose(field, event.target.value)));
  part("previous").addEventListener("click", () => show(step - 1));
  part("next").addEventListener("click", () => show(step + 1));
  part("stage").addEventListener("keydown", (event) => {
    const last = entry.played.steps.length - 1;
    const target = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: last }[event.key];
    if (target === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(target);
  });
  window.addEventListener("hashchange", follow);
  if (!follow()) show(0, false);
})();
