// The graph of a job as it moves, and what is known of a step or a stream.
import { fill, h, text } from "../lib/dom.js";
import { get, query, seg } from "../lib/api.js";
import { moment } from "../lib/clock.js";
import { bytes, many, micros, number, rate, seconds, whole } from "../lib/format.js";
import { graph, MEASURES, ofStep, ofStepAndParts, partsOf } from "../lib/graph.js";
import { chart } from "../lib/chart.js";
import { drawHistory, PHASES } from "./job-charts.js";
import { liveSample } from "./sample.js";

const WORDS = { in: "rows in", out: "rows out", late: "late", bad: "without usable event time", dead: "dead letters", skipped: "skipped", shed: "shed", matches: "matches", timed_out: "timed out", pruned: "pruned", dropped: "dropped" };

export function flowTab(root, context) {
  const here = `#/jobs/${seg(context.name)}/flow`, none = h("p.empty", { hidden: true }, "The driver has not said yet what the flow does.");
  let plan = null, known = "", isPhysical = false, measure = "rate", end = () => {};
  const side = h("aside.details", { "aria-label": "details" }), split = h("div.split.alone");
  const picture = graph({ onstep: show, onedge: (stream) => open(() => streamDetails(side, stream, context, plan)) });
  const chooser = h("select", { id: "measure", onchange: () => { measure = chooser.value; picture.paint(context.state().rates, measure); } }, Object.entries(MEASURES).map(([name, [title]]) => h("option", { value: name }, title)));
  const kinds = ["As written", "As it runs"].map((word, at) => h("button.chip", { type: "button", "aria-pressed": String(at === 0), onclick: () => { isPhysical = at === 1; kinds.forEach((k, i) => k.setAttribute("aria-pressed", String(i === at))); redraw(); } }, word));
  const about = h("p.muted.plan-line");
  root.append(h("section.card.flow", h("div.row.tools", h("label.inline", { for: "measure" }, "Colour", chooser), h("div.chips", { role: "group", "aria-label": "graph" }, kinds), about), split));
  split.append(none, picture.node, side);
  const charts = shortCharts(root, context);
  function show(step) {
    history.replaceState(null, "", `${here}/${seg(step.name)}`);
    open(() => stepDetails(side, step, context, plan));
  }
  function open(make) { end(); split.classList.remove("alone"); end = make() || (() => {}); if (matchMedia("(max-width: 800px)").matches) side.scrollIntoView({ block: "nearest" }); }
  const redraw = () => { if (plan?.steps) picture.draw(plan, isPhysical); };
  async function load() {
    const found = await get(`${context.path}/plan`), now = JSON.stringify(found);
    none.hidden = Boolean(found.steps);
    picture.node.hidden = !found.steps;
    if (!found.steps || now === known) return Boolean(found.steps);
    [plan, known] = [found, now];
    const t = plan.totals;
    text(about, `${many(t.steps, "step")}, ${many(t.stages, "stage")}, ${many(t.shuffles, "shuffle")}${t.state ? ", keeps state" : ""}. Choose a step or a stream to see more.`);
    redraw();
    const linked = plan.steps.find((step) => step.name === wanted);
    if (linked) { wanted = ""; picture.choose(linked.name); show(linked); }
    return true;
  }
  let loaded = "", trying = false, wanted = context.rest;
  // Another driver may run another version: its plan is asked for when the job has one that is new.
  const ended = context.onstate(async ({ rates, job }) => {
    const driver = JSON.stringify([job.since, job.phase, job.generation, job.bundle]);
    if (loaded !== driver && !trying) { trying = true; if (await load().catch(() => false)) loaded = driver; trying = false; }
    if (plan) picture.paint(rates, measure);
  });
  const restyle = () => picture.paint(context.state().rates, measure);
  addEventListener("themechange", restyle);
  return () => { end(); ended(); charts(); removeEventListener("themechange", restyle); };
}

// The last five minutes in two charts, below the graph.
function shortCharts(root, context) {
  const rows = chart("Records a second, the last five minutes", { series: [["records", "--c-blue"]], height: 140, group: "short" });
  const phases = chart("Time of a batch, by phase", { series: PHASES, stacked: true, unit: seconds, height: 140, group: "short" });
  root.append(h("div.charts", rows.node, phases.node));
  let ended = false, timer = 0;
  const load = async () => {
    const found = await get(`${context.path}/history?${query({ span: "5m" })}`).catch(() => null);
    if (found && !ended) drawHistory(found, { rows, phases });
    if (!ended) timer = setTimeout(load, 2000);
  };
  load();
  return () => { ended = true; clearTimeout(timer); rows.close(); phases.close(); };
}

function facts(pairs) {
  return h("dl.facts", pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => [h("dt", name), h("dd", value)]));
}

// Runs of patterns that are under way: how many, of how many keys, what they wait for.
function runRows(runs) {
  return Object.entries(runs || {}).map(([pattern, found]) => h("tr", h("td", `runs of ${pattern}`), h("td.right", { colspan: "2", title: Object.entries(found.waiting || {}).map(([word, many]) => `${many} wait for ${word}`).join(", ") }, `${whole(Object.values(found.waiting || {}).reduce((sum, many) => sum + many, 0))} of ${whole(found.keys)} keys, ${whole(found.events)} events`)));
}

