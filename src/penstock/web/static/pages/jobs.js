// All jobs: how they are, how fast, how far behind.
import { h, text } from "../lib/dom.js";
import { follow, query, seg } from "../lib/api.js";
import { ago, lag, number, rate, seconds } from "../lib/format.js";
import { health, phase, spark, table, tile } from "../lib/ui.js";

const ORDER = { bad: 0, warning: 1, good: 2, off: 3 };
const records = (job) => (job.lags || []).filter(([, unit]) => unit === "records").reduce((sum, [, , value]) => sum + value, 0);

export function show(root, { query: asked }) {
  document.title = "Jobs · Penstock";
  let jobs = [], shown = { text: (asked.get("q") || "").toLowerCase(), health: asked.get("health") || "" };
  const lines = new Map();
  const search = h("input", { type: "search", id: "search", placeholder: "name, owner, phase   ( / )", "aria-label": "search jobs", value: asked.get("q") || "", oninput: () => { shown.text = search.value.toLowerCase(); link(); draw(); } });
  const chips = [["", "all"], ["bad", "bad"], ["warning", "warning"], ["good", "good"], ["off", "off"]].map(([value, word]) =>
    h("button.chip", { type: "button", "aria-pressed": String(value === shown.health), onclick: (event) => { shown.health = value; link(); chips.forEach((c) => c.setAttribute("aria-pressed", String(c === event.currentTarget))); draw(); } }, word, h("span.count")));
  const tiles = { running: tile("Running"), rate: tile("Records a second", "all jobs, the last ten seconds"), lag: tile("Waiting", "records that sources have waiting"), hurt: tile("Need attention") };
  const live = h("span.live", "connecting");
  const list = table({
    label: "jobs", empty: "No jobs. penstock submit FILE makes one.", key: (job) => job.name, onrow: (job) => { location.hash = `#/jobs/${seg(job.name)}`; },
    columns: [
      { title: "Health", sort: (j) => ORDER[j.health] ?? 9, first: true, cell: (j) => health(j) },
      { title: "Job", class: "name", sort: (j) => j.name, cell: (j, cell) => (cell.firstChild ? undefined : h("a", { href: `#/jobs/${seg(j.name)}` }, j.name)) },
      { title: "Phase", sort: (j) => j.phase, cell: (j) => phase(j.phase) },
      { title: "Rate", right: true, sort: (j) => j.throughput ?? -1, cell: (j) => h("span.with-spark", spark(lines.get(j.name) || []), h("span", rate(j.throughput))) },
      { title: "Lag", right: true, sort: records, cell: (j) => lag(j.lags) },
      { title: "Batch", right: true, sort: (j) => j.batch_seconds ?? -1, cell: (j) => seconds(j.batch_seconds) },
      { title: "Restarts", right: true, sort: (j) => j.restarts, cell: (j) => number(j.restarts) },
      { title: "Owner", sort: (j) => j.owner, cell: (j) => j.owner },
      { title: "Since", right: true, sort: (j) => -j.since, cell: (j) => ago(j.since) },
      { title: "Note", class: "note", cell: (j) => (j.health === "good" ? j.under_way : j.health_reason) },
    ],
  });
  root.append(h("div.row.head", h("h1", "Jobs"), live),
    h("div.tiles", tiles.running.node, tiles.rate.node, tiles.lag.node, tiles.hurt.node),
    h("div.row.filters", search, h("div.chips", { role: "group", "aria-label": "health" }, chips)), list.node);
  const link = () => { const asks = query({ q: search.value, health: shown.health }); history.replaceState(null, "", asks ? `#/?${asks}` : "#/"); };
  function draw() {
    const found = jobs.filter((j) => (!shown.health || j.health === shown.health) && `${j.name} ${j.owner} ${j.phase} ${j.flow}`.toLowerCase().includes(shown.text));
    list.draw(found);
    text(list.none, jobs.length ? "No job is like that." : "No jobs. penstock submit FILE makes one.");
    chips.forEach((chip, at) => { const word = ["", "bad", "warning", "good", "off"][at]; text(chip.querySelector(".count"), word ? jobs.filter((j) => j.health === word).length : jobs.length); });
    const running = jobs.filter((j) => j.phase === "running");
    tiles.running.set(`${running.length} of ${jobs.length}`, `${jobs.filter((j) => j.wish === "running").length} wanted`);
    tiles.rate.set(number(jobs.reduce((sum, j) => sum + (j.throughput || 0), 0)));
    tiles.lag.set(number(jobs.reduce((sum, j) => sum + records(j), 0)), "records at sources");
    const hurt = jobs.filter((j) => j.health === "bad" || j.health === "warning");
    tiles.hurt.set(hurt.length, hurt.slice(0, 3).map((j) => j.name).join(", "));
  }
  return follow("/live/jobs", "jobs", (data) => {
    jobs = data.jobs;
    for (const job of jobs) lines.set(job.name, [...(lines.get(job.name) || []), job.throughput || 0].slice(-60));
    draw();
  }, (state) => { live.className = `live ${state}`; text(live, state === "live" ? "live" : "reconnecting"); });
}
