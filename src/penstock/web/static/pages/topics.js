// The topics that jobs read and write: offsets, sizes, lag; the newest records, with a filter; a record by hand.
import { fill, h, text } from "../lib/dom.js";
import { get, post, query, seg } from "../lib/api.js";
import { moment } from "../lib/clock.js";
import { bytes, number, whole } from "../lib/format.js";
import { badge, notice, table } from "../lib/ui.js";

const lagOf = (topic) => topic.groups.reduce((sum, g) => sum + g.lag, 0);

export function show(root, { log, topic }, me) {
  return topic ? one(root, log, topic, me) : all(root);
}

function all(root) {
  document.title = "Topics · Penstock";
  let ended = false;
  const list = table({ label: "topics", empty: "No job reads or writes a topic.", key: (t) => `${t.log} ${t.topic}`, onrow: (t) => { location.hash = link(t); }, columns: [
    { title: "Topic", class: "name", first: true, sort: (t) => t.topic, cell: (t, cell) => (cell.firstChild ? undefined : h("a", { href: link(t) }, t.topic)) },
    { title: "Where", cell: (t) => (t.kind === "kafka" ? h("span", badge("Kafka", "soon"), ` ${t.where}`) : badge("log")) },
    { title: "Jobs", cell: (t) => t.jobs.join(", ") },
    { title: "Partitions", right: true, sort: (t) => t.partitions.length, cell: (t) => number(t.partitions.length) },
    { title: "Records", right: true, sort: (t) => t.records, cell: (t) => number(t.records) },
    { title: "Size", right: true, sort: (t) => t.bytes, cell: (t) => bytes(t.bytes) },
    { title: "Groups", cell: (t) => [...new Set(t.groups.map((g) => g.group))].join(", ") },
    { title: "Lag", right: true, sort: lagOf, cell: (t) => (t.groups.length ? number(lagOf(t)) : "–") },
    { title: "Kept", cell: (t) => (t.kind === "kafka" ? "" : t.cleanup === "compact" ? "last of each key" : t.retention_ms ? `${whole(t.retention_ms / 3600000)} h` : "for ever") },
    { title: "Damage", right: true, cell: (t) => (t.damage ? number(t.damage) : "") },
  ] });
  const wrong = h("div", { role: "status" });
  root.append(h("h1", "Topics"), wrong, list.node);
  const load = async () => { const found = await get("/logs"); if (ended) return; list.draw(found.logs.flatMap((each) => each.topics.map((t) => ({ ...t, log: each.log, jobs: each.jobs, kind: each.kind, where: each.name })))); const said = found.logs.filter((each) => each.error).map((each) => `${each.name || "log"}: ${each.error}`); if (said.join() !== wrong.textContent) fill(wrong, said.map((line) => h("p.bad-text", line))); };
  load();
  const timer = setInterval(() => load().catch(() => {}), 2000);
  return () => { ended = true; clearInterval(timer); };
}

const link = (t) => `#/topics/${seg(t.log)}/${seg(t.topic)}`;

