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

export function fill(node, ...children) {
  node.replaceChildren();
  return put(node, children);
}

export function text(node, value) {
  const wanted = value === null || value === undefined ? "" : String(value);
  if (node.textContent !== wanted) node.textContent = wanted;
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
