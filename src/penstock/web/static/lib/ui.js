// Parts that all pages use: badges, tiles, tables, dialogs, notices, small charts.
import { h, s, fill, heldFocus, text } from "./dom.js";

const SIGNS = { good: ["●", "good"], warning: ["▲", "warning"], bad: ["■", "bad"], off: ["○", "off"] };

export function health(job) {
  const [sign, word] = SIGNS[job.health] || SIGNS.off;
  return h(`span.health.${word}`, { title: job.health_reason || word }, h("span.sign", { "aria-hidden": "true" }, sign), h("span.word", word));
}

export function badge(word, kind = "") {
  return h(`span.badge${kind ? `.${kind}` : ""}`, word);
}

const PHASES = { running: "go", starting: "soon", queued: "soon", stopping: "soon", waiting: "hurt", held: "hurt", paused: "rest", stopped: "rest", finished: "rest" };
export const phase = (word) => badge(word, PHASES[word] || "rest");

export function tile(label, title = "") {
  const value = h("div.tile-value", "–"), note = h("div.tile-note");
  const node = h("div.tile", { title }, h("div.tile-label", label), value, note);
  return { node, set(main, below = "") { text(value, main); text(note, below); } };
}

export function notice(message, kind = "info") {
  const box = document.getElementById("notices");
  const node = h(`div.notice.${kind}`, message, h("button.plain", { type: "button", "aria-label": "close", onclick: () => node.remove() }, "×"));
  box.append(node);
  setTimeout(() => node.remove(), kind === "bad" ? 12000 : 5000);
}

// A dialog that says what will happen; resolves to what was entered, or to null.
export function confirmed({ title, about, action, danger = false, field = null }) {
  return new Promise((resolve) => {
    const input = field && field.options ? h("select", { id: "dialog-field", value: field.value }, field.options.map(([value, word]) => h("option", { value }, word))) : field && h("input", { id: "dialog-field", type: field.type || "text", value: field.value ?? "", min: field.min, max: field.max, placeholder: field.placeholder, pattern: field.pattern });
    const done = (value) => { dialog.close(); dialog.remove(); back(); resolve(value); };
    const form = h("form", { onsubmit: (event) => { event.preventDefault(); done(input ? input.value : true); } },
      h("h2", { id: "dialog-title" }, title),
      (Array.isArray(about) ? about : [about]).map((line) => h("p", line)),
      input && h("label.field", { for: "dialog-field" }, field.label, input),
      h("div.row.end", h("button", { type: "button", onclick: () => done(null) }, "Cancel"), h(`button.${danger ? "danger" : "primary"}`, { type: "submit" }, action)));
    const back = heldFocus(), dialog = h("dialog", { "aria-labelledby": "dialog-title", oncancel: (event) => { event.preventDefault(); done(null); } }, form);
    document.body.append(dialog);
    dialog.showModal();
    (input || form.querySelector("button[type=submit]")).focus();
  });
}

// A table whose rows are kept: `columns` have a title, how a cell is made of a row, and how it sorts: `first` is the one that sorts at the beginning, "down" from the largest on.
export function table({ columns, key, empty, label, onrow }) {
  let sorted = { at: columns.findIndex((c) => c.first), down: columns.some((c) => c.first === "down") }, last = [];
  const body = h("tbody"), rows = new Map();
  const heads = columns.map((column, at) => h(`th${column.right ? ".right" : ""}`, { scope: "col" },
    column.sort ? h("button.plain.sort", { type: "button", onclick: () => { sorted = { at, down: sorted.at === at ? !sorted.down : Boolean(column.right) }; draw(last); } }, column.title, h("span.arrow", { "aria-hidden": "true" })) : column.title || h("span.hidden", column.say || "actions")));
  const node = h("div.table-box", { tabindex: "0", role: "region", "aria-label": label }, h("table", h("thead", h("tr", heads)), body));
  const none = h("p.empty", empty);
  node.append(none);
  function draw(found) {
    last = found;
    none.hidden = found.length > 0;
    heads.forEach((head, at) => {
      head.setAttribute("aria-sort", sorted.at === at ? (sorted.down ? "descending" : "ascending") : "none");
      const arrow = head.querySelector(".arrow");
      if (arrow) text(arrow, sorted.at === at ? (sorted.down ? "▾" : "▴") : "");
    });
    const by = columns[sorted.at]?.sort;
    const order = by ? [...found].sort((a, b) => { const x = by(a), y = by(b); return (x < y ? -1 : x > y ? 1 : 0) * (sorted.down ? -1 : 1); }) : found;
    const there = new Set(order.map(key));
    for (const [name, row] of rows) if (!there.has(name)) { if (row.contains(document.activeElement)) node.focus({ preventScroll: true }); row.remove(); rows.delete(name); }
    order.forEach((each, at) => {
      let row = rows.get(key(each));
      if (!row) {
        row = h("tr", columns.map((column) => h(`td${column.right ? ".right" : ""}${column.class ? `.${column.class}` : ""}`, { "data-label": column.title || "" })));
        if (onrow) { row.classList.add("click"); row.addEventListener("click", (event) => { if (!event.target.closest("a,button,input")) onrow(row.found); }); }
        rows.set(key(each), row);
      }
      row.found = each;
      columns.forEach((column, i) => {
        const cell = row.cells[i], value = column.cell(each, cell);
        if (value === undefined) return;
        if (value instanceof Node) fill(cell, value); else text(cell, value);
      });
      if (body.children[at] !== row) body.insertBefore(row, body.children[at] || null);
    });
  }
  return { node, draw, none };
}

// A small line of the last values.
export function spark(values, { width = 96, height = 22 } = {}) {
  const top = Math.max(...values, 1e-9), n = Math.max(values.length - 1, 1);
  const points = values.map((v, i) => `${((i / n) * width).toFixed(1)},${(height - 2 - (v / top) * (height - 4)).toFixed(1)}`);
  return s("svg.spark", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    values.length > 1 && s("polygon", { points: `0,${height} ${points.join(" ")} ${width},${height}` }),
    values.length > 1 && s("polyline", { points: points.join(" ") }));
}

export function tabs(names, current, link) {
  return h("nav.tabs", { "aria-label": "views of this job" }, names.map(([name, title]) => h("a", { href: link(name), "aria-current": name === current ? "page" : null }, title)));
}

export function copied(value) {
  return h("button.plain.copy", { type: "button", onclick: () => navigator.clipboard?.writeText(value).then(() => notice("copied")) }, "Copy");
}
