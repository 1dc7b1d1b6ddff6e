/**
 * Computes local times with `Intl` alone. The code shares nothing with schedule/zone.ts, so that the comparison can detect a fault there.
 */
export const dayMs = 86_400_000;

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    formats.set(zone, format);
  }
  return format;
}

/** Returns the wall clock time in the zone, encoded as the epoch milliseconds at which a UTC clock shows the same date and time. */
export function localOf(ms: number, zone: string): number {
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(ms)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

const wholeSecond = (ms: number): number => Math.floor(ms / 1_000) * 1_000;

export const offsetAt = (ms: number, zone: string): number => localOf(ms, zone) - wholeSecond(ms);

/** Returns the instants at which clocks in the zone show this local time: usually one, none in a skipped hour, two in a repeated hour. */
export function instantsOf(localMs: number, zone: string): number[] {
  const offsets = new Set([offsetAt(localMs - dayMs, zone), offsetAt(localMs + dayMs, zone)]);
  return [...offsets]
    .map((offset) => localMs - offset)
    .filter((ms) => localOf(ms, zone) === localMs)
    .sort((a, b) => a - b);
}

const nearMs = 4 * 3_600_000;

/** True within four hours of a clock change, where schedulers behave differently and few document their rules. */
export const isNearClockChange = (ms: number, zone: string): boolean =>
  offsetAt(ms - nearMs, zone) !== offsetAt(ms + nearMs, zone);
