// What the driver of a job prints.
import { fill, h, text } from "../lib/dom.js";
import { written } from "../lib/clock.js";
import { get, getText, query, replace, seg } from "../lib/api.js";
import { notice } from "../lib/ui.js";

const LEVELS = { debug: 0, info: 1, warning: 2, error: 3, critical: 3 };

function parsed(line) {
  try {
    const found = JSON.parse(line);
    if (found && typeof found === "object" && found.event) return found;
  } catch { /* a line of somebody else's */ }
  return null;
}

function row(line) {
  const found = parsed(line);
  if (!found) return h("li.line.raw", line);
  const { time = "", level = "info", event, traceback, ...rest } = found;
  if (traceback && typeof rest.message === "string") [rest.message] = rest.message.split("\n", 1); // the traceback stands below
  const about = Object.entries(rest).filter(([, value]) => value !== "").map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(" ");
  return h(`li.line.${LEVELS[level] >= 3 ? "error" : LEVELS[level] === 2 ? "warn" : "info"}`, h("span.time", { title: time }, time ? `${written(time).slice(11)}${String(time).slice(19, 23)}` : ""), h("span.level", level), h("span.event", event), h("span.about", about), traceback && h("pre", traceback));
}

export function logsTab(root, context) {
  let timer = 0, ended = false, before = null;
  const search = h("input", { type: "search", placeholder: "text in a line   ( / )", "aria-label": "search the log", value: context.rest || "", oninput: () => { history.replaceState(null, "", `#/jobs/${seg(context.name)}/logs${search.value ? `/${seg(search.value)}` : ""}`); load(); } });
  const level = h("select", { id: "level", onchange: () => load() }, [["0", "all"], ["2", "warnings and errors"], ["3", "errors"]].map(([value, word]) => h("option", { value }, word)));
  const batches = h("input", { type: "checkbox", id: "batches", onchange: () => load() });
  const follow = h("input", { type: "checkbox", id: "follow", checked: true });
  const list = h("ol.log", { tabindex: "0", "aria-label": "log" }), about = h("span.muted");
  const known = ["penstock", "spark", "root"], levels = {};
  const logger = h("input", { id: "logger", list: "loggers", value: "penstock", pattern: "[A-Za-z_][A-Za-z0-9_.\\-]*", maxlength: "200", size: "14", title: "penstock: its own; spark: that of Spark's JVM, in a file of its own; root: all others of Python; or a name of yours", oninput: () => { from.value = levels[logger.value] || "default"; } });
  const from = h("select", { id: "from", onchange: () => change() }, ["default", "debug", "info", "warning", "error"].map((word) => h("option", { value: word }, word)));
  const setter = h("details.more", h("summary", "How much is logged"), h("div.row.tools", h("label.inline", { for: "logger" }, "Logger", logger), h("datalist", { id: "loggers" }, known.map((value) => h("option", { value }))), h("label.inline", { for: "from" }, "from level", from), h("span.muted", "takes effect at once, without a restart")));
  const told = (found) => { Object.assign(levels, found.levels); from.value = levels[logger.value] || "default"; };
  async function change() {
    if (!logger.reportValidity()) return;
    told(await replace(`${context.path}/log-levels`, { logger: logger.value, level: from.value }));
    notice(`${logger.value} logs from ${from.value === "default" ? "its default" : from.value} on`);
  }
  if (context.me.role !== "viewer") { root.append(setter); get(`${context.path}/log-levels`).then(told).catch(() => {}); }
  root.append(h("div.row.tools", search, h("label.inline", { for: "level" }, "Level", level), h("label.inline", batches, "lines of batches"), h("label.inline", follow, "follow"), about), list);
  async function load() {
    clearTimeout(timer);
    const found = await getText(`${context.path}/log?${query({ lines: 1000, search: search.value.slice(0, 200) })}`).catch((error) => error.message);
    if (ended) return;
    const key = `${level.value} ${batches.checked} ${found}`;
    if (key !== before) {
      before = key;
      const lines = found.split("\n").filter(Boolean), least = Number(level.value);
      const kept = lines.filter((line) => { const p = parsed(line); return (batches.checked || p?.event !== "batch") && (least === 0 || (p && (LEVELS[p.level] ?? 1) >= least)); });
      fill(list, kept.map(row));
      text(about, `${kept.length} of the last ${lines.length} lines`);
      if (follow.checked) list.scrollTop = list.scrollHeight;
    }
    timer = setTimeout(load, 2000);
  }
  load();
  return () => { ended = true; clearTimeout(timer); };
}
