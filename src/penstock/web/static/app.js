// The console: who is signed in, which page is shown.
import { h, fill } from "./lib/dom.js";
import { get, post, remove, whenAway, whenSignedOut } from "./lib/api.js";
import { moment, now, zone } from "./lib/clock.js";
import { confirmed, notice } from "./lib/ui.js";

const PAGES = [
  [/^\/(?:jobs)?$/, () => import("./pages/jobs.js"), []],
  [/^\/jobs\/([^/]+)(?:\/([a-z-]+))?(?:\/(.+))?$/, () => import("./pages/job.js"), ["name", "tab", "rest"]],
  [/^\/submit$/, () => import("./pages/submit.js"), []],
  [/^\/topics(?:\/([^/]+))?(?:\/([^/]+))?$/, () => import("./pages/topics.js"), ["log", "topic"]],
  [/^\/alerts$/, () => import("./pages/alerts.js"), []],
  [/^\/pools$/, () => import("./pages/pools.js"), []],
  [/^\/audit$/, () => import("./pages/audit.js"), []],
  [/^\/tokens$/, () => import("./pages/tokens.js"), []],
];
const main = document.getElementById("main"), top = document.getElementById("top");
let me = null, leave = () => {}, turn = 0;

function links() {
  const may = { viewer: [], operator: [], developer: ["submit"], admin: ["submit", "audit", "tokens"] }[me.role] || [];
  const all = [["", "Jobs"], ["topics", "Topics"], ["alerts", "Alerts"], ["pools", "Pools"], ["submit", "Submit"], ["audit", "Audit"], ["tokens", "Tokens"]];
  return all.filter(([path]) => ["", "topics", "alerts", "pools"].includes(path) || may.includes(path));
}

function header() {
  const here = location.hash.replace(/^#\//, "").split(/[/?]/)[0].replace("jobs", "");
  fill(top,
    h("a.brand", { href: "#/", "aria-label": "Penstock, all jobs" }, h("img", { src: "/icon.svg", alt: "", width: "26", height: "26" }), h("span", "Penstock")),
    h("nav.main", { "aria-label": "pages" }, links().map(([path, title]) => h("a", { href: `#/${path}`, "aria-current": here === path ? "page" : null }, title))),
    h("div.spacer"),
    h("span.who", { title: "the zone of all times on these pages" }, zone()), h("span.who", { title: `signed in as ${me.owner}` }, `${me.owner} · ${me.role}`),
    h("button.plain", { type: "button", onclick: theme, title: "Dark or light", "aria-label": "switch between dark and light" }, "◐"),
    h("button.plain", { type: "button", onclick: keys, title: "Keys", "aria-label": "show keys" }, "?"),
    h("button.plain", { type: "button", onclick: signOut, title: "Sign out" }, "Sign out"));
  top.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
}

function theme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("penstock.theme", root.dataset.theme);
  dispatchEvent(new Event("themechange"));
}

const keys = () => confirmed({ title: "Keys", action: "Close", about: ["/ goes to the search of a page.", "j goes to the jobs, t to the topics, a to the alerts, p to the pools.", "d switches between dark and light.", "Tab and Enter reach everything else, the steps of a graph too."] });

async function signOut() {
  await remove("/session").catch(() => {});
  me = null;
  signIn();
}

function signIn(message = "") {
  turn += 1;
  leave();
  leave = () => {};
  fill(top, h("span.brand", h("img", { src: "/icon.svg", alt: "", width: "26", height: "26" }), h("span", "Penstock")));
  const token = h("input", { id: "token", type: "password", autocomplete: "off", placeholder: "pstk_…" });
  const said = h("p.bad-text", { role: "alert" }, message);
  document.title = "Sign in · Penstock";
  fill(main, h("section.card.narrow", h("h1", "Sign in"),
    h("p", "Open the link that ", h("code", "penstock console"), " prints on the machine of the server. It works once."),
    h("form", { onsubmit: async (event) => {
      event.preventDefault();
      try { await post("/session", { token: token.value.trim() }); await start(); } catch (error) { said.textContent = error.status === 401 ? "this token does not hold" : error.message; }
    } }, h("label.field", { for: "token" }, "Or enter a token", token), h("div.row.end", h("button.primary", { type: "submit" }, "Sign in"))), said));
  get("/oidc").then(({ provider }) => provider && said.before(h("p", "Or ", h("a", { href: "/api/v1/oidc/start" }, `sign in with ${provider}`)))).catch(() => {});
}

// A part of an address as it is meant; one that was typed wrong, as it is.
function plain(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

async function route() {
  const [path, asked = ""] = (location.hash.replace(/^#/, "") || "/").split("?", 2);
  const link = path.match(/^\/sign-in\/([\w-]+)$/);
  if (link) {
    history.replaceState(null, "", "#/");
    try { await post("/session", { code: link[1] }); me = null; } catch (error) {
      try { me = await get("/me"); } catch { return signIn(error.message); }
      notice(`You are signed in already; ${error.message}`);
    }
    return start();
  }
  if (!me) return undefined;
  header();
  for (const [pattern, load, names] of PAGES) {
    const found = path.match(pattern);
    if (!found) continue;
    const mine = ++turn;
    leave();
    leave = () => {};
    const page = await load();
    if (mine !== turn) return undefined;
    const params = { ...Object.fromEntries(names.map((name, at) => [name, found[at + 1] && plain(found[at + 1])])), query: new URLSearchParams(asked) };
    const root = h("div.page");
    fill(main, root);
    scrollTo(0, 0);
    leave = page.show(root, params, me) || (() => {});
    return undefined;
  }
  turn += 1;
  leave();
  leave = () => {};
  return fill(main, h("section.card.narrow", h("h1", "Nothing here"), h("p", "There is no such page. ", h("a", { href: "#/" }, "All jobs"))));
}

async function start() {
  try { me = await get("/me"); } catch (error) { return error.status === 401 ? undefined : signIn(error.message); }
  return route();
}

whenSignedOut(() => {
  const message = me ? "Your session has ended." : "";
  me = null;
  if (!location.hash.startsWith("#/sign-in/")) signIn(message);
});
whenAway((isAway) => {
  const said = document.getElementById("away");
  said.hidden = !isAway;
  fill(said, isAway && `The server does not answer since ${moment(now()).slice(11)}. What is shown is from before; the page goes on by itself when it is back.`);
});
addEventListener("hashchange", route);
addEventListener("keydown", (event) => {
  if (event.target.closest("input,textarea,select,dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { const search = document.querySelector("input[type=search]"); if (search) { event.preventDefault(); search.focus(); } }
  if (event.key === "j") location.hash = "#/";
  if (event.key === "t") location.hash = "#/topics";
  if (event.key === "a") location.hash = "#/alerts";
  if (event.key === "p") location.hash = "#/pools";
  if (event.key === "d") theme();
  if (event.key === "?") keys();
});
addEventListener("unhandledrejection", (event) => { if (event.reason?.status !== 401) notice(event.reason?.message || "something went wrong", "bad"); });
if (location.hash.startsWith("#/sign-in/")) route(); else start();
