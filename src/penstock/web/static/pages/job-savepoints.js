// The checkpoints of a job: the versions of its state as batches leave them, and the savepoints.
import { h, text } from "../lib/dom.js";
import { get, query } from "../lib/api.js";
import { moment, written } from "../lib/clock.js";
import { bytes, many, seconds, whole } from "../lib/format.js";
import { spark, table } from "../lib/ui.js";

export function savepointsTab(root, context) {
  let ended = false;
  const list = table({ label: "savepoints", empty: "No savepoints. The button above takes one.", key: (p) => p.savepoint, columns: [
    { title: "Savepoint", class: "name", cell: (p) => String(p.savepoint).split("/").at(-1) }, { title: "Made", cell: (p) => written(p.made) }, { title: "Version", right: true, cell: (p) => whole(p.version) },
    { title: "Files", right: true, cell: (p) => whole(p.files) }, { title: "Size", right: true, cell: (p) => bytes(p.bytes) } ] });
  const versions = table({ label: "checkpoints", empty: "No batch was committed yet.", key: (c) => c.version, columns: [
    { title: "Version", right: true, cell: (c) => whole(c.version) }, { title: "When", cell: (c) => (c.time ? moment(c.time) : "–") }, { title: "After", right: true, cell: (c) => (c.after === null ? "" : seconds(c.after)) },
    { title: "Entries", right: true, cell: (c) => whole(c.rows) }, { title: "State", right: true, cell: (c) => bytes(c.bytes) }, { title: "Files", right: true, cell: (c) => whole(c.files) },
    { title: "Written", right: true, cell: (c) => bytes(c.written_bytes) }, { title: "Steps", class: "note", cell: (c) => Object.entries(c.steps || {}).map(([step, size]) => `${step} ${bytes(size.bytes)}`).join(", ") } ] });
  versions.node.classList.add("tall");
  const about = h("p.muted"), line = h("span");
  root.append(h("h2", "Checkpoints"), h("div.row", line, about), versions.node, h("h2", "Savepoints"),
    h("p.muted", "A savepoint has the state and the offsets of a job at one batch. A flow starts from it with ", h("code", "penstock run FLOW --from NAME"), "."), list.node);
  const summary = (found) => {
    line.parentElement.hidden = !found.length;
    const gaps = found.map((c) => c.after).filter((v) => v !== null).sort((a, b) => a - b), at = (share) => gaps[Math.min(Math.floor(gaps.length * share), gaps.length - 1)];
    line.replaceChildren(spark([...found].reverse().map((c) => c.written_bytes || 0)));
    text(about, gaps.length ? `${many(found.length, "version")}; from one to the next ${seconds(at(0.5))} (p50), ${seconds(at(0.95))} (p95), ${seconds(at(0.99))} (p99)` : many(found.length, "version"));
  };
  const load = async () => {
    const [kept, made] = await Promise.all([get(`${context.path}/checkpoints?${query({ limit: 100 })}`), get(`${context.path}/savepoints`)]);
    if (ended) return;
    const found = kept.checkpoints.map((c, at) => ({ ...c, after: c.time && kept.checkpoints[at + 1]?.time ? c.time - kept.checkpoints[at + 1].time : null }));
    versions.draw(found);
    summary(found);
    list.draw([...made.savepoints].reverse());
  };
  load();
  const timer = setInterval(() => load().catch(() => {}), 3000);
  return () => { ended = true; clearInterval(timer); };
}
