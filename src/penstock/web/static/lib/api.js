// The REST API, and the streams of events.
const PREFIX = "/api/v1";

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

let onSignedOut = () => {};
export const whenSignedOut = (call) => { onSignedOut = call; };

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
    throw new Problem(0, "the server does not answer");
  }
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

// Follows a stream of events; returns what ends it. A stream that the server closed for good is looked at by asking who we are.
export function follow(path, event, onData, onState = () => {}) {
  let source = null, ended = false, timer = 0;
  const open = () => {
    source = new EventSource(PREFIX + path);
    source.addEventListener(event, (message) => { onState("live"); onData(JSON.parse(message.data)); });
    source.onerror = () => {
      onState("away");
      if (source.readyState !== EventSource.CLOSED || ended) return;
      timer = setTimeout(async () => {
        try { await get("/me"); } catch (error) { if (error.status === 401) return; }
        if (!ended) open();
      }, 3000);
    };
  };
  open();
  return () => { ended = true; clearTimeout(timer); source.close(); };
}
