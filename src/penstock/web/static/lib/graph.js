// The graph of a flow: laid out by dagre, coloured by a measure, its edges as wide and as quick as their rates.
import { Graph, layout } from "../vendor/dagre.esm.js";
import { h, s, fill, text } from "./dom.js";
import { bytes, number, seconds } from "./format.js";

const RUNS = { source: "source", sink: "sink", python: "Python", native: "native" };
const PLACED = { apart: " · own workers", alone: " · alone" };
const WIDE = 158, HIGH = 64, SMALLEST = 0.6;

export const MEASURES = {
  rate: ["Rate", (f) => f.out ?? f.in ?? 0, (v) => `${number(v)}/s`],
  in: ["Rows in", (f) => f.in ?? 0, (v) => `${number(v)}/s`],
  ratio: ["Rows out per row in", (f) => (f.in ? (f.out || 0) / f.in : 0), (v) => number(v)],
  busy: ["Busy", (f) => (f.busy || 0) / (f.tasks || 1), (v) => `${number(v * 100)} %`],
  skew: ["Skew over tasks", (f) => (f.skew ? Math.max(f.skew - 1, 0) : 0), (v) => `${number(v + 1)} ×`],
  bytes: ["State, bytes", (f) => f.bytes || 0, (v) => bytes(v)],
  kept: ["State, entries", (f) => f.kept || 0, (v) => number(v)],
  timers: ["Timers", (f) => f.timers || 0, (v) => number(v)],
  failures: ["Failures", (f) => (f.dead || 0) + (f.skipped || 0) + (f.bad || 0), (v) => `${number(v)}/s`],
  late: ["Late", (f) => (f.late || 0) + (f.shed || 0), (v) => `${number(v)}/s`],
  lag: ["Lag", (f) => f["lag:records"] ?? f["lag:files"] ?? 0, (v) => number(v)],
  behind: ["Watermark delay", (f) => f.behind || 0, (v) => seconds(v)],
};

// The figures of a step out of figures by `kind:step`.
export function ofStep(figures, step) {
  const made = {}, ending = `:${step}`;
  for (const [name, value] of Object.entries(figures)) if (name.endsWith(ending)) made[name.slice(0, -ending.length)] = value;
  return made;
}

const ADDED = ["busy", "kept", "bytes", "timers"], LARGEST = ["skew", "tasks"];
// The figures of a step with those of the steps that the compiler made of it, where these have a time, a state or timers of their own.
export function ofStepAndParts(figures, step, parts) {
  const made = ofStep(figures, step);
  for (const part of parts || []) {
    const own = ofStep(figures, part);
    for (const name of ADDED) if (own[name] !== undefined) made[name] = (made[name] || 0) + own[name];
    for (const name of LARGEST) if (own[name] !== undefined) made[name] = Math.max(made[name] || 0, own[name]);
  }
  return made;
}

// The steps that the compiler made of each step.
export function partsOf(plan) {
  const parts = new Map();
  for (const step of plan.steps) {
    let at = step.made_by;
    while (at) { parts.set(at, [...(parts.get(at) || []), step.name]); at = plan.steps.find((each) => each.name === at)?.made_by; }
  }
  return parts;
}

// The steps and streams as the user wrote them: what the compiler made of a step counts as the step.
export function logical(plan) {
  const owner = {};
  for (const step of plan.steps) owner[step.name] = step.made_by ? (owner[step.made_by] || step.made_by) : step.name;
  const steps = plan.steps.filter((step) => !step.made_by), known = new Set(steps.map((step) => step.name));
  const find = (name) => { let at = owner[name] || name; while (at && !known.has(at)) at = at.includes("@") ? at.slice(0, at.lastIndexOf("@")) : ""; return at; };
  const seen = new Map();
  for (const stream of plan.streams) {
    const from = find(stream.from.step), to = find(stream.to);
    if (from && to && from !== to) { const key = `${from}\n${to}`; if (!seen.has(key) || stream.shuffle) seen.set(key, { ...stream, from: { ...stream.from, step: from }, to }); }
  }
  return { steps, streams: [...seen.values()] };
}

