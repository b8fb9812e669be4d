// A flow as text: see what it would do, then run it as a job.
import { fill, h, text } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { many } from "../lib/format.js";
import { graph } from "../lib/graph.js";
import { confirmed, notice } from "../lib/ui.js";

const EXAMPLES = {
  "flow.sql": `CREATE TABLE ticks (\`timestamp\` TIMESTAMP, \`value\` BIGINT)
WITH ('connector' = 'rate', 'rows-per-second' = '10');

CREATE TABLE out (digit BIGINT, many BIGINT)
WITH ('connector' = 'print');

INSERT INTO out
SELECT \`value\` % 10 AS digit, count(*) AS many
FROM ticks
GROUP BY \`value\` % 10;
`,
  "flow.py": `import penstock as ps

flow = ps.Flow("ticks")
ticks = flow.source("ticks", ps.rate(10))
ticks.where("even", "value % 2 = 0").sink("out", ps.console())
`,
  "flow.yaml": `flow: ticks
steps:
  - name: ticks
    source: {rate: {rows_per_second: 10}}
  - name: even
    from: ticks
    where: value % 2 = 0
  - name: out
    from: even
    sink: {console: {}}
`,
};

export function show(root) {
  document.title = "Submit · Penstock";
  let found = null;
  const kind = h("select", { id: "kind", onchange: () => { if (Object.values(EXAMPLES).includes(area.value) || !area.value.trim()) area.value = EXAMPLES[kind.value]; forget(); } }, [["flow.sql", "SQL"], ["flow.py", "Python"], ["flow.yaml", "Flow file (YAML)"]].map(([value, word]) => h("option", { value }, word)));
  const area = h("textarea.code", { id: "text", rows: 16, spellcheck: "false", value: EXAMPLES["flow.sql"], oninput: () => forget() });
  const name = h("input", { id: "name", pattern: "[a-z0-9][a-z0-9._\\-]{0,62}", placeholder: "the flow's name" });
  const said = h("pre.trace.bad-text", { role: "alert", hidden: true }), about = h("p.muted"), picture = graph({ onstep: () => {}, onedge: () => {} });
  const run = h("button.primary", { type: "button", disabled: true, onclick: submit }, "Submit as a job");
  const plan = h("section.card", { hidden: true }, h("h2", "What it will do"), about, picture.node, h("div.row.end", h("label.field", { for: "name" }, "Name of the job", name), run));
  root.append(h("h1", "Submit a flow"), h("section.card.stack", h("label.inline", { for: "kind" }, "Written in", kind), h("label.field", { for: "text" }, "Flow", area), h("div.row.end", h("button", { type: "button", onclick: look }, "See its plan"))), said, plan);
  function forget() { found = null; run.disabled = true; }
  async function look() {
    forget();
    said.hidden = true;
    try {
      found = await post("/plans", { file: kind.value, text: area.value });
    } catch (error) { said.hidden = false; text(said, error.message); plan.hidden = true; return; }
    plan.hidden = false;
    const t = found.plan.totals;
    fill(about, `${found.flow}: ${many(t.steps, "step")}, ${many(t.stages, "stage")}, ${many(t.shuffles, "shuffle")}, ${many(t.python_passes, "Python pass", "Python passes")}${t.state ? ", keeps state" : ""}. `, found.plan.warnings.map((w) => h("strong", `${w.step || ""} ${w.text}. `)));
    picture.draw(found.plan, false);
    if (!name.value) name.value = found.flow.toLowerCase();
    run.disabled = false;
    plan.scrollIntoView({ block: "nearest" });
  }
  async function submit() {
    if (!name.reportValidity() || !(await confirmed({ title: `Submit ${name.value}?`, about: "The server starts a driver for it and keeps it running.", action: "Submit" }))) return;
    try {
      await post("/jobs", { name: name.value || found.flow.toLowerCase(), bundle: found.bundle, target: found.target });
    } catch (error) { notice(error.message, "bad"); return; }
    location.hash = `#/jobs/${encodeURIComponent(name.value)}`;
  }
}
