/** Bar charts as SVG text: a panel for each figure, a bar for each subject that has the figure. The module only produces text. */

export interface Bar {
  who: string;
  value: number;
}

export interface Panel {
  title: string;
  /** The unit of the bars' values, for example "a second" or "ms". */
  unit: string;
  /** States whether a higher or a lower value is better; printed under the title. */
  better: "more is better" | "less is better";
  bars: Bar[];
}

const columns = 2;
const panelWidth = 420;
const labelWidth = 120;
const valueWidth = 90;
const barHeight = 16;
const barGap = 6;
const headHeight = 46;
const margin = 20;

/** The colours follow the reader's light or dark setting, because the page around the chart may be either. */
const style = `
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 13px }
  .quiet { fill: #6e7781; font-size: 11px }
  .bar { fill: #b6bec8 } .own { fill: #2f6fde } .limit { fill: none; stroke: #b6bec8; stroke-dasharray: 3 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #8b949e } .bar { fill: #484f58 } .own { fill: #58a6ff } .limit { stroke: #484f58 }
  }`;

export function barsAsSvg(panels: Panel[], caption: string): string {
  const heights = panels.map(({ bars }) => headHeight + bars.length * (barHeight + barGap));
  const rows = Math.ceil(panels.length / columns);
  const rowHeights = Array.from({ length: rows }, (_, row) =>
    Math.max(...heights.slice(row * columns, (row + 1) * columns)),
  );
  const width = columns * panelWidth + 2 * margin;
  const height = rowHeights.reduce((a, b) => a + b, 0) + rows * margin + 2 * margin;
  const drawn = panels.map((panel, i) => {
    const row = Math.floor(i / columns);
    const y = margin + rowHeights.slice(0, row).reduce((a, b) => a + b + margin, 0);
    return `<g transform="translate(${margin + (i % columns) * panelWidth} ${y})">${drawnPanel(panel)}</g>`;
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

function drawnPanel({ title, unit, better, bars }: Panel): string {
  const most = Math.max(...bars.map(({ value }) => value), Number.MIN_VALUE);
  const room = panelWidth - labelWidth - valueWidth;
  const lines = bars.map(({ who, value }, i) => {
    const y = headHeight + i * (barHeight + barGap);
    const length = Math.max(1, Math.round((Math.max(0, value) / most) * room));
    const kind = who === "carillon" ? "own" : who === "limit" ? "limit" : "bar";
    return [
      `<text x="${labelWidth - 8}" y="${y + 12}" text-anchor="end">${escaped(who)}</text>`,
      `<rect class="${kind}" x="${labelWidth}" y="${y}" width="${length}" height="${barHeight}" rx="2"/>`,
      `<text x="${labelWidth + length + 6}" y="${y + 12}">${escaped(shown(value))}</text>`,
    ].join("");
  });
  return [
    `<text class="title" x="0" y="14">${escaped(title)}</text>`,
    `<text class="quiet" x="0" y="32">${escaped(`${unit}, ${better}`)}</text>`,
    ...lines,
  ].join("\n");
}

/** Formats a value: from 1,000 up as a whole number with thin spaces between thousands, below with three significant digits. */
function shown(value: number): string {
  if (Math.abs(value) < 1_000) return String(Number(value.toPrecision(3)));
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
