// A few messages of spouts, followed through the bolts: which task took which tuple, and what became of the message.
import { fill, h, text } from "../lib/dom.js";
import { follow } from "../lib/api.js";
import { badge } from "../lib/ui.js";

const STATES = { done: ["acked", "go"], failed: ["failed", "hurt"], open: ["open", "soon"] };
const KEPT = 30;

export function traceTab(root, context) {
  let end = () => {}, known = new Map(), chosen = "";
  const about = h("span.muted"), list = h("div.chips", { role: "group", "aria-label": "messages" }), out = h("div");
  const start = h("button.primary", { type: "button", onclick: () => (start.dataset.on ? stop() : look()) }, "Trace");
  root.append(h("section.card", h("div.row.tools", start, about), h("p.muted", "Of each batch a few messages are followed, with every tuple that stems from them, in every bolt that takes one. Nothing is followed when nobody looks."), list, out));
  function look() {
    start.dataset.on = "1";
    text(start, "Stop");
    text(about, "waiting for a batch");
    end = follow(`/live${context.path}/trace`, "trace", take);
  }
  function stop() { end(); end = () => {}; delete start.dataset.on; text(start, "Trace"); text(about, ""); }
  function take(found) {
    if (!found.traces) return;
    text(about, `batch ${found.batch}: ${found.traces.length} messages`);
    for (const each of found.traces) known.set(each.root, { ...each, batch: found.batch });
    known = new Map([...known].slice(-KEPT));
    if (!known.has(chosen)) chosen = found.traces[0]?.root || "";
    draw();
  }
  function draw() {
    fill(list, [...known.values()].reverse().map((each) => h("button.chip", { type: "button", "aria-pressed": String(each.root === chosen), title: `message ${each.root} of batch ${each.batch}`, onclick: () => { chosen = each.root; draw(); } }, `${each.root.slice(-6)} · ${each.tuples.length}${each.state === "failed" ? " ✗" : ""}`)));
    const one = known.get(chosen);
    fill(out, one && tree(one));
  }
  if (!context.state().job) text(about, "");
  const ended = context.onstate(() => { start.disabled = !context.may(); if (!context.may()) text(about, "Records are for those who may change the job."); });
  return () => { end(); ended(); };
}

// Components below those whose tuples they took; of each the tuples, by task.
function tree(one) {
  const [word, kind] = STATES[one.state] || STATES.open, steps = new Map(), seen = new Set();
  for (const t of one.tuples) steps.set(`${t.source}\n${t.step}`, [...(steps.get(`${t.source}\n${t.step}`) || []), t]);
  const takers = new Set(one.tuples.map((t) => t.step)), roots = [...new Set(one.tuples.map((t) => t.source))].filter((name) => !takers.has(name));
  const below = (name) => [...steps].filter(([key]) => key.split("\n")[0] === name && !seen.has(key)).map(([key, tuples]) => {
    seen.add(key);
    const to = key.split("\n")[1];
    return h("li", h("div.row", h("strong", to), h("span.muted", `${tuples.length} tuples of stream ${[...new Set(tuples.map((t) => t.stream))].join(", ")}, in tasks ${[...new Set(tuples.map((t) => t.task))].sort((a, b) => a - b).join(", ")}`)),
      h("ul.tuples", tuples.slice(0, 20).map((t) => h("li", h("span.task", `task ${t.task}`), h("code", Object.entries(t.values).map(([name, value]) => `${name}=${value}`).join(", ")))), tuples.length > 20 && h("li.muted", `and ${tuples.length - 20} more`)),
      h("ul.tree", below(to)));
  });
  return [h("div.row", h("h2", `Message ${one.root}`), badge(word, kind), h("span.muted", `batch ${one.batch}, ${one.tuples.length} tuples taken`)), h("ul.tree", (roots.length ? roots : [""]).map((name) => h("li", h("strong", name || "spout"), h("ul.tree", below(name)))))];
}