function one(root, log, topic, me) {
  document.title = `${topic} · Penstock`;
  let ended = false, rows = [];
  const path = `/logs/${seg(log)}/topics/${seg(topic)}/records`;
  const partitions = table({ label: "partitions", empty: "No such topic.", key: (p) => p.partition, columns: [{ title: "Partition", right: true, cell: (p) => p.partition }, { title: "First", right: true, cell: (p) => whole(p.start) }, { title: "End", right: true, cell: (p) => whole(p.end) }, { title: "Size", right: true, cell: (p) => bytes(p.bytes) }, { title: "Segments", right: true, cell: (p) => p.segments ?? "–" }] });
  const groups = table({ label: "groups", empty: "No group has committed offsets.", key: (g) => `${g.group} ${g.partition}`, columns: [{ title: "Group", cell: (g) => g.group }, { title: "Partition", right: true, cell: (g) => g.partition }, { title: "Committed", right: true, cell: (g) => whole(g.committed) }, { title: "End", right: true, cell: (g) => whole(g.end) }, { title: "Lag", right: true, cell: (g) => whole(g.lag) }] });
  const where = h("input", { type: "search", id: "where", placeholder: "total > 100 and kind = 'order'   ( / )", "aria-label": "filter", onchange: () => peek() });
  const follow = h("input", { type: "checkbox", id: "follow" });
  const said = h("p.bad-text", { role: "alert" }), records = h("div"), where_ = h("span.muted");
  const key = h("input", { id: "key", placeholder: "may be empty" }), value = h("textarea", { id: "value", rows: 3, placeholder: "{\"author\": \"ada\"}" });
  root.append(h("nav.crumbs", { "aria-label": "you are here" }, h("a", { href: "#/topics" }, "Topics"), " / ", h("span", topic)), h("div.row", h("h1", topic), where_),
    h("div.columns", h("section", h("h2", "Partitions"), partitions.node), h("section", h("h2", "Groups"), groups.node)),
    h("section.card", h("h2", "Newest records"), h("form.row.tools", { onsubmit: (event) => { event.preventDefault(); peek(); } }, where, h("button", { type: "submit" }, "Look"), h("label.inline", follow, "follow")), said, records),
    me.role !== "viewer" && h("section.card", h("h2", "Put a record"), h("form.stack", { onsubmit: send }, h("label.field", { for: "key" }, "Key", key), h("label.field", { for: "value" }, "Value", value), h("div.row.end", h("button.primary", { type: "submit" }, "Put"))), ));
  async function load() {
    const home = (await get("/logs")).logs.find((each) => each.log === log), found = home?.topics.find((each) => each.topic === topic);
    if (ended) return;
    text(where_, home?.kind === "kafka" ? `Kafka, ${home.name}${home.error ? `: ${home.error}` : ""}` : "");
    partitions.draw(found ? found.partitions : []);
    groups.draw(found ? found.groups : []);
  }
  async function peek() {
    try {
      rows = (await get(`${path}?${query({ where: where.value, limit: 50 })}`)).records;
      if (ended) return;
      text(said, "");
      draw();
    } catch (error) { text(said, error.message); }
  }
  function draw() {
    const parsed = rows.map((r) => { try { const v = JSON.parse(r.value); return v && typeof v === "object" && !Array.isArray(v) ? v : null; } catch { return null; } });
    const names = [...new Set(parsed.flatMap((v) => (v ? Object.keys(v) : [])))].slice(0, 12);
    const cells = (r, v) => (v ? names.map((name) => h("td", v[name] === undefined ? "" : typeof v[name] === "object" ? JSON.stringify(v[name]) : String(v[name]))) : [h("td", { colspan: String(Math.max(names.length, 1)) }, r.value ?? "(deleted)")]);
    fill(records, rows.length === 0 ? h("p.empty", "No records.") : h("div.table-box.plain-table", { tabindex: "0", role: "region", "aria-label": "records" }, h("table", h("thead", h("tr", ["When", "At", "Key", ...(names.length ? names : ["Value"])].map((name) => h("th", { scope: "col" }, name)))), h("tbody", rows.map((r, at) => h("tr", h("td", moment(r.timestamp / 1000)), h("td", `${r.partition}:${r.offset}`), h("td", r.key ?? ""), cells(r, parsed[at])))))));
  }
  async function send(event) {
    event.preventDefault();
    let made;
    try { made = await post(path, { value: value.value, key: key.value === "" ? null : key.value }); } catch (error) { notice(error.message, "bad"); return; }
    notice(`put at ${made.partition}:${made.offset}`);
    peek();
  }
  load();
  peek();
  const timer = setInterval(() => { load().catch(() => {}); if (follow.checked) peek(); }, 2000);
  return () => { ended = true; clearInterval(timer); };
}
