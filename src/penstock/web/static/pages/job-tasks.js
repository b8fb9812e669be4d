// The tasks of a job: how busy those of each step are, how uneven, what they keep; and how many a rate needs.
import { h, text } from "../lib/dom.js";
import { get, post, query } from "../lib/api.js";
import { bytes, micros, number, rate, whole } from "../lib/format.js";
import { confirmed, notice, table } from "../lib/ui.js";
import { ofStep } from "../lib/graph.js";

const bar = (share) => h("span.meter", { role: "img", "aria-label": `${number(share * 100)} %` }, h("span.meter-fill", { style: { width: `${Math.min(share, 1) * 100}%` } }));

export function tasksTab(root, context) {
  let ended = false, timer = 0, wanted = 0;
  const target = h("input", { id: "target", type: "number", min: "0", step: "any", placeholder: "as now", onchange: () => load() });
  const share = h("input", { id: "share", type: "number", min: "5", max: "100", value: "70", onchange: () => load() });
  const said = h("p", { role: "status" }), inside = h("p", { hidden: true }), act = h("button.primary", { type: "button", hidden: true, onclick: rescale }, "Rescale");
  const list = table({ label: "steps", empty: "No Python step has worked in the last five minutes.", key: (s) => s.step, columns: [
    { title: "Step", class: "name", sort: (s) => s.step, cell: (s) => s.step },
    { title: "Tasks", right: true, sort: (s) => s.tasks, cell: (s) => whole(s.tasks) },
    { title: "Busy", right: true, first: "down", sort: (s) => s.busy, cell: (s) => h("span.with-meter", bar(s.busy), h("span.share-text", `${number(s.busy * 100)} %`)) },
    { title: "A record takes", right: true, sort: (s) => s.micros || 0, cell: (s) => micros(s.micros) },
    { title: "Skew", right: true, sort: (s) => s.skew, cell: (s) => `${number(s.skew)} ×` },
    { title: "Entries", right: true, cell: (s) => number(s.now.kept) }, { title: "State", right: true, cell: (s) => bytes(s.now.bytes) }, { title: "Timers", right: true, cell: (s) => number(s.now.timers) },
    { title: "Needs", right: true, sort: (s) => s.needed, cell: (s) => (s.needed === 1 ? "1 task" : `${whole(s.needed)} tasks`) },
  ] });
  root.append(h("section.card", h("h2", "How many tasks"), h("form.row.tools", { onsubmit: (event) => { event.preventDefault(); load(); } }, h("label.field", { for: "target" }, "Records a second", target), h("label.field", { for: "share" }, "Busy at most, %", share), act), said, inside,
    h("p.muted", "By how long the tasks of each step have worked for the records of the last five minutes. A skew above 2 means that one task gets twice the mean: more tasks do not help a key that is hot.")), list.node);
  let native = [];
  get(`${context.path}/plan`).then((plan) => { native = (plan.stages || []).filter((s) => s.host === "native").flatMap((s) => s.steps); }).catch(() => {});
  async function load() {
    clearTimeout(timer);
    const found = await get(`${context.path}/advice?${query({ rate: target.value, busy: Math.min(Math.max(Number(share.value) || 70, 5), 100) / 100 })}`).catch((error) => { text(said, error.message); return null; });
    if (ended) return;
    if (found) draw(found);
    timer = setTimeout(load, 3000);
  }
  function draw(found) {
    const now = context.state().rates;
    list.draw(found.steps.map((s) => ({ ...s, now: ofStep(now, s.step) })));
    wanted = found.tasks;
    text(said, found.steps.length ? `For ${rate(found.rate)} at most ${number(found.target * 100)} % busy: ${found.tasks === 1 ? "1 task" : `${whole(found.tasks)} tasks`}. It takes ${rate(found.now)} now.` : "Nothing to go by yet.");
    inside.hidden = !found.native;
    if (found.native) text(inside, `Inside Spark: ${number(found.native.used)} of ${whole(found.native.cores)} cores, ${number(found.native.busy * 100)} %. That is its sources, native steps, shuffles and sinks together, and records on their way to Python and back${native.length ? `; native here: ${native.join(", ")}` : ""}.`);
    act.hidden = !context.may() || !found.steps.length || context.state().job?.options?.parallelism === found.tasks;
    text(act, `Rescale to ${found.tasks}`);
  }
  async function rescale() {
    if (!(await confirmed({ title: `Rescale ${context.name} to ${wanted} tasks?`, about: "Another driver starts, whose keyed steps have so many tasks. State moves along.", action: "Rescale" }))) return;
    await post(`${context.path}/rescale`, { tasks: wanted });
    notice(`${context.name}: ${wanted} tasks were asked for`);
  }
  load();
  return () => { ended = true; clearTimeout(timer); };
}
