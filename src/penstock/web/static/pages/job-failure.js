// What ended a job last, with the user's own traceback; and what happened to it.
import { fill, h } from "../lib/dom.js";
import { get, post, query } from "../lib/api.js";
import { moment } from "../lib/clock.js";
import { ago } from "../lib/format.js";
import { copied, table } from "../lib/ui.js";

export function failureTab(root, context) {
  const body = h("section.card"), stacks = h("section.card", { hidden: true }), ask = h("button", { type: "button", onclick: dump }, "Stack dump");
  root.append(h("div.row.tools", ask, h("span.muted", "where the threads of the driver are at this moment; the job runs on")), body, stacks);
  async function dump() {
    const found = await post(`${context.path}/stacks`);
    stacks.hidden = false;
    fill(stacks, h("div.row", h("h2", "Stacks of the driver"), copied(found.stacks)), h("pre.trace", { tabindex: "0", "aria-label": "stacks" }, found.stacks || "no answer"));
  }
  const ended = context.onstate(() => { ask.hidden = !context.may(); });
  get(`${context.path}/failure`).then((found) => {
    if (!found.error) { fill(body, h("p.empty", "No driver of this job has failed.")); return; }
    const trace = found.traceback || found.message || "";
    fill(body, h("h2", found.error), h("p.muted", found.time ? `${moment(found.time)}, ${ago(found.time)} ago` : ""),
      h("dl.facts", [["step", found.step], ["record", found.record], ["position", found.position], ["written at", found.line]].filter(([, value]) => value).map(([name, value]) => [h("dt", name), h("dd", h("code", value))])),
      h("h3", "Message"), h("pre.trace", { tabindex: "0", "aria-label": "message" }, found.message),
      found.traceback && [h("div.row", h("h3", "Traceback"), copied(trace)), h("pre.trace", { tabindex: "0", "aria-label": "traceback" }, found.traceback)]);
  });
  return ended;
}

export function eventsTab(root, context) {
  let ended = false, timer = 0;
  const list = table({ label: "events", empty: "Nothing has happened yet.", key: (e) => `${e.time} ${e.what}`, columns: [{ title: "When", cell: (e) => moment(e.time) }, { title: "What", cell: (e) => e.what }, { title: "Detail", cell: (e) => e.detail }] });
  root.append(list.node);
  const load = async () => {
    const found = await get(`${context.path}/events?${query({ limit: 500 })}`).catch(() => null);
    if (found && !ended) list.draw(found.events);
    if (!ended) timer = setTimeout(load, 3000);
  };
  load();
  return () => { ended = true; clearTimeout(timer); };
}
