// The time of the server: that of this machine may be wrong, and what is "three minutes ago" is so by the clock that wrote it.
let ahead = 0;

// Answers say when they were sent, by whole seconds; what is within their reach counts as the same time.
export function heard(date) {
  const told = Date.parse(date || "") / 1000 + 0.5;
  if (!Number.isNaN(told)) ahead = Math.abs(told - Date.now() / 1000) > 3 ? told - Date.now() / 1000 : 0;
}

export const now = () => Date.now() / 1000 + ahead;

const two = (n) => String(n).padStart(2, "0");
export function moment(time) {
  const at = new Date(time * 1000);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

// A time as the API writes it, in the zone of who looks; one without a zone is in UTC.
export function written(text) {
  const at = Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(text || "") ? text : `${text}Z`);
  return Number.isNaN(at) ? String(text || "") : moment(at / 1000);
}

// The zone of all times that are shown, as UTC+05:30.
export function zone() {
  const minutes = -new Date().getTimezoneOffset(), size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "−" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}
