// A flame graph: boxes for functions, as wide as their share of the samples, those that they call above them.
import { fill, h, s } from "./dom.js";
import { number } from "./format.js";

const HIGH = 19, LEAST = 0.0015, DEEPEST = 60;
const PALETTE = ["--c-blue", "--c-green", "--c-orange", "--c-pink", "--c-sky", "--c-yellow"];

// Functions of one module have one colour.
function tint(name) {
  const module = name.split(".").slice(0, 2).join(".");
  let sum = 0;
  for (const letter of module) sum = (sum * 31 + letter.charCodeAt(0)) % 9973;
  return PALETTE[sum % PALETTE.length];
}

function merged(stacks) {
  const root = { name: "all", many: 0, below: new Map(), depth: 0 };
  for (const [names, many] of stacks) {
    let at = root;
    at.many += many;
    for (const name of names.slice(0, DEEPEST)) {
      if (!at.below.has(name)) at.below.set(name, { name, many: 0, below: new Map(), up: at });
      at = at.below.get(name);
      at.many += many;
    }
  }
  return root;
}

export function flame() {
  const box = h("div.flame", { tabindex: "0", role: "group", "aria-label": "flame graph" }), path = h("p.flame-path"), top = h("div");
  const node = h("div", path, box, top);
  let root = null, shown = null, searched = "";

  function draw(stacks) {
    const trail = shown ? trailOf(shown) : [];
    root = merged(stacks);
    shown = trail.reduce((at, name) => at?.below.get(name), root) || root;
    paint();
  }
  const trailOf = (at) => { const names = []; while (at.up) { names.unshift(at.name); at = at.up; } return names; };
  function zoom(at) { shown = at; paint(); }
  function paint() {
    if (!root || !root.many) { fill(box); fill(path); fill(top); return; }
    const rows = [], wide = Math.max(box.clientWidth || 900, 300);
    const visit = (at, x, depth) => {
      const width = at.many / shown.many;
      if (width < LEAST) return;
      rows.push({ at, x, depth, width });
      let left = x;
      for (const each of [...at.below.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) { visit(each, left, depth + 1); left += each.many / shown.many; }
    };
    visit(shown, 0, 0);
    const deepest = Math.max(...rows.map((row) => row.depth)) + 1;
    const boxes = rows.map(({ at, x, depth, width }) => {
      const w = width * wide, share = `${number((at.many / root.many) * 100)} %`, hit = searched && at.name.toLowerCase().includes(searched);
      const open = () => zoom(at === shown && at.up ? at.up : at);
      const label = w > 34 ? at.name.split(".").slice(-2).join(".").slice(0, Math.floor((w - 6) / 6.4)) : "";
      return s(`g.flame-box${hit ? ".hit" : searched ? ".miss" : ""}`, { transform: `translate(${(x * wide).toFixed(1)},${(deepest - 1 - depth) * HIGH})`, onclick: open },
        s("title", `${at.name}\n${at.many} samples, ${share}`), s("rect", { width: Math.max(w - 0.6, 0.6).toFixed(1), height: HIGH - 1, rx: 2, style: { fill: `var(${depth || shown !== root ? tint(at.name) : "--c-grey"})` } }), label && s("text", { x: 4, y: 13 }, label));
    });
    fill(box, s("svg", { width: wide, height: deepest * HIGH, viewBox: `0 0 ${wide} ${deepest * HIGH}`, role: "img", "aria-label": `flame graph of ${root.many} samples; the table below has the same` }, boxes));
    const trail = trailOf(shown);
    fill(path, trail.length ? [h("button", { type: "button", onclick: () => zoom(root) }, "All"), ` ${trail.slice(-3).join(" › ")}`] : "");
    fill(top, table());
  }
  // The functions that most samples end in: the same for those who do not see the picture.
  function table() {
    const own = new Map();
    const visit = (at) => { let below = 0; for (const each of at.below.values()) { visit(each); below += each.many; } if (at.up && at.many > below) own.set(at.name, (own.get(at.name) || 0) + at.many - below); };
    visit(shown);
    const rows = [...own].sort((a, b) => b[1] - a[1]).slice(0, 15);
    return h("div.table-box.plain-table", { tabindex: "0", role: "region", "aria-label": "functions" }, h("table", h("thead", h("tr", h("th", { scope: "col" }, "Function"), h("th.right", { scope: "col" }, "Itself"), h("th.right", { scope: "col" }, "Samples"))), h("tbody", rows.map(([name, many]) => h("tr", h("td", { "data-label": "Function" }, name), h("td.right", { "data-label": "Itself" }, `${number((many / shown.many) * 100)} %`), h("td.right", { "data-label": "Samples" }, String(many)))))));
  }
  return { node, draw, find(word) { searched = word.trim().toLowerCase(); paint(); } };
}
