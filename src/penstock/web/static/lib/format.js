// Numbers, times and sizes as people read them.
import { now } from "./clock.js";

export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toFixed(size >= 1e10 ? 0 : 1)} G`;
  if (size >= 1e6) return `${(value / 1e6).toFixed(size >= 1e7 ? 0 : 1)} M`;
  if (size >= 1e4) return `${(value / 1e3).toFixed(size >= 1e5 ? 0 : 1)} k`;
  if (size >= 100 || Number.isInteger(value)) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  return value.toFixed(size >= 10 ? 1 : 2);
}

export const whole = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en"));

export function rate(value) {
  return value === null || value === undefined ? "–" : `${number(value)}/s`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.001) return "0 s";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 120) return `${value < 10 ? value.toFixed(2) : value.toFixed(0)} s`;
  return span(value);
}

export const micros = (value) => (value === null || value === undefined ? "–" : value < 1000 ? `${number(value)} µs` : seconds(value / 1e6));

export const many = (value, one, more = `${one}s`) => `${whole(value)} ${value === 1 ? one : more}`;

export function span(value) {
  if (value === null || value === undefined || value < 0) return "–";
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  const at = Math.max(units.findIndex(([, size]) => value >= size), 0);
  if (value < 1) return "0 s";
  const [unit, size] = units[at];
  const next = units[at + 1];
  const rest = next ? Math.floor((value % size) / next[1]) : 0;
  return `${Math.floor(value / size)} ${unit}${rest ? ` ${rest} ${next[0]}` : ""}`;
}

export const ago = (time) => (time ? span(Math.max(now() - time, 0)) : "–");

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${value >= 10 || at === 0 ? Math.round(value) : value.toFixed(1)} ${units[at]}`;
}

export const UNITS = { records: "records", files: "files", bytes: "bytes" };
export function lag(lags) {
  const kept = (lags || []).filter(([, , value]) => value > 0);
  if (!lags || !lags.length) return "–";
  if (!kept.length) return "0";
  return kept.map(([, unit, value]) => `${unit === "bytes" ? bytes(value) : number(value)}${unit === "records" || unit === "bytes" ? "" : ` ${unit}`}`).join(", ");
}
