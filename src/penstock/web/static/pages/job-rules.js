// The rules, patterns and standing queries of a job, with their runs; those who may change them.
import { fill, h, text } from "../lib/dom.js";
import { get, post, seg } from "../lib/api.js";
import { written } from "../lib/clock.js";
import { ago, bytes, number, whole } from "../lib/format.js";
import { badge, confirmed, notice, table } from "../lib/ui.js";
import { ofStep } from "../lib/graph.js";

const TITLES = { rules: "Rules", patterns: "Patterns", pattern: "Pattern", queries: "Standing queries" };
const ENDS = [["matches", "matches"], ["timed_out", "timed out"], ["pruned", "pruned"], ["dropped", "dropped"]];
const RUNS = [["", "drop those under way"], ["keep", "keep those under way"], ["drain", "let those under way end"]];

export function rulesTab(root, context) {
  let ended = false, timer = 0, sets = [];
  const boxes = new Map(), none = h("p.empty", "asking");
  root.append(none);
  async function load() {
    clearTimeout(timer);
    try {
      sets = (await get(`${context.path}/rules`)).sets;
      if (ended) return;
      none.hidden = sets.length > 0;
      text(none, "This job has no rules, no patterns and no standing queries.");
      for (const each of sets) draw(each);
    } catch (error) { if (!ended) { none.hidden = false; text(none, error.message); } }
    if (!ended) timer = setTimeout(load, 3000);
  }
  function draw(set) {
    if (!boxes.has(set.step)) boxes.set(set.step, box(root, set, context, load));
    boxes.get(set.step)(set);
  }
  load();
  return () => { ended = true; clearTimeout(timer); };
}

