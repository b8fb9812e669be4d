// The figures of a job over time.
import { h } from "../lib/dom.js";
import { get, query, seg } from "../lib/api.js";
import { bytes, number, seconds } from "../lib/format.js";
import { chart, COLOURS } from "../lib/chart.js";

const SPANS = [["5m", "5 min", 2], ["1h", "1 hour", 10], ["1d", "1 day", 60], ["all", "all", 120]];
export const PHASES = [["plan", "--c-blue"], ["compute", "--c-green"], ["state", "--c-pink"], ["sinks", "--c-orange"], ["log", "--c-sky"], ["spark", "--c-grey"]];
const LOST = [["dead", "--c-red"], ["skipped", "--c-orange"], ["late", "--c-blue"], ["shed", "--c-pink"], ["bad", "--c-sky"]];

// Draws a history into those charts that are there.
export function drawHistory({ times, figures }, charts) {
  const none = times.map(() => 0), per = (name, by) => (figures[name] || none).map((v, at) => (by[at] ? v / by[at] : 0));
  const spans = (figures.span || none).map((v) => Math.max(v, 0.001)), batches = figures.batches || none;
  charts.rows?.set(times, [per("rows", spans)]);
  charts.batches?.set(times, [per("batches", spans)]);
  charts.phases?.set(times, PHASES.map(([name]) => per(`phase:${name}`, batches)));
  const some = (prefix) => Object.keys(figures).filter((name) => name.startsWith(prefix)).slice(0, 8);
  const labelled = (names, cut) => names.map((name, at) => [name.slice(cut), COLOURS[at % COLOURS.length]]);
  const lags = some("lag:"), delays = some("behind:"), lost = LOST.filter(([name]) => figures[name]);
  charts.lag?.set(lags.length ? times : [], lags.map((name) => figures[name]), labelled(lags, 4).map(([name, colour]) => [name.replace(/^([^:]*):(.*)$/, "$2, $1"), colour]));
  charts.behind?.set(delays.length ? times : [], delays.map((name) => figures[name]), labelled(delays, 7));
  charts.busy?.set(figures.busy || figures.native ? times : [], [per("busy", spans), per("native", spans)]);
  const kept = (name) => { let last = null; return (figures[name] || []).map((v) => { if (v !== null) last = v; return last; }); }; // measured every ten seconds
  charts.state?.set(figures.bytes ? times : [], [kept("bytes")]);
  charts.timers?.set(figures.timers || figures.kept ? times : [], [kept("kept"), kept("timers")].filter((c) => c.length), [["entries kept", "--c-blue"], ["timers", "--c-orange"]].filter(([, c], at) => figures[at ? "timers" : "kept"]));
  charts.skew?.set(figures.skew ? times : [], [kept("skew")]);
  charts.lost?.set(lost.length ? times : [], lost.map(([name]) => per(name, spans)), lost);
}

// How long batches took, of so many of them: the mean of each point counts as often as it has batches.
function batchTimes({ batches = [], ...figures }) {
  const means = batches.map((many, at) => [many && PHASES.reduce((sum, [name]) => sum + (figures[`phase:${name}`]?.[at] || 0), 0) / many, many]).filter(([, many]) => many > 0).sort((a, b) => a[0] - b[0]);
  const all = means.reduce((sum, [, many]) => sum + many, 0);
  const at = (share) => { let seen = 0; return means.find(([, many]) => { seen += many; return seen >= share * all; })[0]; };
  return all ? [`a batch takes ${[0.5, 0.95, 0.99].map((share) => `${seconds(at(share))} (p${share * 100})`).join(", ")}`] : [];
}

export function chartsTab(root, context) {
  let span = SPANS.some(([value]) => value === context.rest) ? context.rest : "5m", timer = 0, ended = false;
  const group = `job ${context.name}`;
  const charts = {
    rows: chart("Records a second", { series: [["records", "--c-blue"]], group }),
    phases: chart("Time of a batch, by phase", { series: PHASES, stacked: true, unit: seconds, group }),
    lag: chart("Waiting at sources", { series: [["lag", "--c-orange"]], group }),
    behind: chart("Watermark delay", { series: [["delay", "--c-pink"]], unit: seconds, group }),
    lost: chart("Dead letters, skipped, late, shed: a second", { series: LOST, group }),
    batches: chart("Batches a second", { series: [["batches", "--c-green"]], group }),
    busy: chart("Cores in use", { series: [["Python steps", "--c-red"], ["inside Spark", "--c-grey"]], stacked: true, unit: number, group }),
    skew: chart("Largest skew over tasks", { series: [["skew", "--c-pink"]], unit: number, group }),
    state: chart("State", { series: [["bytes", "--c-blue"]], unit: bytes, group }),
    timers: chart("Entries kept, timers", { series: [["entries kept", "--c-blue"], ["timers", "--c-orange"]], group }),
  };
  const about = h("p.muted");
  const chips = SPANS.map(([value, word]) => h("button.chip", { type: "button", "aria-pressed": String(value === span), onclick: (event) => { span = value; history.replaceState(null, "", `#/jobs/${seg(context.name)}/charts/${value}`); chips.forEach((c) => c.setAttribute("aria-pressed", String(c === event.currentTarget))); load(); } }, word));
  root.append(h("div.row.tools", h("div.chips", { role: "group", "aria-label": "time" }, chips), about), h("div.charts", Object.values(charts).map((each) => each.node)));

  async function load() {
    clearTimeout(timer);
    const found = await get(`${context.path}/history?${query({ span })}`).catch(() => null);
    if (ended) return;
    if (found) draw(found);
    timer = setTimeout(load, SPANS.find(([value]) => value === span)[2] * 1000);
  }
  const draw = (found) => { drawHistory(found, charts); about.textContent = [`${found.times.length} points of ${found.width} s`, ...batchTimes(found.figures)].join(" · "); };
  load();
  return () => { ended = true; clearTimeout(timer); Object.values(charts).forEach((each) => each.close()); };
}
