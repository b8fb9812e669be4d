// The dead letters of a job: cause, record, traceback; replay and drop.
import { fill, h, text } from "../lib/dom.js";
import { get, post, query, replace, seg } from "../lib/api.js";
import { written } from "../lib/clock.js";
import { whole } from "../lib/format.js";
import { badge, confirmed, notice, table } from "../lib/ui.js";

const LONG = 200, DEEPEST = 10000;

export function deadLettersTab(root, context) {
  let found = [], chosen = new Set(), ended = false, shownId = "", before = [], asked = 0, turning = false;
  const step = h("select", { id: "step", onchange: () => { before = []; turning = false; turn([]); } }, h("option", { value: "" }, "all steps"));
  const older = h("button", { type: "button", onclick: () => turn([...before, found.at(-1).id]) }, "Older"), newer = h("button", { type: "button", onclick: () => turn(before.slice(0, -1)) }, "Newer");
  const about = h("span.muted"), details = h("section.card", { hidden: true });
  const replay = h("button", { type: "button", disabled: true, onclick: () => act("replay") }, "Replay");
  const drop = h("button.danger", { type: "button", disabled: true, onclick: () => act("drop") }, "Drop");
  const all = h("input", { type: "checkbox", id: "all", onchange: () => { chosen = all.checked ? new Set(found.map((d) => d.id)) : new Set(); draw(); } });
  const list = table({ label: "dead letters", empty: "No dead letters.", key: (d) => d.id, onrow: show, columns: [
    { title: "", say: "choose", cell: (d, cell) => { let box = cell.firstChild; if (!box) { box = h("input", { type: "checkbox", "aria-label": `choose ${d.id}`, onchange: (event) => { if (event.target.checked) chosen.add(d.id); else chosen.delete(d.id); draw(); } }); cell.append(box); } box.checked = chosen.has(d.id); } },
    { title: "When", cell: (d) => written(d.time) },
    { title: "Step", cell: (d) => d.step },
    { title: "Cause", class: "note", cell: (d, cell) => (cell.firstChild ? undefined : h("button.plain.link", { type: "button", onclick: () => show(d) }, String(d.cause).slice(0, 160))) },
    { title: "Record", class: "note", cell: (d) => String(d.record).slice(0, 160) },
    { title: "State", cell: (d) => (d.replayed ? badge("replayed", "go") : "") },
  ] });
  root.append(h("div.row.tools", h("label.inline", { for: "step" }, "Step", step), h("label.inline", all, "all shown"), replay, drop, about, newer, older), details, list.node);
  list.node.classList.add("tall");

  function show(d) {
    shownId = d.id;
    details.hidden = false;
    fill(details, h("h2", String(d.cause).slice(0, 300)), h("dl.facts", [["id", d.id], ["step", d.step], ["when", written(d.time)], ["position", d.position], ["record", d.record]].map(([name, value]) => [h("dt", name), h("dd", h("code", value))])),
      h("h3", "Payload"), h("pre.trace", { tabindex: "0", "aria-label": "payload" }, JSON.stringify(d.payload, null, 2)), editing(d),
      d.traceback && [h("h3", "Traceback"), h("pre.trace", { tabindex: "0", "aria-label": "traceback" }, d.traceback)]);
    details.scrollIntoView({ block: "nearest" });
  }
  // The payload as text to be changed; sent back, it goes in its new form.
  function editing(d) {
    const area = h("textarea.code", { id: "payload", rows: 8, spellcheck: "false", value: JSON.stringify(d.payload, null, 2) }), said = h("p.bad-text", { role: "alert" });
    const form = h("form.stack", { hidden: true, onsubmit: (event) => { event.preventDefault(); save(); } }, h("label.field", { for: "payload" }, "Payload, as JSON", area), said, h("div.row.end", h("button", { type: "button", onclick: () => { form.hidden = true; open.hidden = false; } }, "Cancel"), h("button.primary", { type: "submit" }, "Save")));
    const open = h("button", { type: "button", onclick: () => { form.hidden = false; open.hidden = true; area.focus(); } }, "Edit before replay");
    async function save() {
      text(said, "");
      let payload;
      try { payload = JSON.parse(area.value); } catch (error) { text(said, `this is no JSON: ${error.message}`); return; }
      try { await replace(`${context.path}/dead-letters/${seg(d.id)}`, { payload }); } catch (error) { text(said, error.message); return; }
      notice(`changed ${d.id}; replay sends it back`);
      await load();
      const now = found.find((each) => each.id === d.id);
      if (now) show(now);
    }
    return [h("div.row", open), form];
  }
  // Another page of the list; what was chosen on this one is let go.
  async function turn(cursors) {
    if (turning) return;
    turning = true;
    before = cursors;
    chosen.clear();
    all.checked = false;
    await load();
    turning = false;
    list.node.scrollTop = 0;
  }
  function count(steps) {
    const many = step.value ? steps[step.value] || 0 : Object.values(steps).reduce((sum, each) => sum + each, 0), first = before.length * LONG;
    const reached = first + found.length, isDeep = reached >= DEEPEST && many > reached;
    text(about, `${found.length ? `${whole(first + 1)} to ${whole(reached)}` : "0"} of ${whole(many)}${isDeep ? "; older ones are shown when newer ones have gone" : ""}`);
    newer.hidden = older.hidden = first === 0 && reached >= many;
    const isLast = found.length < LONG || reached >= Math.min(many, DEEPEST);
    const lost = document.activeElement === (isLast ? older : first === 0 && newer);
    newer.disabled = first === 0;
    older.disabled = isLast;
    if (lost) (isLast ? newer : older).focus();
  }
  function draw() {
    list.draw(found);
    replay.disabled = drop.disabled = chosen.size === 0;
    text(replay, chosen.size ? `Replay ${chosen.size}` : "Replay");
    text(drop, chosen.size ? `Drop ${chosen.size}` : "Drop");
  }
  async function act(what) {
    const many = chosen.size, words = { replay: ["Send back?", `${many} dead letters go back to the steps that failed on them, with the next batch of the job.`, "Replay"], drop: ["Drop?", `${many} dead letters are removed for good. There is no way back.`, "Drop"] }[what];
    if (!(await confirmed({ title: words[0], about: words[1], action: words[2], danger: what === "drop" }))) return;
    const done = await post(`${context.path}/dead-letters/${what}`, { ids: [...chosen] });
    chosen.clear();
    all.checked = false;
    draw();
    notice(what === "replay" ? `${done.replayed} will go back with the next batch` : `${done.dropped} dropped`);
    load();
  }
  async function load() {
    const mine = ++asked;
    try {
      const answer = await get(`${context.path}/dead-letters?${query({ step: step.value, after: before.at(-1), limit: LONG })}`);
      if (ended || mine !== asked) return;
      found = answer.dead_letters;
      const wanted = step.value;
      fill(step, h("option", { value: "" }, "all steps"), Object.entries(answer.steps).map(([name, many]) => h("option", { value: name }, `${name} (${many})`)));
      step.value = wanted;
      count(answer.steps);
      draw();
      if (context.rest && !shownId) { const wanted = found.find((d) => d.id === context.rest); if (wanted) show(wanted); }
    } catch (error) {
      if (ended || mine !== asked) return;
      if (before.length && error.status === 422) { before = []; await load(); return; } // the one to go on from was dropped
      text(about, error.message);
    }
  }
  load();
  const timer = setInterval(() => { if (!ended && !chosen.size) load(); }, 5000);
  return () => { ended = true; clearInterval(timer); };
}
