// Charts over time, drawn by uPlot; the colours tell apart for the colour-blind (Okabe and Ito).
import { css, h, text } from "./dom.js";
import { bytes, number } from "./format.js";

const BINARY = Array.from({ length: 50 }, (_, at) => 2 ** at);
const two = (n) => String(n).padStart(2, "0");
function clock(at, step) {
  const d = new Date(at * 1000), time = `${two(d.getHours())}:${two(d.getMinutes())}`;
  if (step >= 86400) return `${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  return step < 60 ? `${time}:${two(d.getSeconds())}` : time;
}

export const COLOURS = ["--c-blue", "--c-green", "--c-orange", "--c-pink", "--c-sky", "--c-red", "--c-yellow", "--c-grey"];

// `series`: [label, colour variable]. `set(times, columns)` draws; a stacked chart adds the columns up.
export function chart(title, { series, stacked = false, unit = number, height = 170, group = "" }) {
  const box = h("div.chart-box"), said = h("p.hidden"), none = h("p.chart-none", "nothing yet");
  const node = h("figure.chart", h("figcaption", title), box, none, said);
  let plot = null, shown = series, data = null, raw = [];

  const colour = (name) => () => css(name);
  function options() {
    const fills = stacked ? shown.map(([, c]) => () => `${css(c)}99`) : shown.map(([, c]) => (shown.length === 1 ? () => `${css(c)}33` : undefined));
    return {
      width: Math.max(box.clientWidth, 200), height,
      cursor: { sync: group ? { key: group } : undefined, drag: { x: true, y: false }, points: { size: 5 } },
      legend: { live: true },
      scales: { x: { time: true }, y: { range: (u, low, high) => [Math.min(low ?? 0, 0), (high > 0 ? high : 1) * 1.08] } },
      axes: [
        { stroke: colour("--ink-2"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "11px system-ui", space: 70, size: 28, values: (u, ticks, axis, space, step) => ticks.map((t) => clock(t, step)) },
        { stroke: colour("--ink-2"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui", size: 58, incrs: unit === bytes ? BINARY : undefined, values: (u, ticks) => ticks.map((v) => unit(v)) },
      ],
      series: [{ label: "time" }, ...shown.map(([label, c], at) => ({
        label, stroke: colour(c), width: 1.6, fill: fills[at], points: { show: false }, spanGaps: false,
        value: (u, v, i, index) => unit(raw[at]?.[index ?? raw[at].length - 1]),
      }))],
      bands: stacked ? shown.slice(1).map((_, at) => ({ series: [at + 2, at + 1] })) : undefined,
    };
  }
  function build() {
    plot?.destroy();
    plot = new uPlot(options(), data, box);
  }
  const watch = new ResizeObserver(() => { if (plot && box.clientWidth) plot.setSize({ width: box.clientWidth, height }); });
  watch.observe(box);
  const redraw = () => plot?.redraw(false, true);
  addEventListener("themechange", redraw);

  return {
    node,
    set(times, columns, wanted = series) {
      raw = columns;
      none.hidden = times.length > 0;
      box.hidden = times.length === 0;
      if (!times.length) return;
      const sums = [];
      if (stacked) columns.forEach((column, at) => { sums.push(column.map((v, i) => (v || 0) + (at ? sums[at - 1][i] : 0))); });
      data = [times, ...(stacked ? sums : columns)];
      const isSame = plot && wanted.length === shown.length && wanted.every(([label], at) => label === shown[at][0]);
      shown = wanted;
      if (isSame) plot.setData(data); else build();
      text(said, `${title}: ${shown.map(([label], at) => `${label} ${unit(columns[at].at(-1))}`).join(", ")}`);
    },
    close() { watch.disconnect(); removeEventListener("themechange", redraw); plot?.destroy(); },
  };
}
