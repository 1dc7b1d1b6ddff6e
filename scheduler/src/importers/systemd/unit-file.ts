/** Reads systemd's unit files with their drop-ins, either from separate files or from the combined output of `systemctl cat`. */
import { basename, dirname } from "node:path";
import type { SourceFile } from "../findings.ts";

/** The values by section, then by name. A name may occur several times; an empty value removes the values before it. */
export type Unit = Map<string, Map<string, string[]>>;

export function readUnits(files: readonly SourceFile[]): Map<string, Unit> {
  const units = new Map<string, Unit>();
  for (const { path, text } of files)
    for (const [name, part] of partsOf(path, text)) {
      const unit = units.get(name) ?? new Map();
      units.set(name, unit);
      readPart(part, unit);
    }
  return units;
}

/** Returns the name of the unit that a file belongs to. A drop-in is in a folder with its unit's name: backup.timer.d/override.conf. */
const unitName = (path: string): string => {
  const folder = basename(dirname(path));
  return folder.endsWith(".d") ? folder.slice(0, -2) : basename(path);
};

function partsOf(path: string, text: string): [string, string][] {
  const marks = [...text.matchAll(/^# (\/\S+\.(?:timer|service|conf))$/gm)];
  if (marks.length === 0) return [[unitName(path), text]];
  return marks.map((mark, at) => [unitName(mark[1] as string), text.slice(mark.index, marks[at + 1]?.index)]);
}

function readPart(text: string, unit: Unit): void {
  let section = "";
  for (const line of text.replace(/\\\r?\n/g, " ").split(/\r?\n/)) {
    const trimmed = line.trim();
    if (trimmed === "" || /^[#;]/.test(trimmed)) continue;
    const [, named] = /^\[(.+)\]$/.exec(trimmed) ?? [];
    if (named !== undefined) section = named;
    const [, name, value = ""] = /^([A-Za-z][\w-]*)\s*=\s*(.*)$/.exec(trimmed) ?? [];
    if (named !== undefined || name === undefined) continue;
    const values = unit.get(section) ?? new Map<string, string[]>();
    unit.set(section, values);
    values.set(name, value === "" ? [] : [...(values.get(name) ?? []), value]);
  }
}

const unitsMs: Record<string, number> = {
  us: 0.001,
  ms: 1,
  s: 1_000,
  sec: 1_000,
  second: 1_000,
  seconds: 1_000,
  m: 60_000,
  min: 60_000,
  minute: 60_000,
  minutes: 60_000,
  h: 3_600_000,
  hr: 3_600_000,
  hour: 3_600_000,
  hours: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
  days: 86_400_000,
  w: 604_800_000,
  week: 604_800_000,
  weeks: 604_800_000,
};

/**
 * Converts "1h 30min", or "90" for seconds, to milliseconds.
 * @returns undefined if the text is not a duration or has a unit without a fixed length
 */
export function spanMs(text: string): number | undefined {
  const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*/gy)];
  const isWhole = parts.length > 0 && parts.map(([whole]) => whole).join("") === text.trim();
  if (!isWhole) return undefined;
  let ms = 0;
  for (const [, count, unit = ""] of parts) ms += Number(count) * (unitsMs[unit === "" ? "s" : unit] ?? Number.NaN);
  return Number.isNaN(ms) ? undefined : Math.round(ms);
}

/** Splits a command line into words. @returns undefined if it contains a specifier such as %i, which only systemd can resolve */
export function wordsOf(line: string): string[] | undefined {
  const bare = line.replace(/^[@:+!|-]+/, "").trim();
  if (/%(?!%)/.test(bare.replaceAll("%%", ""))) return undefined;
  const words = bare.match(/(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\])+/g) ?? [];
  return words.map((word) =>
    word
      .replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/g, (_, double, single, one) =>
        double === undefined ? (single ?? one) : double.replace(/\\(.)/g, "$1"),
      )
      .replaceAll("%%", "%"),
  );
}