function box(root, first, context, reload) {
  const about = h("p.muted"), wrong = h("p.bad-text", { hidden: true }), editor = h("div"), isQueries = first.kind === "queries", path = `${context.path}/rules/${seg(first.step)}`;
  const change = async (body, said) => { try { const made = await post(path, body); notice(`${made.rule}: ${said}, version ${made.version}`); fill(editor); await reload(); return true; } catch (error) { notice(error.message, "bad"); return false; } };
  const running = (r) => (r.runs ? Object.values(r.runs.waiting || {}).reduce((sum, many) => sum + many, 0) : null);
  const list = table({ label: `${TITLES[first.kind]} of ${first.step}`, empty: isQueries ? "No queries." : "No rules.", key: (r) => r.rule, columns: [
    { title: isQueries ? "Query" : first.kind === "rules" ? "Rule" : "Pattern", class: "name", sort: (r) => r.rule, first: true, cell: (r) => r.rule },
    { title: "State", cell: (r) => (r.status ? badge(r.status.status, r.status.status === "standing" ? "go" : "rest") : badge(r.enabled ? "enabled" : "disabled", r.enabled ? "go" : "rest")) },
    { title: "Version", right: true, sort: (r) => r.version, cell: (r) => whole(r.version) },
    ...(first.kind === "rules" ? [] : isQueries ? [{ title: "Fired", right: true, cell: (r) => whole(r.status?.firings) }, { title: "Rows", right: true, cell: (r) => whole(r.status?.rows) }, { title: "Last", cell: (r) => (r.status?.last ? written(r.status.last) : "") }]
      : [{ title: "Runs", right: true, sort: (r) => running(r) ?? -1, cell: (r) => whole(running(r)) }, { title: "Keys", right: true, cell: (r) => whole(r.runs?.keys) }, { title: "Events", right: true, cell: (r) => whole(r.runs?.events) }, { title: "State size", right: true, cell: (r) => bytes(r.runs?.bytes) }, { title: "Oldest", right: true, cell: (r) => (r.runs?.oldest ? ago(r.runs.oldest / 1e6) : "–") },
        { title: "Wait for", class: "note", cell: (r) => Object.entries(r.runs?.waiting || {}).map(([word, many]) => `${word}: ${many}`).join(", ") }]),
    { title: "Text", class: "note", cell: (r) => h("code", r.text) },
    { title: "Changed", cell: (r) => (r.by || r.at ? `${r.by} ${r.at ? written(r.at) : ""}` : "in the flow") },
    { title: "", cell: (r, cell) => (first.changeable && context.may() ? buttons(r, cell) : "") },
  ] });
  function buttons(r, cell) {
    const key = `${r.version} ${r.enabled}`;
    if (cell.made === key) return undefined;
    cell.made = key;
    const edit = h("button", { type: "button", onclick: () => write(r) }, "Edit"), drop = h("button.danger", { type: "button", onclick: () => gone(r) }, isQueries ? "Drop" : "Remove");
    const turn = h("button", { type: "button", onclick: () => switched(r) }, r.enabled ? "Disable" : "Enable");
    return isQueries ? drop : h("div.row", edit, turn, drop);
  }
  async function gone(r) {
    const hasRuns = first.kind === "patterns";
    const found = await confirmed({ title: `Remove ${r.rule}?`, about: "It takes effect with one of the next batches. Its versions stay in the topic.", action: isQueries ? "Drop" : "Remove", danger: true, field: hasRuns ? { label: "Runs of the pattern", options: RUNS, value: "" } : null });
    if (found !== null) await change({ op: "remove", rule: r.rule, runs: hasRuns ? found : "" }, "removed");
  }
  async function switched(r) {
    const op = r.enabled ? "disable" : "enable", word = r.enabled ? "Disable" : "Enable";
    if (await confirmed({ title: `${word} ${r.rule}?`, about: "It takes effect with one of the next batches, in all tasks at once.", action: word })) await change({ op, rule: r.rule }, `${op}d`);
  }
  // A form for a new rule, or for another text of one.
  function write(r) {
    const name = h("input", { id: "rule-name", value: r?.rule || "", disabled: Boolean(r), required: true, placeholder: "big" });
    const area = h("textarea.code", { id: "rule-text", rows: 5, spellcheck: "false", required: true, value: r?.text || "", placeholder: isQueries ? "CREATE STANDING QUERY big AS SELECT * FROM orders WHERE amount > 500 INTO found" : first.kind === "rules" ? "if amount > 500 do emit to large" : "PATTERN SEQ(Order a, Payment b) WITHIN 1 hour" });
    const runs = h("select", { id: "rule-runs" }, RUNS.map(([value, word]) => h("option", { value }, word)));
    fill(editor, h("form.card.stack", { onsubmit: (event) => { event.preventDefault(); change({ op: r ? "change" : "add", rule: isQueries ? "" : name.value, text: area.value, runs: r && first.kind === "patterns" ? runs.value : "" }, r ? "changed" : "added"); } },
      !isQueries && h("label.field", { for: "rule-name" }, "Name", name), h("label.field", { for: "rule-text" }, "Text", area), r && first.kind === "patterns" && h("label.field", { for: "rule-runs" }, "Runs of the pattern", runs),
      h("div.row.end", h("button", { type: "button", onclick: () => fill(editor) }, "Cancel"), h("button.primary", { type: "submit" }, r ? "Change" : "Add"))));
    (r ? area : isQueries ? area : name).focus();
  }
  const add = h("button", { type: "button", onclick: () => write(null) }, isQueries ? "Add a query" : first.kind === "rules" ? "Add a rule" : "Add a pattern");
  root.append(h("section.stack", h("div.row", h("h2", `${TITLES[first.kind]}: ${first.step}`), about, h("div.spacer"), add), wrong, editor, list.node));
  return (set) => {
    const totals = ofStep(context.state().totals, set.step), rates = ofStep(context.state().rates, set.step);
    const counted = ENDS.filter(([name]) => totals[name] !== undefined).map(([name, word]) => `${whole(totals[name])} ${word}`);
    const rows = totals.in !== undefined ? [`${number(rates.in || 0)} records a second in, ${number(rates.out || 0)} out`] : [];
    text(about, [`${set.rules.length} of them`, set.topic ? `changed by the topic ${set.topic}` : "as the flow was written: it takes no changes while it runs", ...rows, ...counted].join(" · "));
    text(wrong, set.error);
    wrong.hidden = !set.error;
    add.hidden = !(set.changeable && context.may());
    list.draw(set.rules);
  };
}
