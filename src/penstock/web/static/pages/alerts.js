// Alerts: what fires, the rules, and silence.
import { h, text } from "../lib/dom.js";
import { get, post, remove, replace, seg } from "../lib/api.js";
import { moment, now } from "../lib/clock.js";
import { ago, number, span } from "../lib/format.js";
import { badge, confirmed, notice, table, tile } from "../lib/ui.js";

const MEASURES = { lag: ["records that wait", ""], failures: ["failures in a row", ""], silence: ["seconds without a batch", " s"], late: ["late records", " %"], dead: ["dead letters", " %"], disk: ["disk used", " %"] };
const SILENCES = [["3600", "for an hour"], ["14400", "for four hours"], ["86400", "for a day"], ["604800", "for a week"]];
const GRAVE = { critical: "hurt", warning: "soon", info: "rest" };
const isSilent = (rule) => rule.silent_until > now();

export function show(root, _, me) {
  document.title = "Alerts · Penstock";
  let ended = false, rules = [];
  const mayOperate = ["operator", "admin"].includes(me.role), isAdmin = me.role === "admin";
  const tiles = { firing: tile("Firing"), rules: tile("Rules"), silent: tile("Silenced") };
  const firing = table({ label: "firing", empty: "Nothing fires.", key: (n) => `${n.rule} ${n.job}`, columns: [
    { title: "Severity", sort: (n) => n.severity, cell: (n) => badge(n.severity, GRAVE[n.severity]) }, { title: "Alert", class: "name", first: true, sort: (n) => n.rule, cell: (n) => n.rule },
    { title: "Job", cell: (n, cell) => (cell.firstChild ? undefined : n.job ? h("a", { href: `#/jobs/${seg(n.job)}` }, n.job) : "the machine") },
    { title: "Since", right: true, cell: (n) => ago(n.since) }, { title: "What", class: "note", cell: (n) => n.text.replace(/^firing: [^:]*: /, "") } ] });
  const list = table({ label: "alert rules", empty: "No rules. Be told of a job that lags, fails, says nothing, or loses records.", key: (r) => r.name, columns: [
    { title: "Alert", class: "name", first: true, sort: (r) => r.name, cell: (r) => r.name }, { title: "When", cell: (r) => `${MEASURES[r.measure]?.[0] || r.measure} above ${number(r.above)}${MEASURES[r.measure]?.[1] || ""}${r.seconds ? ` for ${span(r.seconds)}` : ""}` },
    { title: "Jobs", cell: (r) => r.jobs }, { title: "Severity", cell: (r) => badge(r.severity, GRAVE[r.severity]) }, { title: "Told", class: "note", cell: (r) => r.to.join(", ") },
    { title: "Silence", cell: (r) => (isSilent(r) ? badge(`until ${moment(r.silent_until).slice(5, 16)}`, "soon") : "") },
    { title: "", cell: (r, cell) => { const key = `${isSilent(r)}`; if (cell.made === key) return undefined; cell.made = key; return mayOperate ? h("div.row", h("button", { type: "button", onclick: () => silence(r) }, isSilent(r) ? "End silence" : "Silence"), isAdmin && h("button.danger", { type: "button", onclick: () => drop(r) }, "Remove")) : ""; } },
  ] });
  const name = h("input", { id: "alert-name", required: true, pattern: "[a-z0-9][a-z0-9._\\-]{0,62}", placeholder: "too-far-behind" }), measure = h("select", { id: "alert-measure" }, Object.entries(MEASURES).map(([value, [word]]) => h("option", { value }, word)));
  const above = h("input", { id: "alert-above", type: "number", min: "0", step: "any", required: true, value: "10000" }), lasting = h("input", { id: "alert-seconds", type: "number", min: "0", max: "604800", value: "60" }), jobs = h("input", { id: "alert-jobs", value: "*" });
  const to = h("input", { id: "alert-to", value: "log", placeholder: "log, https://…, mailto:…" }), severity = h("select", { id: "alert-severity" }, ["warning", "critical", "info"].map((word) => h("option", { value: word }, word)));
  root.append(h("h1", "Alerts"), h("div.tiles.small", Object.values(tiles).map((each) => each.node)), h("h2", "Firing"), firing.node, h("h2", "Rules"), list.node,
    isAdmin && h("form.card.row.tools", { onsubmit: make }, h("label.field", { for: "alert-name" }, "Name", name), h("label.field", { for: "alert-measure" }, "Measure", measure), h("label.field", { for: "alert-above" }, "Above", above), h("label.field", { for: "alert-seconds" }, "For seconds", lasting), h("label.field", { for: "alert-jobs" }, "Jobs", jobs), h("label.field", { for: "alert-to" }, "Told", to), h("label.field", { for: "alert-severity" }, "Severity", severity), h("button.primary", { type: "submit" }, "Set")));
  async function load() {
    const found = await get("/alerts");
    if (ended) return;
    rules = found.rules;
    firing.draw(found.firing);
    list.draw(rules);
    tiles.firing.set(found.firing.length, [...new Set(found.firing.map((n) => n.rule))].slice(0, 2).join(", "));
    tiles.rules.set(rules.length);
    tiles.silent.set(rules.filter(isSilent).length);
  }
  async function make(event) {
    event.preventDefault();
    try { await replace(`/alerts/${seg(name.value)}`, { measure: measure.value, above: Number(above.value), seconds: Number(lasting.value || 0), jobs: jobs.value || "*", to: to.value.split(",").map((each) => each.trim()).filter(Boolean), severity: severity.value }); } catch (error) { notice(error.message, "bad"); return; }
    notice(`set ${name.value}`);
    load();
  }
  async function silence(r) {
    if (isSilent(r)) { await post(`/alerts/${seg(r.name)}/silence`, { seconds: 0 }); load(); return; }
    const found = await confirmed({ title: `Silence ${r.name}?`, about: "Nobody is told. It is looked at and shown here all the same.", action: "Silence", field: { label: "How long", options: SILENCES, value: "3600" } });
    if (found !== null) { await post(`/alerts/${seg(r.name)}/silence`, { seconds: Number(found) }); notice(`${r.name} is silent`); load(); }
  }
  async function drop(r) {
    if (!(await confirmed({ title: `Remove ${r.name}?`, about: "Nobody is told of it any more.", action: "Remove", danger: true }))) return;
    await remove(`/alerts/${seg(r.name)}`);
    load();
  }
  load();
  const timer = setInterval(() => load().catch(() => {}), 3000);
  return () => { ended = true; clearInterval(timer); };
}
