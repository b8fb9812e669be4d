// Who changed what.
import { h } from "../lib/dom.js";
import { get, query } from "../lib/api.js";
import { moment } from "../lib/clock.js";
import { table } from "../lib/ui.js";

export function show(root) {
  document.title = "Audit · Penstock";
  let entries = [];
  const search = h("input", { type: "search", placeholder: "who, what, on what   ( / )", "aria-label": "search the audit", oninput: () => draw() });
  const more = h("button", { type: "button", onclick: () => load(entries.at(-1)?.time) }, "Older");
  const list = table({ label: "audit", empty: "No entries.", key: (e) => `${e.time} ${e.actor} ${e.action} ${e.object}`, columns: [{ title: "When", cell: (e) => moment(e.time) }, { title: "Who", cell: (e) => e.actor }, { title: "Did", cell: (e) => e.action }, { title: "On", cell: (e) => e.object }, { title: "Detail", cell: (e) => e.detail }] });
  root.append(h("h1", "Audit"), h("div.row.filters", search), list.node, h("div.row", more));
  const draw = () => list.draw(entries.filter((e) => `${e.actor} ${e.action} ${e.object} ${e.detail}`.toLowerCase().includes(search.value.toLowerCase())));
  async function load(before) {
    const found = await get(`/audit?${query({ limit: 200, before })}`);
    entries = [...entries, ...found.entries];
    more.hidden = found.entries.length < 200;
    draw();
  }
  load();
}
