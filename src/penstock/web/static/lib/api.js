// The REST API, and the streams of events.
import { heard } from "./clock.js";

const PREFIX = "/api/v1";

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

let onSignedOut = () => {};
export const whenSignedOut = (call) => { onSignedOut = call; };
let onAway = () => {}, isAway = false;
// Called with true when the server does not answer, and with false when it does so again.
export const whenAway = (call) => { onAway = call; };
const GATEWAY = [502, 503, 504];
function reached(isThere) {
  if (isThere !== isAway) return;
  isAway = !isThere;
  onAway(isAway);
}

async function asked(method, path, body) {
  const init = { method, headers: { "x-penstock-console": "1" }, credentials: "same-origin" };
  if (body instanceof Blob || body instanceof ArrayBuffer) {
    init.body = body;
    init.headers["content-type"] = "application/zip";
  } else if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers["content-type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(PREFIX + path, init);
  } catch {
    reached(false);
    throw new Problem(0, "the server does not answer");
  }
  reached(!GATEWAY.includes(answer.status));
  heard(answer.headers.get("date"));
  if (answer.ok) return answer;
  if (answer.status === 401 && path !== "/session") onSignedOut();
  let detail = `the server answered ${answer.status}`;
  try { detail = (await answer.json()).detail || detail; } catch { /* no problem details */ }
  throw new Problem(answer.status, detail);
}

export const get = async (path) => (await asked("GET", path)).json();
export const getText = async (path) => (await asked("GET", path)).text();
export const post = async (path, body = {}) => {
  const answer = await asked("POST", path, body);
  return answer.status === 204 ? null : answer.json();
};
export const replace = async (path, body = {}) => (await asked("PUT", path, body)).json();
export const remove = async (path) => { await asked("DELETE", path); };
export const query = (values) => new URLSearchParams(Object.entries(values).filter(([, v]) => v !== "" && v != null)).toString();
export const seg = encodeURIComponent;

// Follows a stream of events; returns what ends it. A stream that broke is looked at by asking who we are: the session may have ended, or the server.
export function follow(path, event, onData, onState = () => {}) {
  let source = null, ended = false, timer = 0;
  const ask = async () => {
    timer = 0;
    let isHere = true;
    try { await get("/me"); } catch (error) { if (error.status === 401) { source.close(); return; } isHere = error.status > 0; }
    if (ended) return;
    if (isHere && source.readyState === EventSource.CLOSED) open(); else if (!isHere) timer = setTimeout(ask, 3000);
  };
  const open = () => {
    source = new EventSource(PREFIX + path);
    source.addEventListener(event, (message) => { onState("live"); onData(JSON.parse(message.data)); });
    source.onerror = () => {
      onState("away");
      if (!ended && !timer) timer = setTimeout(ask, source.readyState === EventSource.CLOSED ? 3000 : 1000);
    };
  };
  open();
  return () => { ended = true; clearTimeout(timer); source.close(); };
}
