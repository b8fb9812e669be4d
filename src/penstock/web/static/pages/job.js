// One job: its graph as it moves, its figures over time, what it prints, what went wrong, and what can be done with it.
import { fill, h, text } from "../lib/dom.js";
import { follow, get, post, remove, seg } from "../lib/api.js";
import { ago, lag, many, number, rate, seconds } from "../lib/format.js";
import { badge, confirmed, health, notice, phase, tabs, tile } from "../lib/ui.js";

// A name, a title, what draws it, which is loaded when it is looked at, and whether a job has it.
const TABS = [
  ["flow", "Flow", () => import("./job-flow.js").then((m) => m.flowTab)],
  ["charts", "Charts", () => import("./job-charts.js").then((m) => m.chartsTab)],
  ["tasks", "Tasks", () => import("./job-tasks.js").then((m) => m.tasksTab)],
  ["rules", "Rules", () => import("./job-rules.js").then((m) => m.rulesTab), (plan) => plan.rules?.length > 0],
  ["trace", "Trace", () => import("./job-trace.js").then((m) => m.traceTab), (plan) => plan.traceable],
  ["logs", "Logs", () => import("./job-logs.js").then((m) => m.logsTab)],
  ["error", "Error", () => import("./job-failure.js").then((m) => m.failureTab)],
  ["profile", "Profile", () => import("./job-profile.js").then((m) => m.profileTab)],
  ["dead-letters", "Dead letters", () => import("./job-dead-letters.js").then((m) => m.deadLettersTab)],
  ["savepoints", "Checkpoints", () => import("./job-savepoints.js").then((m) => m.savepointsTab)],
  ["version", "Version", () => import("./job-version.js").then((m) => m.versionTab)],
  ["events", "Events", () => import("./job-failure.js").then((m) => m.eventsTab)],
];

const ACTIONS = {
  pause: ["Pause", "It ends after its batch, keeps its state, and reads nothing until it is resumed.", false],
  resume: ["Resume", "It goes on from where it was.", false],
  restart: ["Restart", "Its driver ends after its batch, and another one starts from the checkpoint. Nothing is lost.", false],
  stop: ["Stop", "It ends after its batch and keeps its checkpoint. Resume has it go on.", false],
  kill: ["Kill", "It ends at once. The batch that it is in runs again when it is resumed.", true],
};

