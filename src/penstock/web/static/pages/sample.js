// A live sample of a stream, with a filter in the language of expressions, as a table or a chart of its data: a line, bars, a map of keys.
import { fill, h, text } from "../lib/dom.js";
import { follow, query } from "../lib/api.js";
import { bars, keyMap, lines, SHOWS } from "../lib/data-charts.js";

const KEPT = 60;

export function liveSample(root, context, stream) {
  if (!context.may()) { root.append(h("p.muted", "Records are for those who may change the job.")); return () => {}; }
  let end = () => {}, rows = [], picture = null, names = [], numbers = [];
  const where = h("input", { type: "search", id: "sample-where", placeholder: "n > 3", "aria-label": "condition" });
  const start = h("button", { type: "submit" }, "Look"), said = h("p.bad-text", { role: "alert" }), about = h("p.muted"), out = h("div");
  const how = h("select", { id: "sample-how", "aria-label": "show as", onchange: () => { fill(field); choose(); } }, Object.entries(SHOWS).map(([value, word]) => h("option", { value }, word)));
  const field = h("select", { id: "sample-field", "aria-label": "field", hidden: true, onchange: () => choose() }), sum = h("select", { id: "sample-sum", "aria-label": "height of bars", hidden: true, onchange: () => choose() });
  root.append(h("h3", "Live sample"), h("form.row", { onsubmit: (event) => { event.preventDefault(); look(); } }, where, start, how, field, sum), said, about, out);

  async function look() {
    end();
    text(said, "");
    rows = [];
    const wanted = query({ step: stream.from.step, port: stream.from.port || "out", where: where.value });
    const path = `/live${context.path}/sample?${wanted}`;
    try { await check(path); } catch (error) { text(said, error.message); return; }
    text(about, "waiting for a batch");
    end = follow(path, "sample", take);
  }
  // A stream of events says nothing of why it was refused: ask once as a plain request.
  async function check(path) {
    const answer = await fetch(`/api/v1${path}&events=1`, { headers: { "x-penstock-console": "1" } });
    if (answer.ok) { await answer.body?.cancel(); return; }
    throw new Error((await answer.json()).detail);
  }
  const offered = (select, values) => { if ([...select.options].map((o) => o.value).join("\n") !== values.map(([v]) => v).join("\n")) { const before = select.value; fill(select, values.map(([value, word]) => h("option", { value }, word))); if (values.some(([v]) => v === before)) select.value = before; } };
  function fields() {
    const isLine = how.value === "line";
    const keys = [...names.filter((name) => !numbers.includes(name)), ...numbers];
    offered(field, (isLine ? numbers : keys).map((name) => [name, isLine ? `of ${name}` : `by ${name}`]));
    offered(sum, [["", "records"], ...numbers.map((name) => [name, `sum of ${name}`])]);
    field.hidden = how.value === "table";
    sum.hidden = how.value !== "bars";
  }
  function choose() {
    fields();
    picture?.close();
    picture = how.value === "table" || !field.value ? null : how.value === "line" ? lines(field.value) : how.value === "bars" ? bars(field.value, sum.value) : keyMap(field.value);
    fill(out, picture?.node);
    if (picture) picture.add(rows); else draw();
  }
  function take(found) {
    if (found.batch === null) return;
    rows = [...found.rows, ...rows].slice(0, KEPT);
    text(about, `batch ${found.batch}: ${found.rows.length} records`);
    names = Object.keys(rows[0] || {});
    numbers = names.filter((name) => rows.some((r) => typeof r[name] === "number"));
    const had = field.value;
    fields();
    if (how.value !== "table" && (!picture || field.value !== had)) choose();
    else if (picture) picture.add(found.rows); else draw();
  }
  function draw() {
    fill(out, h("div.table-box.plain-table", { tabindex: "0", role: "region", "aria-label": "sample" }, h("table", h("thead", h("tr", names.map((name) => h("th", { scope: "col" }, name)))), h("tbody", rows.map((r) => h("tr", names.map((name) => h("td", { "data-label": name }, r[name] === null ? "null" : String(r[name])))))))));
  }
  return () => { end(); picture?.close(); };
}
