import { CarillonError } from "./errors.ts";
import { shownValue } from "./json.ts";

/** Milliseconds, or a text of numbers with units: "250ms", "15m", "1h 30m", "1.5d". */
export type Duration = number | string;

const unitMs: Record<string, number> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

const pattern = /^\s*(?:\d+(?:\.\d+)?\s*(?:ms|s|m|h|d|w)\s*)+$/;
const part = /(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)/g;

/** Parses a duration. @returns whole ms, at least `min` @throws DURATION_INVALID with `what` as the value's name */
export function parseDuration(value: Duration, what = "duration", min = 1): number {
  let ms = Number.NaN;
  if (typeof value === "number") ms = value;
  else if (typeof value === "string" && value.length <= 64 && pattern.test(value)) {
    ms = 0;
    for (const [, amount, unit] of value.matchAll(part)) ms += Number(amount) * (unitMs[unit as string] as number);
  }
  ms = Math.round(ms);
  if (!Number.isSafeInteger(ms) || ms < min) {
    throw new CarillonError(
      "DURATION_INVALID",
      `${what}: ${shownValue(value)} is not a duration of at least ${min} ms`,
      {
        hint: 'Give milliseconds or a text such as "250ms", "15m", "1h 30m".',
      },
    );
  }
  return ms;
}

/** Formats a duration as an exact text with units from large to small, without units of which there are none: 5400000 → "1h30m". */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  let rest = ms;
  let text = "";
  for (const unit of ["d", "h", "m", "s", "ms"] as const) {
    const size = unitMs[unit] as number;
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text;
}
