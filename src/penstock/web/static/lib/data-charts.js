// Charts of the data itself: lines of a field over time, bars by a key, and a map of keys by their rate.
import { css, fill, h, s } from "./dom.js";
import { number } from "./format.js";
import { chart } from "./chart.js";

const MOST_BARS = 15, MOST_KEYS = 24, COLUMNS = 60, SLICE = 2;
export const SHOWS = { table: "table", line: "line", bars: "bars", map: "map of keys" };
const keyOf = (value) => (value === null || value === undefined ? "null" : String(value).slice(0, 60));

// The mean of a field in each sample, over time.
export function lines(field) {
  let times = [], values = [];
  const picture = chart(`mean of ${field}`, { series: [[field, "--c-blue"]], height: 150, unit: number });
  return { node: picture.node, close: () => picture.close(), add(rows) {
    const found = rows.map((r) => Number(r[field])).filter((v) => !Number.isNaN(v));
    if (!found.length) return;
    times = [...times, Date.now() / 1000].slice(-300);
    values = [...values, found.reduce((sum, v) => sum + v, 0) / found.length].slice(-300);
    picture.set(times, [values], [[field, "--c-blue"]]);
  } };
}

// How many records each value of a field has, or the sum of another field; what was seen since one looks.
export function bars(key, field = "") {
  const sums = new Map(), node = h("div.bars", { role: "list", "aria-label": `${field || "records"} by ${key}` });
  return { node, close() {}, add(rows) {
    for (const r of rows) sums.set(keyOf(r[key]), (sums.get(keyOf(r[key])) || 0) + (field ? Number(r[field]) || 0 : 1));
    if (sums.size > 5000) for (const [name] of [...sums].sort((a, b) => a[1] - b[1]).slice(0, 2500)) sums.delete(name);
    const all = [...sums].sort((a, b) => b[1] - a[1]), top = Math.max(...all.map(([, v]) => Math.abs(v)), 1e-9);
    fill(node, all.slice(0, MOST_BARS).map(([name, v]) => h("div.bar-row", { role: "listitem" }, h("span.bar-name", { title: name }, name), h("span.bar-box", h("span.bar", { style: { width: `${(Math.abs(v) / top) * 100}%` } })), h("span.bar-value", number(v)))), all.length > MOST_BARS && h("p.muted", `and ${all.length - MOST_BARS} more`));
  } };
}

// Keys as rows, time as columns; a cell is as dark as the key had records in that time.
export function keyMap(key) {
  const node = h("div.key-map"), seen = new Map();
  let first = 0;
  function draw(now) {
    const begin = Math.max(first, now - COLUMNS + 1), wide = Math.max(node.clientWidth || 320, 240), left = 92, cell = (wide - left) / COLUMNS, high = 15;
    const total = (cells) => [...cells].reduce((sum, [at, many]) => sum + (at >= begin ? many : 0), 0);
    const rows = [...seen].map(([name, cells]) => [name, cells, total(cells)]).sort((a, b) => b[2] - a[2]).slice(0, MOST_KEYS), top = Math.max(...rows.flatMap(([, cells]) => [...cells].filter(([at]) => at >= begin).map(([, many]) => many)), 1);
    const ink = css("--c-blue");
    fill(node, s("svg", { width: wide, height: rows.length * high + 16, viewBox: `0 0 ${wide} ${rows.length * high + 16}`, role: "img", "aria-label": `map of keys by rate: ${rows.slice(0, 5).map(([name, , many]) => `${name} ${many}`).join(", ")}` },
      rows.map(([name, cells, many], row) => s("g", { transform: `translate(0,${row * high})` }, s("title", `${name}: ${many} records of the samples`), s("text.key-name", { x: 0, y: 11 }, name.length > 13 ? `${name.slice(0, 12)}…` : name),
        [...cells].filter(([at]) => at >= begin).map(([at, n]) => s("rect", { x: (left + (at - begin) * cell).toFixed(1), y: 1, width: Math.max(cell - 0.7, 1).toFixed(1), height: high - 2, rx: 2, style: { fill: ink, "fill-opacity": (0.12 + 0.88 * (Math.log1p(n) / Math.log1p(top))).toFixed(2) } })))),
      s("text.key-name", { x: left, y: rows.length * high + 12 }, `the last ${Math.min(COLUMNS, now - begin + 1) * SLICE} s`)), h("p.muted", `${seen.size} keys seen; a cell is ${SLICE} s, darker is more`));
  }
  return { node, close() {}, add(rows) {
    const now = Math.floor(Date.now() / 1000 / SLICE);
    first = first || now;
    for (const r of rows) { const name = keyOf(r[key]), cells = seen.get(name) || new Map(); cells.set(now, (cells.get(now) || 0) + 1); seen.set(name, cells); }
    for (const [name, cells] of seen) { for (const at of cells.keys()) if (at < now - COLUMNS) cells.delete(at); if (!cells.size) seen.delete(name); }
    draw(now);
  } };
}
