// Pools: their limits, what is taken of them and by whom, and which jobs wait for what.
import { fill, h } from "../lib/dom.js";
import { get, remove, replace, seg } from "../lib/api.js";
import { bytes, many, whole } from "../lib/format.js";
import { confirmed, notice, table } from "../lib/ui.js";

const size = (mebibytes) => bytes(mebibytes * 2 ** 20);

function share(label, used, most, shown = whole) {
  const part = most ? Math.min(used / most, 1) : 0;
  return h("div.share", h("div.row", h("span", label), h("div.spacer"), h("span.muted", most ? `${shown(used)} of ${shown(most)}` : `${shown(used)}, no limit`)), h("div.meter.wide", { role: "img", "aria-label": most ? `${Math.round(part * 100)} % taken` : "no limit" }, h("span.meter-fill", { style: { width: `${part * 100}%` } })));
}

export function show(root, _, me) {
  document.title = "Pools · Penstock";
  let ended = false, before = "";
  const isAdmin = me.role === "admin", cards = h("div.columns");
  const queue = table({ label: "queue", empty: "No job waits.", key: (q) => `${q.pool} ${q.job}`, columns: [
    { title: "Pool", cell: (q) => q.pool }, { title: "Job", class: "name", cell: (q, cell) => (cell.firstChild ? undefined : h("a", { href: `#/jobs/${seg(q.job)}` }, q.job)) }, { title: "Owner", cell: (q) => q.owner }, { title: "Priority", right: true, cell: (q) => whole(q.priority) }, { title: "Waits because", class: "note", cell: (q) => q.why || "it is about to start" } ] });
  const fields = ["name", "cores", "memory", "owner-cores", "owner-memory"].map((id) => h("input", { id: `pool-${id}`, ...(id === "name" ? { required: true, pattern: "[a-z0-9][a-z0-9._\\-]{0,62}", placeholder: "default" } : { type: "number", min: "1", placeholder: "no limit" }) }));
  const words = ["Pool", "Cores", "Memory, MiB", "Cores of one owner", "Memory of one owner, MiB"];
  root.append(h("h1", "Pools"), cards, h("h2", "Queue"), queue.node, isAdmin && h("form.card.row.tools", { onsubmit: make }, fields.map((field, at) => h("label.field", { for: field.id }, words[at], field)), h("button.primary", { type: "submit" }, "Set limits")));
  async function load() {
    const found = (await get("/pool-uses")).pools;
    if (ended) return;
    queue.draw(found.flatMap((pool) => pool.queue.map((q) => ({ ...q, pool: pool.name }))));
    const now = JSON.stringify(found);
    if (now === before) return;
    before = now;
    fill(cards, found.map(card));
  }
  const card = (pool) => h("section.card", h("div.row", h("h2", pool.name), h("span.muted", `${many(pool.used.jobs, "job runs", "jobs run")}, ${many(pool.queue.length, "waits", "wait")}`), h("div.spacer"), isAdmin && (pool.cores || pool.memory || pool.owner_cores || pool.owner_memory) && h("button.danger", { type: "button", onclick: () => drop(pool) }, "Remove")),
    share("Cores", pool.used.cores, pool.cores), share("Memory", pool.used.memory, pool.memory, size),
    Object.entries(pool.owners).map(([owner, taken]) => [h("h3", owner), share("Cores", taken.cores, pool.owner_cores), share("Memory", taken.memory, pool.owner_memory, size)]));
  async function make(event) {
    event.preventDefault();
    const [name, cores, memory, ownerCores, ownerMemory] = fields.map((field) => field.value), value = (text) => (text ? Number(text) : null);
    try { await replace(`/pools/${seg(name)}`, { cores: value(cores), memory: value(memory), owner_cores: value(ownerCores), owner_memory: value(ownerMemory) }); notice(`set ${name}`); load(); } catch (error) { notice(error.message, "bad"); }
  }
  async function drop(pool) {
    if (!(await confirmed({ title: `Remove pool ${pool.name}?`, about: "Its limits go. A pool that has jobs stays.", action: "Remove", danger: true }))) return;
    try { await remove(`/pools/${seg(pool.name)}`); load(); } catch (error) { notice(error.message, "bad"); }
  }
  load();
  const timer = setInterval(() => load().catch(() => {}), 2000);
  return () => { ended = true; clearInterval(timer); };
}