// What the tasks of a spout or bolt measure themselves: a value of each task in the last batch that has one.
function ownRows(tasks) {
  const found = new Map();
  const note = (name, task, value) => found.set(name, [...(found.get(name) || []), [task, typeof value === "number" ? number(value) : value]]);
  for (const [task, metrics] of Object.entries(tasks || {})) for (const [name, value] of Object.entries(metrics)) {
    if (typeof value === "object") for (const [part, each] of Object.entries(value)) note(`${name}.${part}`, task, each); else note(name, task, value);
  }
  return [...found].map(([name, values]) => h("tr", h("td", `metric ${name}`), h("td.right", { colspan: "2", title: values.map(([task, value]) => `task ${task}: ${value}`).join(", ") }, values.map(([, value]) => value).join(", "))));
}

const skewed = (skew) => `${number(skew)} ×, ${skew > 2 ? "uneven" : "even"}`;

function loadRows(now) {
  const rows = [];
  if (now.busy !== undefined) rows.push(["busy", `${number((now.busy / (now.tasks || 1)) * 100)} % of each of ${whole(now.tasks || 1)} tasks`]);
  if (now.busy && now.in) rows.push(["a record takes", micros((now.busy / now.in) * 1e6)]);
  if (now.skew !== undefined) rows.push(["skew over tasks", skewed(now.skew)]);
  if (now.kept !== undefined) rows.push(["entries kept", number(now.kept)]);
  if (now.bytes !== undefined) rows.push(["state", bytes(now.bytes)]);
  if (now.timers !== undefined) rows.push(["timers that wait", number(now.timers)]);
  return rows.map(([name, value]) => h("tr", h("td", name), h("td.right", { colspan: "2" }, value)));
}

function stepDetails(side, step, context, plan) {
  const parts = partsOf(plan).get(step.name) || [];
  const numbers = h("tbody"), line = chart("Rows a second", { series: [["in", "--c-blue"], ["out", "--c-green"]], height: 130 });
  const settings = Object.entries(step.settings || {});
  fill(side, h("h2", step.name),
    facts([["kind", step.kind], ["runs", step.runs], ["stage", step.stage], ["tasks", step.parallelism], ["keys", (step.keys || []).join(", ")], ["keeps", step.keeps], ["written at", step.line]]),
    h("table.figures", h("thead", h("tr", h("th", { scope: "col" }, "Figure"), h("th.right", { scope: "col" }, "now"), h("th.right", { scope: "col" }, "in all"))), numbers),
    line.node,
    settings.length > 0 && [h("h3", "Settings"), facts(settings.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]))],
    (step.outputs || []).map((output) => [h("h3", `Stream ${output.port || "out"}`), h("code.schema", output.schema)]));
  const load = async () => {
    const found = await get(`${context.path}/history?${query({ span: "5m", step: step.name })}`);
    const by = (name) => (found.figures[name] || found.times.map(() => 0)).map((v, at) => v / Math.max(found.figures.span[at], 0.001));
    line.set(found.times, [by("in"), by("out")]);
  };
  load().catch(() => {});
  const timer = setInterval(() => load().catch(() => {}), 5000);
  const ended = context.onstate(({ rates, totals, watermarks, job, runs, metrics }) => {
    const now = ofStep(rates, step.name), all = ofStep(totals, step.name);
    const rows = Object.keys({ ...all, ...now }).filter((name) => WORDS[name]).map((name) => h("tr", h("td", name === "dead" && all.dead ? h("a", { href: `#/jobs/${seg(context.name)}/dead-letters` }, WORDS.dead) : WORDS[name]), h("td.right", rate(now[name])), h("td.right", whole(all[name]))));
    for (const [name, value] of Object.entries(now)) if (name.startsWith("lag:")) rows.push(h("tr", h("td", `waiting ${name.slice(4)}`), h("td.right", number(value)), h("td")));
    for (const [part, many] of Object.entries(job.behind[step.name] || {})) rows.push(h("tr", h("td", `waiting in ${part}`), h("td.right", whole(many)), h("td")));
    const mark = watermarks[step.name] ?? watermarks[`${step.name}@time`];
    if (mark) rows.push(h("tr", h("td", "watermark"), h("td.right", { colspan: "2" }, moment(mark))));
    if (now.behind !== undefined) rows.push(h("tr", h("td", "watermark delay"), h("td.right", seconds(now.behind)), h("td")));
    rows.push(...loadRows(ofStepAndParts(rates, step.name, parts)), ...runRows(runs?.[step.name]), ...ownRows(metrics?.[step.name]));
    fill(numbers, rows.length ? rows : h("tr", h("td.muted", { colspan: "3" }, "counts nothing of its own")));
  });
  return () => { clearInterval(timer); ended(); line.close(); };
}

function streamDetails(side, stream, context) {
  const now = h("dd", "–"), uneven = h("dd", "–"), part = h("div");
  fill(side, h("h2", `${stream.from.step} → ${stream.to}`),
    h("dl.facts", h("dt", "rate"), now, stream.from.port && stream.from.port !== "out" ? [h("dt", "port"), h("dd", stream.from.port)] : null, [h("dt", "grouping"), h("dd", stream.grouping || (stream.shuffle ? `shuffled by ${stream.shuffle}` : "stays where it is"))], [h("dt", "skew over tasks"), uneven], stream.shared ? [h("dt", "shared"), h("dd", "read more than once")] : null, [h("dt", "schema"), h("dd", h("code.schema", stream.schema))]), part);
  const ended = context.onstate(({ rates }) => {
    const to = ofStep(rates, stream.to);
    text(now, rate(ofStep(rates, stream.from.step).out ?? to.in));
    text(uneven, to.skew === undefined ? "not measured: no Python step takes it" : skewed(to.skew));
  });
  const endSample = liveSample(part, context, stream);
  return () => { ended(); endSample(); };
}