function actions(name, job, may) {
  const path = `/jobs/${seg(name)}`;
  const act = async (action) => {
    const [word, about, danger] = ACTIONS[action];
    if (await confirmed({ title: `${word} ${name}?`, about, action: word, danger })) {
      await post(`${path}/${action}`);
      notice(`${name}: ${word.toLowerCase()} was asked for`);
    }
  };
  const rescale = async () => {
    const tasks = await confirmed({ title: `Rescale ${name}`, about: "Another driver starts, whose keyed steps have so many tasks. State moves along.", action: "Rescale", field: { label: "Tasks", type: "number", min: 1, max: 4096, value: job.options?.parallelism || 2 } });
    if (tasks) { await post(`${path}/rescale`, { tasks: Number(tasks) }); notice(`${name}: ${tasks} tasks were asked for`); }
  };
  const savepoint = async () => {
    const found = await confirmed({ title: `Savepoint of ${name}`, about: "State and offsets are copied while the job runs on.", action: "Take it", field: { label: "Name (may be empty)", placeholder: "before-change", pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*" } });
    if (found !== null) { const made = await post(`${path}/savepoints`, { name: found }); notice(`savepoint taken: ${made.savepoint}`); }
  };
  const forget = async () => {
    if (await confirmed({ title: `Remove ${name}?`, about: ["The job is gone for good, with its checkpoint, its dead letters and its log.", "There is no way back."], action: "Remove", danger: true })) { await remove(path); location.hash = "#/"; }
  };
  const isOn = job.wish === "running";
  const button = (word, call, hidden, kind = "") => (hidden ? null : h(`button${kind}`, { type: "button", onclick: call }, word));
  if (!may) return h("span.muted", `belongs to ${job.owner}`);
  return h("div.row.actions", { role: "group", "aria-label": "actions" },
    button("Pause", () => act("pause"), !isOn || job.phase === "held"), button("Resume", () => act("resume"), isOn && !["held", "finished"].includes(job.phase)),
    button("Restart", () => act("restart")), button("Rescale", rescale), button("Savepoint", savepoint),
    button("Stop", () => act("stop"), !isOn), button("Kill", () => act("kill"), ["stopped", "paused", "held", "finished"].includes(job.phase), ".danger"),
    button("Remove", forget, isOn || !["stopped", "paused", "held", "finished"].includes(job.phase), ".danger"));
}

export function show(root, { name, tab = "flow", rest }, me) {
  document.title = `${name} · Penstock`;
  const path = `/jobs/${seg(name)}`, listeners = new Set();
  const head = h("div.row.head"), said = h("p.under-way"), live = h("span.live", "connecting"), body = h("div.tab"), bar = h("div");
  const tiles = { rate: tile("Records a second", "the last ten seconds"), batch: tile("Batch", "time of the last batch"), lag: tile("Waiting", "what sources have waiting"), behind: tile("Watermark delay", "how far event time is behind the clock"), rows: tile("Records", "since its driver started"), restarts: tile("Restarts") };
  root.append(h("nav.crumbs", { "aria-label": "you are here" }, h("a", { href: "#/" }, "Jobs"), " / ", h("span", name)), head, said,
    h("div.tiles.small", Object.values(tiles).map((each) => each.node)),
    bar, body);
  const shownTab = TABS.some(([each]) => each === tab) ? tab : "flow";
  const fillTabs = (plan) => fill(bar, tabs(TABS.filter(([each, , , has]) => !has || each === shownTab || has(plan)), shownTab, (each) => `#/jobs/${seg(name)}${each === "flow" ? "" : `/${each}`}`));
  const drawTabs = (plan) => { fillTabs(plan); bar.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" }); };
  drawTabs({});
  get(`${path}/plan`).then(drawTabs).catch(() => {});
  let key = "", state = { job: null, rates: {}, totals: {}, watermarks: {}, runs: {}, metrics: {} };
  const may = (job) => me.role === "admin" || me.role === "operator" || (me.role === "developer" && me.owner === job.owner);
  const context = { name, path, rest, me, state: () => state, may: () => state.job !== null && may(state.job), onstate(call) { listeners.add(call); if (state.job) call(state); return () => listeners.delete(call); } };

  function draw({ job, rates, totals, watermarks, runs = {}, metrics = {} }) {
    if (!job) { fill(body, h("p.empty", "This job is gone.")); return; }
    state = { job, rates, totals, watermarks, runs, metrics };
    const now = JSON.stringify([job.phase, job.wish, job.health, job.health_reason, job.options, job.owner, job.upgrade]);
    if (now !== key) {
      key = now;
      fill(head, h("h1", name), health(job), phase(job.phase), h("span.muted", `${job.owner} · ${job.flow || job.target}`), job.upgrade === "on trial" && badge("new version on trial", "soon"), job.upgrade.startsWith("went back") && h("span.badge.hurt", { title: job.upgrade }, "went back"), live, h("div.spacer"), actions(name, job, may(job)));
    }
    const hurts = job.health === "bad" || job.health === "warning";
    text(said, [hurts && job.health_reason, job.phase === "starting" && "its driver starts Spark; figures come with the first batch"].filter(Boolean).join(" · "));
    said.hidden = !said.textContent;
    said.classList.toggle("bad-text", job.health === "bad");
    said.classList.toggle("warning-text", job.health === "warning");
    const behind = Object.entries(rates).filter(([each]) => each.startsWith("behind:")).map(([, v]) => v);
    tiles.rate.set(rate(job.throughput));
    tiles.batch.set(seconds(job.batch_seconds), job.under_way || (rates.batches === undefined ? "" : `${number(rates.batches)} a second`));
    tiles.lag.set(lag(job.lags), job.lags.map(([source]) => source).join(", "));
    tiles.behind.set(behind.length ? seconds(Math.max(...behind)) : "–");
    tiles.rows.set(number(job.rows), many(job.batches, "batch", "batches"));
    tiles.restarts.set(number(job.restarts), `${job.phase} for ${ago(job.since)}`);
    for (const call of listeners) call(state);
  }
  const [, , load] = TABS.find(([each]) => each === tab) || TABS[0];
  let endTab = () => {}, isGone = false;
  load().then((make) => { if (!isGone) endTab = make(body, context) || (() => {}); });
  let retry = 0;
  const first = () => get(path).then((job) => { if (!isGone && !state.job) draw({ job, rates: {}, totals: {}, watermarks: {} }); }).catch((error) => {
    if (isGone || error.status === 401) return;
    if (error.status === 404) { fill(root, h("section.card.narrow", h("h1", "No such job"), h("p", error.message), h("a", { href: "#/" }, "All jobs"))); return; }
    if (!head.firstChild) fill(head, h("h1", name));
    text(said, error.message);
    retry = setTimeout(first, 3000);
  });
  first();
  const endStream = follow(`/live/jobs/${seg(name)}`, "job", draw, (word) => { live.className = `live ${word}`; text(live, word === "live" ? "live" : "reconnecting"); });
  return () => { isGone = true; clearTimeout(retry); endTab(); endStream(); listeners.clear(); };
}
