// The viewer: chooses an episode and steps through it. What it shows is packed in the page and unpacked when it is
// looked at. Texts are models' words, so they only ever become textContent.
(() => {
  "use strict";
  const viewer = document.getElementById("viewer");
  if (!viewer) return;
  const part = (name) => viewer.querySelector(`[data-part="${name}"]`);
  const select = (name) => viewer.querySelector(`select[name="${name}"]`);
  const FILTERS = ["model", "game", "pathway", "phase", "checkpoint"];
  const ALL = "";

  const unpacked = new Map();
  const unpack = (name) => {
    if (!unpacked.has(name)) unpacked.set(name, read(document.getElementById(`trajectories-${name}`).textContent));
    return unpacked.get(name);
  };
  const read = (text) => {
    const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  };

  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const makeOption = (value, label, isSelected) => {
    const option = make("option", label);
    option.value = value;
    option.selected = isSelected;
    return option;
  };
  const facts = (target, pairs) =>
    target.replaceChildren(
      ...pairs.map(([name, value]) => {
        const item = make("div");
        item.append(make("dt", name), make("dd", value));
        return item;
      }),
    );
  const number = (value) =>
    value === null ? "–" : value.toLocaleString("en-US", { maximumFractionDigits: 4 }).replace("-", "−");
  const share = (gap) => (gap > 0 && gap < 5 ? "<1 %" : `${Math.round(gap / 10)} %`);
  const compare = (a, b) => (a > b) - (a < b);

  // An episode serves several cells where they share a stage, such as the evaluation before any experience.
  let entries = [];
  let filter = Object.fromEntries(FILTERS.map((name) => [name, ALL]));
  let matching = [];
  let surprises = null;
  let entry = null;
  let step = 0;

  const load = ({ cells, episodes }) => {
    entries = episodes.map(({ cells: users, ...episode }, index) => ({
      ...episode,
      index,
      cell: users[0],
      users: users.map((user) => cells[user]),
      checkpoint: String(episode.checkpoint),
      surprise: Math.max(0, ...episode.gaps),
    }));
    const place = (e) => [e.users[0].model, e.users[0].game, e.users[0].pathway, e.phase, +e.checkpoint, e.episode];
    const places = new Map(entries.map((e) => [e, place(e)]));
    entries.sort((a, b) => places.get(a).reduce((sign, value, at) => sign || compare(value, places.get(b)[at]), 0));
  };

  // The cells that an entry serves and the choice allows, but for one field.
  const allowed = (e, but) => {
    const fits = (value, name) => name === but || filter[name] === ALL || filter[name] === value;
    if (!fits(e.phase, "phase") || !fits(e.checkpoint, "checkpoint")) return [];
    return e.users.filter((user) => ["model", "game", "pathway"].every((name) => fits(user[name], name)));
  };
  const values = (e, name, users) => (name in e ? [e[name]] : [...new Set(users.map((user) => user[name]))]);
  const named = (e, name) => values(e, name, allowed(e)).join("; ");

  const showFilters = () =>
    FILTERS.forEach((name) => {
      const found = new Set(entries.flatMap((e) => {
        const users = allowed(e, name);
        return users.length ? values(e, name, users) : [];
      }));
      const sorted = [...found].sort(name === "checkpoint" ? (a, b) => a - b : compare);
      select(name).replaceChildren(
        makeOption(ALL, "all", filter[name] === ALL),
        ...sorted.map((value) => makeOption(value, value, filter[name] === value)),
      );
    });

  const when = (e) => (e.phase === "exploration" ? "exploration" : `evaluation after ${e.checkpoint}`);
  const label = (e) => {
    const users = allowed(e);
    const open = ["model", "game", "pathway"].filter((name) => filter[name] === ALL);
    return [...open.map((name) => values(e, name, users).join("; ")), when(e), `episode ${e.episode + 1}`, `surprise ${share(e.surprise)}`].join(" · ");
  };
  const isBySurprise = () => select("order").value === "surprise";

  const match = () => {
    surprises = null;
    matching = entries.filter((e) => allowed(e).length);
    if (isBySurprise()) matching.sort((a, b) => b.surprise - a.surprise || b.whole - a.whole);
    showFilters();
    part("count").textContent = `Episode, of ${matching.length.toLocaleString("en-US")}`;
    select("episode").replaceChildren(...matching.map((e) => makeOption(String(e.index), label(e), false)));
  };

  const choose = (name, value) => {
    if (name !== "order") filter = { ...filter, [name]: value };
    match();
    if (isBySurprise()) return show(matching[0], strangest(matching[0]));
    const likeness = (e) =>
      ["model", "game", "pathway"].filter((n) => named(e, n) === named(entry, n)).length +
      ["phase", "checkpoint", "episode"].filter((n) => e[n] === entry[n]).length;
    if (matching.includes(entry)) return show(entry, step);
    return show(matching.reduce((best, e) => (likeness(e) > likeness(best) ? e : best)), 0);
  };
  const strangest = (e) => Math.max(0, e.gaps.indexOf(e.surprise));

  // From the largest gap down among the episodes chosen, those with all texts first where gaps are equal.
  const nextSurprise = () => {
    if (!surprises) {
      surprises = [];
      matching.forEach((e) => e.gaps.forEach((gap, at) => { if (gap > 0) surprises.push({ e, at, gap }); }));
      surprises.sort((a, b) => b.gap - a.gap || b.e.whole - a.e.whole);
    }
    if (!surprises.length) {
      part("rank").textContent = "none: every self-score is the reward";
      return;
    }
    const here = surprises.findIndex(({ e, at }) => e === entry && at === step);
    const rank = (here + 1) % surprises.length;
    show(surprises[rank].e, surprises[rank].at);
    part("rank").textContent = `surprise ${number(rank + 1)} of ${number(surprises.length)}`;
  };

  const showEpisode = (episode, memories) => {
    const { users } = entry;
    facts(part("episode"), [
      ...["model", "game", "pathway"].map((name) => [name, values(entry, name, users).join("; ")]),
      ["phase", when(entry)],
      ["episode", String(entry.episode + 1)],
      ["final score", episode.status === "valid" ? number(episode.final_score) : "none: the episode is invalid"],
      ["ended by", episode.end_reason],
      ["steps", String(entry.gaps.length)],
      ["seed", String(episode.seed)],
      ["instance", episode.instance_id],
      ["id", entry.id],
    ]);
    part("replay").textContent = `s3gym replay '${entry.id}'`;
    part("steps").replaceChildren(
      ...entry.gaps.map((gap, at) => {
        const button = make("button");
        button.type = "button";
        const done = episode.action[at] ?? episode.error_kind[at] ?? episode.action_status[at];
        button.append(
          make("span", String(at + 1), "at"),
          make("span", done, episode.action[at] === null ? "done refused" : "done"),
          make("span", number(episode.verifier_reward[at]), "reward"),
        );
        button.style.setProperty("--gap", Math.min(gap ?? 0, 1000) / 1000);
        button.addEventListener("click", () => show(entry, at));
        const item = make("li");
        item.append(button);
        return item;
      }),
    );
    // the latest memory that was there when the episode began
    const before = entry.phase === "exploration" ? entry.episode : Number(entry.checkpoint);
    const memory = memories.filter(([checkpoint]) => checkpoint <= before).at(-1);
    part("experience").hidden = memory === undefined;
    part("experience-text").textContent = memory === undefined ? "" : memory[1];
    const judged = episode.judgment;
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

  const showStep = (episode, whole) => {
    const gap = entry.gaps[step];
    const total = episode.verifier_reward.slice(0, step + 1).reduce((sum, reward) => sum + (reward ?? 0), 0);
    facts(part("facts"), [
      ["action", episode.action[step] ?? "none"],
      ["status", episode.action_status[step] ?? episode.error_kind[step] ?? "–"],
      ["self-score", number(episode.self_score[step])],
      ["verifier reward", number(episode.verifier_reward[step])],
      ["surprise, of the range", gap === null ? "–" : share(gap)],
      ["running total", number(total)],
    ]);
    part("position").textContent = `Step ${step + 1} of ${entry.gaps.length}`;
    const isLast = step === entry.gaps.length - 1;
    const texts = whole?.steps[step];
    const failure = episode.error_kind[step] && `No reply: ${episode.error_kind[step]}. ${texts?.error_message ?? ""}`;
    part("brief").hidden = Boolean(texts);
    part("seen").hidden = part("answered").hidden = !texts;
    part("observation").textContent = texts?.observation ?? "";
    part("thinking").hidden = !texts?.reasoning;
    part("thinking-text").textContent = texts?.reasoning ?? "";
    part("said").textContent = texts ? "Its reply" : "The line of its answer";
    part("reply").textContent = texts?.reply ?? failure ?? episode.answer[step] ?? "No line of the reply gave an answer.";
    part("feedback").textContent = texts?.feedback || "–";
    part("end").hidden = !isLast || !texts;
    part("final").textContent = whole?.final_observation ?? "";
    part("previous").disabled = step === 0;
    part("next").disabled = isLast;
    const list = part("steps");
    [...list.children].forEach((item, at) => {
      item.firstChild.setAttribute("aria-current", at === step ? "step" : "false");
      item.firstChild.tabIndex = at === step ? 0 : -1;
    });
    const { offsetTop: top, offsetHeight: height } = list.children[step];
    list.scrollTop = Math.min(top, Math.max(list.scrollTop, top + height - list.clientHeight));
  };

  let shown = null;
  const show = async (to, at, isLinked = true) => {
    entry = to;
    step = Math.min(Math.max(at, 0), to.gaps.length - 1);
    part("rank").textContent = "";
    if (isLinked) link();
    part("stage").setAttribute("aria-busy", "true");
    const [{ episodes, memories }, whole] = await Promise.all([
      unpack(`cell-${to.cell}`),
      to.whole ? unpack(`whole-${to.index}`) : null,
    ]);
    if (entry !== to) return; // meanwhile another was asked for
    if (shown !== to) {
      select("episode").value = String(to.index);
      showEpisode(episodes[to.place], memories);
    }
    shown = to;
    showStep(episodes[to.place], whole);
    part("stage").setAttribute("aria-busy", "false");
  };

  // Browsers allow few changes of the address a second; a held arrow key makes many.
  let linking = 0;
  const link = () => {
    clearTimeout(linking);
    linking = setTimeout(() => {
      history.replaceState(null, "", `#episode=${encodeURIComponent(entry.id)}&step=${step + 1}`);
    }, 200);
  };

  const follow = () => {
    const asked = new URLSearchParams(location.hash.slice(1));
    if (!asked.has("episode")) return false;
    const found = entries.find((e) => e.id === asked.get("episode"));
    part("absent").hidden = Boolean(found);
    part("absent-id").textContent = `s3gym replay '${asked.get("episode")}'`;
    if (found) {
      if (!matching.includes(found)) {
        FILTERS.forEach((name) => { filter[name] = ALL; });
        match();
      }
      show(found, (Number(asked.get("step")) || 1) - 1, false);
    }
    viewer.scrollIntoView();
    part("stage").focus({ preventScroll: true });
    return Boolean(found);
  };

  const start = () => {
    match();
    [...FILTERS, "order"].forEach((name) =>
      select(name).addEventListener("change", (event) => choose(name, event.target.value)),
    );
    select("episode").addEventListener("change", (event) => {
      const chosen = entries.find((e) => String(e.index) === event.target.value);
      show(chosen, isBySurprise() ? strangest(chosen) : 0);
    });
    part("previous").addEventListener("click", () => show(entry, step - 1));
    part("next").addEventListener("click", () => show(entry, step + 1));
    part("surprise").addEventListener("click", nextSurprise);
    part("stage").addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const last = entry.gaps.length - 1;
      const target = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: last }[event.key];
      if (target === undefined && event.key !== "s") return;
      event.preventDefault();
      if (event.key === "s") nextSurprise();
      else show(entry, target);
    });
    window.addEventListener("hashchange", follow);
    if (!follow()) show(matching[0], 0, false);
  };

  unpack("index").then(load).then(start).catch((error) => {
    part("failed").hidden = false;
    part("failed").textContent = `The episodes could not be unpacked: ${error.message}. A browser of 2023 or later can.`;
    console.error(error);
  });
})();
