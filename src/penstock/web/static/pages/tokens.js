// Tokens: who may speak to the server, in which role, for how long.
import { fill, h } from "../lib/dom.js";
import { get, post, remove, seg } from "../lib/api.js";
import { moment, now } from "../lib/clock.js";
import { badge, confirmed, copied, notice, table } from "../lib/ui.js";

const ENDS = [["", "never"], ["3600", "in an hour"], ["86400", "in a day"], ["2592000", "in 30 days"], ["31536000", "in a year"]];

export function show(root) {
  document.title = "Tokens · Penstock";
  const owner = h("input", { id: "owner", required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._@\\-]{0,62}", placeholder: "ada" });
  const role = h("select", { id: "role" }, ["viewer", "operator", "developer", "admin"].map((word) => h("option", { value: word }, word)));
  const ends = h("select", { id: "ends" }, ENDS.map(([value, word]) => h("option", { value }, word)));
  const shown = h("div");
  const state = (t) => (t.revoked ? "revoked" : t.expires && t.expires < now() ? "ended" : "holds");
  const list = table({ label: "tokens", empty: "No tokens.", key: (t) => `${t.id} ${state(t)} ${t.used}`, columns: [
    { title: "Token", cell: (t) => t.id }, { title: "Owner", sort: (t) => t.owner, cell: (t) => t.owner }, { title: "Role", sort: (t) => t.role, cell: (t) => badge(t.role) },
    { title: "Made", cell: (t) => moment(t.created) }, { title: "Used", cell: (t) => (t.used ? moment(t.used) : "never") }, { title: "Ends", cell: (t) => (t.expires ? moment(t.expires) : "never") }, { title: "State", cell: (t) => badge(state(t), state(t) === "holds" ? "go" : "rest") },
    { title: "", cell: (t) => (state(t) === "holds" ? h("button.danger", { type: "button", onclick: () => revoke(t) }, "Revoke") : "") },
  ] });
  root.append(h("h1", "Tokens"),
    h("form.card.row.tools", { onsubmit: make }, h("label.field", { for: "owner" }, "Owner", owner), h("label.field", { for: "role" }, "Role", role), h("label.field", { for: "ends" }, "Ends", ends), h("button.primary", { type: "submit" }, "Make a token")), shown, list.node);
  async function load() { list.draw((await get("/tokens")).tokens); }
  async function make(event) {
    event.preventDefault();
    const made = await post("/tokens", { owner: owner.value, role: role.value, seconds: ends.value ? Number(ends.value) : null });
    fill(shown, h("div.card.secret", h("p", `The token of ${made.owner}. It is shown here once, and nowhere else:`), h("div.row", h("code", made.token), copied(made.token))));
    load();
  }
  async function revoke(t) {
    if (!(await confirmed({ title: `Revoke token ${t.id}?`, about: `${t.owner} can no longer use it, and sessions that it opened end at once.`, action: "Revoke", danger: true }))) return;
    await remove(`/tokens/${seg(t.id)}`);
    notice(`revoked ${t.id}`);
    load();
  }
  load();
}
