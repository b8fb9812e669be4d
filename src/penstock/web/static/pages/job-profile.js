// Where the time of a job goes: a flame graph of the driver and its Python workers, while somebody looks; and where they are at this moment.
import { fill, h, text } from "../lib/dom.js";
import { follow, post } from "../lib/api.js";
import { number, seconds, whole } from "../lib/format.js";
import { copied } from "../lib/ui.js";
import { flame } from "../lib/flame.js";

export function profileTab(root, context) {
  let end = () => {}, last = null, part = "workers", began = 0;
  const about = h("p.muted", { role: "status" }), stacks = h("section.card", { hidden: true });
  const start = h("button.primary", { type: "button", onclick: () => (start.dataset.on ? stop() : look()) }, "Profile"), ask = h("button", { type: "button", onclick: dump }, "Stack dump");
  const search = h("input", { type: "search", placeholder: "function   ( / )", "aria-label": "search functions", oninput: () => picture.find(search.value) });
  const waiting = h("input", { type: "checkbox", id: "waiting", onchange: () => draw() });
  const chips = ["workers", "driver"].map((word) => h("button.chip", { type: "button", "aria-pressed": String(word === part), onclick: () => { part = word; chips.forEach((c) => c.setAttribute("aria-pressed", String(c.textContent === word))); draw(); } }, word));
  const picture = flame();
  root.append(h("section.card", h("div.row.tools", start, ask, h("div.chips", { role: "group", "aria-label": "processes" }, chips), search, h("label.inline", waiting, "threads that wait")), about, picture.node,
    h("p.muted", "The stacks are looked at a hundred times a second, in the driver by a thread of its own and in workers while they run a step, as long as this page looks. A box is as wide as its share of the time; choose one to see what is above it. Steps that run inside Spark are not Python, and are not here.")), stacks);
  function look() {
    start.dataset.on = "1";
    text(start, "Stop");
    began = Date.now() / 1000;
    text(about, "looking");
    end = follow(`/live${context.path}/profile`, "profile", (found) => { if (found.since && found.since >= began - 15) { last = found; draw(); } });
  }
  function stop() { end(); end = () => {}; delete start.dataset.on; text(start, "Profile"); }
  function draw() {
    if (!last) return;
    const found = Object.entries(last[part] || {}).map(([stack, many]) => [stack.split(";"), many]);
    const kept = found.filter(([names]) => waiting.checked || names[names.length - 1] !== "(waiting)" && names[0] !== "(waiting)").map(([names, many]) => [names.filter((name) => name !== "(waiting)"), many]);
    const all = kept.reduce((sum, [, many]) => sum + many, 0);
    text(about, all ? `${whole(all)} samples in ${seconds(last.seconds)}: ${number(all / 100)} s of ${part === "driver" ? "threads of the driver" : "workers"}` : part === "workers" ? `no worker was seen in ${seconds(last.seconds)}: no batch with a Python step has ended since` : `every thread of the driver waits, in ${seconds(last.seconds)}`);
    picture.draw(kept);
    picture.find(search.value);
  }
  async function dump() {
    try {
      const found = await post(`${context.path}/stacks`);
      stacks.hidden = false;
      fill(stacks, h("div.row", h("h2", "Stacks of the driver and its workers"), copied(found.stacks)), h("pre.trace", { tabindex: "0", "aria-label": "stacks" }, found.stacks || "no answer"));
      stacks.scrollIntoView({ block: "nearest" });
    } catch (error) { stacks.hidden = false; fill(stacks, h("p.bad-text", error.message)); }
  }
  const ended = context.onstate(() => { start.disabled = ask.disabled = !context.may(); if (!context.may()) text(about, "Profiles are for those who may change the job."); });
  return () => { end(); ended(); };
}
