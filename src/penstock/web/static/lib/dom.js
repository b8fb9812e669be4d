// Elements out of plain values. Texts are set as text, never read as markup.
const SVG = "http://www.w3.org/2000/svg";

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "open") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  put(node, children);
  return node;
}

export function put(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

const isChild = (given) => given instanceof Node || typeof given !== "object" || Array.isArray(given);

// h("div.tile.big", {title: "x"}, "text", node)
export function h(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  if (isChild(attributes)) { children.unshift(attributes); attributes = {}; }
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  return made(node, attributes, children);
}

export function s(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  if (isChild(attributes)) { children.unshift(attributes); attributes = {}; }
  const node = document.createElementNS(SVG, tag);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  return made(node, attributes, children);
}

// What has the focus, or gets it when the dialog in front of it closes.
let opener = null;
const NAMED = "a[href],button,input,select,textarea,[tabindex]";
const wordOf = (node) => node.getAttribute("aria-label") || node.id || node.textContent;

// What stands in the place of a part that was replaced: the one of the same name, else one of the same kind that does no harm.
function successor(node, gone, at) {
  const alike = [...node.querySelectorAll(NAMED)].filter((each) => each.localName === gone.localName), safe = alike.filter((each) => !each.matches(".danger"));
  return alike.find((each) => wordOf(each) === wordOf(gone)) || safe[Math.min(at, safe.length - 1)] || null;
}

function placeOf(node, held) {
  if (!held || held === node || !node.contains(held)) return null;
  return [...node.querySelectorAll(NAMED)].filter((each) => each.localName === held.localName).indexOf(held);
}

// Fills a node anew; who was on a part of it by keyboard is on its successor.
export function fill(node, ...children) {
  const focused = document.activeElement, at = placeOf(node, focused), from = opener, place = placeOf(node, from);
  node.replaceChildren();
  put(node, children);
  if (at !== null) successor(node, focused, at)?.focus({ preventScroll: true });
  if (place !== null) opener = successor(node, from, place) || opener;
  return node;
}

// Remembers what has the focus; the call that is returned gives it back, or to what stands in its place by then.
export function heldFocus() {
  opener = document.activeElement;
  return () => { const held = opener; opener = null; if (held?.isConnected) held.focus({ preventScroll: true }); };
}

export function text(node, value) {
  const wanted = value === null || value === undefined ? "" : String(value);
  if (node.textContent !== wanted) node.textContent = wanted;
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
