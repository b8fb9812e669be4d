// The version of a job: what runs, how the last upgrade went, and another version out of the page.
import { fill, h, text } from "../lib/dom.js";
import { get, post } from "../lib/api.js";
import { many } from "../lib/format.js";
import { graph } from "../lib/graph.js";
import { badge, confirmed, notice } from "../lib/ui.js";

export function versionTab(root, context) {
  let found = null, before = null;
  const facts = h("dl.facts"), how = h("p"), about = h("p.muted"), said = h("pre.trace.bad-text", { role: "alert", hidden: true });
  const area = h("textarea.code", { id: "text", rows: 18, spellcheck: "false", oninput: () => forget() }), trial = h("input", { id: "trial", type: "number", min: "1", max: "86400", value: "300" });
  const picture = graph({ onstep: () => {}, onedge: () => {} }), run = h("button.primary", { type: "button", disabled: true, onclick: upgrade }, "Upgrade");
  const plan = h("section.card", { hidden: true }, h("h2", "What the new version will do"), h("p.muted"), picture.node, h("div.row.end", h("label.field", { for: "trial" }, "Seconds to come up", trial), run));
  const writing = h("section.card.stack", { hidden: true }, h("h2", "Another version"), about, h("label.field", { for: "text" }, "Flow", area), h("div.row.end", h("button", { type: "button", onclick: look }, "See its plan")));
  root.append(h("section.card", h("h2", "What runs"), how, facts), writing, said, plan);
  const forget = () => { found = null; run.disabled = true; };
  const ended = context.onstate(({ job }) => {
    const key = JSON.stringify([job.upgrade, job.bundle, job.generation, job.phase]);
    if (key === before) return;
    before = key;
    const words = job.upgrade === "on trial" ? [badge("on trial", "soon"), " The new version runs; it has settled when it has committed a batch, and the version before goes on if it does not come up."] : job.upgrade.startsWith("went back") ? [badge("went back", "hurt"), ` ${job.upgrade.slice(10)}`] : job.upgrade ? [badge("settled", "go"), " The last upgrade has come up."] : ["It was never upgraded."];
    fill(how, words);
    fill(facts, [["flow", job.target], ["bundle", job.bundle.slice(0, 16)], ["generation", String(job.generation)], ["pool", job.pool], ["cores", job.cores || "what Spark takes"], ["memory", job.memory ? `${job.memory} MiB` : "what Spark takes"], ["priority", String(job.priority)]].map(([name, value]) => [h("dt", name), h("dd", value)]));
    if (context.may() && writing.hidden && ["developer", "admin"].includes(context.me.role)) open();
  });
  async function open() {
    writing.hidden = false;
    try {
      const source = await get(`${context.path}/source`);
      if (!area.value) area.value = source.text;
      text(about, `${source.file} as it runs${source.others ? `; the ${source.others} other files of its bundle go along as they are` : ""}. The new version begins from a savepoint of this one, which goes on if the new one does not come up.`);
    } catch (error) { text(about, error.message); area.disabled = true; }
  }
  async function look() {
    forget();
    said.hidden = true;
    try { found = await post(`${context.path}/plans`, { text: area.value }); } catch (error) { said.hidden = false; text(said, error.message); plan.hidden = true; return; }
    plan.hidden = false;
    const t = found.plan.totals;
    fill(plan.querySelector("p"), `${found.flow}: ${many(t.steps, "step")}, ${many(t.stages, "stage")}, ${many(t.shuffles, "shuffle")}${t.state ? ", keeps state" : ""}. `, found.plan.warnings.map((w) => h("strong", `${w.step || ""} ${w.text}. `)));
    picture.draw(found.plan, false);
    run.disabled = false;
    plan.scrollIntoView({ block: "nearest" });
  }
  async function upgrade() {
    if (!(await confirmed({ title: `Upgrade ${context.name}?`, about: ["A savepoint is taken, and the new version starts from it.", `If it has not come up in ${trial.value} s, the version that runs now goes on, and nothing is lost.`], action: "Upgrade" }))) return;
    try { await post(`${context.path}/upgrade`, { bundle: found.bundle, target: found.target, trial: Number(trial.value) }); notice(`${context.name}: the new version is on trial`); forget(); } catch (error) { notice(error.message, "bad"); }
  }
  return ended;
}