const STOPS = [[0, [222, 235, 247]], [0.35, [158, 202, 225]], [0.7, [66, 146, 198]], [1, [8, 69, 148]]];
const DARK = [[0, [30, 44, 60]], [0.35, [28, 78, 120]], [0.7, [43, 123, 186]], [1, [135, 200, 245]]];
const isDark = () => (document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
function shade(share, dark) {
  const stops = dark ? DARK : STOPS, at = Math.max(1, stops.findIndex(([x]) => share <= x));
  const [x0, a] = stops[at - 1], [x1, b] = stops[at] || stops[at - 1], part = x1 > x0 ? Math.min(1, (share - x0) / (x1 - x0)) : 0;
  const mixed = a.map((v, i) => Math.round(v + (b[i] - v) * part));
  const light = (0.299 * mixed[0] + 0.587 * mixed[1] + 0.114 * mixed[2]) > 140;
  return [`rgb(${mixed.join(",")})`, light ? "#0d1b2a" : "#ffffff"];
}

// A name in so much room: what is left out is in its middle, since names often differ at their ends.
const pen = document.createElement("canvas").getContext("2d");
export function fitted(value, font, room) {
  pen.font = font;
  let kept = value.length, made = value;
  while (kept > 2 && pen.measureText(made).width > room) {
    kept -= 1;
    made = `${value.slice(0, Math.ceil(kept / 2))}…${value.slice(value.length - Math.floor(kept / 2))}`;
  }
  return made;
}

export function graph({ onstep, onedge }) {
  const view = s("g"), svg = s("svg.graph", { role: "group", "aria-label": "the steps of the flow" }, s("defs", s("marker", { id: "arrow", viewBox: "0 0 10 10", refX: "9", refY: "5", markerWidth: "7", markerHeight: "7", orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" }, s("path.arrow-head", { d: "M0 0L10 5L0 10z" }))), view);
  const node = h("div.graph-box", svg);
  let steps = new Map(), edges = [], parts = new Map(), chosen = "", box = [0, 0, 100, 100], lastRates = {}, lastMeasure = "rate";

  function draw(plan, isPhysical) {
    drawn = [plan, isPhysical];
    parts = isPhysical ? new Map() : partsOf(plan);
    wasUpright = isUpright();
    const made = new Graph({ multigraph: true, compound: isPhysical });
    made.setGraph({ rankdir: wasUpright ? "TB" : "LR", nodesep: 20, ranksep: 40, marginx: 10, marginy: 10 });
    made.setDefaultEdgeLabel(() => ({}));
    const { steps: shown, streams } = isPhysical ? plan : logical(plan);
    const names = new Set(shown.map((step) => step.name));
    if (isPhysical) for (const stage of plan.stages) made.setNode(`stage ${stage.number}`, { label: `stage ${stage.number} · ${stage.host}${PLACED[stage.placed] || ""}` });
    for (const step of shown) {
      made.setNode(step.name, { width: WIDE, height: HIGH });
      if (isPhysical && step.stage) made.setParent(step.name, `stage ${step.stage}`);
    }
    streams.forEach((stream, at) => { if (names.has(stream.from.step) && names.has(stream.to)) made.setEdge(stream.from.step, stream.to, { stream }, String(at)); });
    layout(made);
    const size = made.graph();
    box = [0, 0, Math.max(size.width || 0, 240), Math.max(size.height || 0, 120)];
    svg.setAttribute("viewBox", box.join(" "));
    fit();
    fill(view);
    steps = new Map();
    edges = [];
    if (isPhysical) for (const stage of plan.stages) {
      const at = made.node(`stage ${stage.number}`);
      if (at && at.width) view.append(s("g.stage", s("rect", { x: at.x - at.width / 2, y: at.y - at.height / 2, width: at.width, height: at.height, rx: 10 }), s("text", { x: at.x - at.width / 2 + 8, y: at.y - at.height / 2 + 14 }, `${stage.number} · ${stage.host}${stage.shuffle ? " · shuffle" : ""}${stage.state ? " · state" : ""}`)));
    }
    for (const each of made.edges()) drawEdge(made.edge(each));
    for (const step of shown) drawStep(step, made.node(step.name));
    paint(lastRates, lastMeasure);
    if (chosen) choose(chosen);
  }

  function fit() {
    const scale = Math.min(Math.max((node.clientWidth || 900) / box[2], isUpright() ? 0.9 : SMALLEST), 1.15);
    svg.style.setProperty("width", `${Math.round(box[2] * scale)}px`);
    svg.style.setProperty("height", `${Math.round(box[3] * scale)}px`);
  }
  const isUpright = () => node.clientWidth < 600;
  let drawn = null, wasUpright = null;
  const watch = new ResizeObserver(() => { if (drawn && wasUpright !== isUpright()) draw(...drawn); else fit(); });
  watch.observe(node);

  function drawEdge({ points, stream }) {
    const path = points.map((p, at) => (at === 0 ? `M${p.x},${p.y}` : at === points.length - 1 ? `L${p.x},${p.y}` : `S${p.x},${p.y} ${(p.x + points[at + 1].x) / 2},${(p.y + points[at + 1].y) / 2}`)).join("");
    const simple = points.length === 3 ? `M${points[0].x},${points[0].y}Q${points[1].x},${points[1].y} ${points[2].x},${points[2].y}` : path;
    const line = s("path.edge", { d: simple, "marker-end": "url(#arrow)" }), flow = s("path.edge-flow", { d: simple }), hit = s("path.edge-hit", { d: simple });
    const open = () => onedge(stream);
    const group = s(`g.stream${stream.shuffle ? ".shuffled" : ""}${stream.feedback ? ".back" : ""}`, { tabindex: "0", role: "button", "aria-label": `stream from ${stream.from.step} to ${stream.to}`, onclick: open, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } } }, line, flow, hit);
    edges.push({ stream, line, flow });
    view.append(group);
  }

  function drawStep(step, at) {
    const face = getComputedStyle(node).fontFamily || "system-ui", room = WIDE - 24;
    const title = s("title", step.name), box_ = s("rect.box", { width: WIDE, height: HIGH, rx: 9 }), figure = s("text.figure", { x: 12, y: 54 }), side = s("text.figure.side", { x: WIDE - 12, y: 54, "text-anchor": "end" });
    const runs = Object.entries(RUNS).find(([word]) => step.runs.startsWith(word))?.[1] || step.runs;
    const open = () => { choose(step.name); onstep(step); };
    const group = s("g.step", { transform: `translate(${at.x - WIDE / 2},${at.y - HIGH / 2})`, tabindex: "0", role: "button", onclick: open, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } } },
      title, box_, s("text.step-name", { x: 12, y: 21 }, fitted(step.name, `650 13px ${face}`, room)), s("text.step-kind", { x: 12, y: 37 }, fitted(`${step.kind === runs ? runs : `${step.kind} · ${runs}`}${step.runs.includes("+state") ? " · state" : ""}`, `10.5px ${face}`, room)), figure, side);
    steps.set(step.name, { group, title, box: box_, figure, side, step });
    view.append(group);
  }

  function choose(name) {
    chosen = name;
    for (const [each, { group }] of steps) group.classList.toggle("chosen", each === name);
  }

  function paint(rates, measure) {
    lastRates = rates;
    lastMeasure = measure;
    const [, value, unit] = MEASURES[measure], dark = isDark();
    const figures = new Map([...steps.keys()].map((name) => [name, ofStepAndParts(rates, name, parts.get(name))]));
    for (const { stream } of edges) { // a step that counts nothing itself takes what is emitted to it
      const to = figures.get(stream.to), from = figures.get(stream.from.step);
      if (to && to.in === undefined && to.out === undefined && from?.out !== undefined) to.in = from.out;
    }
    const values = new Map([...figures].map(([name, each]) => [name, value(each)]));
    const top = Math.max(...values.values(), 1e-9);
    for (const [name, { box: rect, figure, side, group, title, step }] of steps) {
      const share = measure === "busy" ? Math.min(values.get(name), 1) : measure === "ratio" ? Math.min(values.get(name) / 2, 1) : Math.log1p(values.get(name)) / Math.log1p(top);
      const [colour, ink] = shade(values.get(name) > 0 ? Math.max(share, 0.06) : 0, dark);
      rect.style.setProperty("fill", colour);
      group.style.setProperty("--step-ink", ink);
      const f = figures.get(name);
      text(figure, Object.keys(rates).length ? unit(values.get(name)) : "");
      text(title, [`${name}: ${step.kind}`, step.runs, figure.textContent && `${MEASURES[measure][0].toLowerCase()} ${figure.textContent}`, (f.dead || f.skipped) && "puts records aside"].filter(Boolean).join(", "));
      text(side, measure === "rate" && f.in !== undefined && f.out !== undefined ? `in ${number(f.in)}/s` : measure !== "rate" && f.out !== undefined ? `out ${number(f.out)}/s` : "");
      const hurt = (f.dead || 0) + (f.skipped || 0);
      group.classList.toggle("hurt", hurt > 0);
    }
    const out = edges.map(({ stream }) => { const from = figures.get(stream.from.step), to = figures.get(stream.to); return from?.out ?? to?.in ?? from?.in ?? 0; });
    const most = Math.max(...out, 1e-9);
    edges.forEach(({ line, flow }, at) => {
      const width = out[at] > 0 ? 1.5 + 5.5 * (Math.log1p(out[at]) / Math.log1p(most)) : 1.2;
      line.style.setProperty("stroke-width", width.toFixed(2));
      flow.style.setProperty("stroke-width", Math.max(width - 1, 1).toFixed(2));
      flow.style.setProperty("animation-duration", out[at] > 0 ? `${Math.max(0.35, 2.4 - 0.45 * Math.log10(1 + out[at])).toFixed(2)}s` : "0s");
      flow.classList.toggle("moving", out[at] > 0);
    });
  }
  return { node, draw, paint, choose };
}
