/** Draws series over time as SVG text, one panel per title. The module only returns the text; it writes no file. */
export interface Panel {
  readonly title: string;
  /** A short text beside the title. */
  readonly told: string;
  readonly lines: readonly { readonly name: string; readonly points: readonly (readonly [number, number])[] }[];
}

const columns = 2;
const panelWidth = 420;
const panelHeight = 170;
const margin = 20;
const left = 52;
const top = 40;
const bottom = 18;
const hues = ["#2f6fde", "#d1622b", "#2e9e5b", "#8f4fc4", "#b8860b", "#c43d6b"];

/** Colours follow the reader's light or dark setting, because the page around the chart supports both. */
const style = `
  text { font: 11px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 13px }
  .quiet { fill: #6e7781 } .axis { stroke: #d0d7de } .mark { stroke: #d0d7de; stroke-dasharray: 1 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #8b949e } .axis, .mark { stroke: #30363d }
  }`;

/** @param marks positions of vertical lines on the time axis, in the points' unit (minutes) */
export function linesAsSvg(panels: readonly Panel[], marks: readonly number[], caption: string): string {
  const most = Math.max(1e-9, ...panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points.map(([x]) => x))));
  const rows = Math.ceil(panels.length / columns);
  const [width, height] = [columns * panelWidth + 2 * margin, rows * (panelHeight + margin) + 2 * margin];
  const drawn = panels.map((panel, at) => {
    const [x, y] = [margin + (at % columns) * panelWidth, margin + Math.floor(at / columns) * (panelHeight + margin)];
    return `<g transform="translate(${x} ${y})">${drawnPanel(panel, marks, most)}</g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>${escaped(caption)}</title>
<style>${style}
</style>
${drawn.join("\n")}
<text class="quiet" x="${margin}" y="${height - margin / 2}">${escaped(caption)}</text>
</svg>
`;
}

function drawnPanel({ title, told, lines }: Panel, marks: readonly number[], most: number): string {
  const values = lines.flatMap(({ points }) => points.map(([, y]) => y)).filter(Number.isFinite);
  const high = Math.max(...values, 1e-9) * 1.05;
  const [plotWidth, plotHeight] = [panelWidth - left - margin, panelHeight - top - bottom];
  const x = (at: number) => (left + (at / most) * plotWidth).toFixed(1);
  const y = (value: number) => (top + plotHeight - (Math.max(0, value) / high) * plotHeight).toFixed(1);
  const drawn = lines.map(({ points }, at) => {
    const path = points.filter(([, value]) => Number.isFinite(value)).map(([px, py]) => `${x(px)},${y(py)}`);
    return `<polyline fill="none" stroke="${hues[at % hues.length]}" stroke-width="1.2" points="${path.join(" ")}"/>`;
  });
  const names = lines.map(
    ({ name }, at) =>
      `<text x="${left + at * 90}" y="32" style="fill:${hues[at % hues.length]}">${escaped(name)}</text>`,
  );
  return [
    `<text class="title" x="${left}" y="14">${escaped(title)}</text>`,
    `<text class="quiet" x="${panelWidth - margin}" y="14" text-anchor="end">${escaped(told)}</text>`,
    ...(lines.length > 1 ? names : []),
    ...marks.map((at) => `<line class="mark" x1="${x(at)}" x2="${x(at)}" y1="${top}" y2="${top + plotHeight}"/>`),
    `<line class="axis" x1="${left}" x2="${left + plotWidth}" y1="${top + plotHeight}" y2="${top + plotHeight}"/>`,
    `<text class="quiet" x="${left - 4}" y="${top + 8}" text-anchor="end">${shown(high)}</text>`,
    `<text class="quiet" x="${left - 4}" y="${top + plotHeight}" text-anchor="end">0</text>`,
    `<text class="quiet" x="${left + plotWidth}" y="${panelHeight - 4}" text-anchor="end">${shown(most)} min</text>`,
    ...drawn,
  ].join("\n");
}

const shown = (value: number): string =>
  value >= 1_000
    ? String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f")
    : String(Number(value.toPrecision(3)));

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
