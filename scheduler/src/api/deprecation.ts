/** The deprecation of routes: docs/api.md has the policy. */

export interface Deprecated {
  /** The day of the release that deprecates the route: "2030-01-03". */
  readonly since: string;
  /** The replacement for callers to use, as a sentence. */
  readonly instead: string;
}

/** A deprecated route is served for this many years. */
const servedYears = 1;

/** The earliest time at which the route may be removed. */
export function sunsetOf({ since }: Deprecated): Date {
  const sunset = new Date(since);
  sunset.setUTCFullYear(sunset.getUTCFullYear() + servedYears);
  return sunset;
}

/**
 * Sets the headers of a deprecated route's answers, by RFC 9745 and RFC 8594. @param answer Node's own response, because a stream sends
 * only its headers
 */
export function tellDeprecated(
  answer: { setHeader(name: string, value: string): unknown },
  deprecated: Deprecated,
): void {
  answer.setHeader("deprecation", `@${Date.parse(deprecated.since) / 1_000}`);
  answer.setHeader("sunset", sunsetOf(deprecated).toUTCString());
}
