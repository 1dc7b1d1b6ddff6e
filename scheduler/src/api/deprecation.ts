/** The deprecation of routes; docs/reference/api.md describes the policy. */

export interface Deprecated {
  /** The date of the release that deprecates the route, such as "2030-01-03". */
  readonly since: string;
  /** The replacement that callers should use, described in a sentence. */
  readonly instead: string;
}

/** A deprecated route is served for at least this number of years. */
const servedYears = 1;

/** Returns the earliest time at which the route may be removed. */
export function sunsetOf({ since }: Deprecated): Date {
  const sunset = new Date(since);
  sunset.setUTCFullYear(sunset.getUTCFullYear() + servedYears);
  return sunset;
}

/**
 * Sets the headers of a deprecated route's answers, by RFC 9745 and RFC 8594.
 * @param answer Node's own response, because an event stream does not send its answer through the framework
 */
export function tellDeprecated(
  answer: { setHeader(name: string, value: string): unknown },
  deprecated: Deprecated,
): void {
  answer.setHeader("deprecation", `@${Date.parse(deprecated.since) / 1_000}`);
  answer.setHeader("sunset", sunsetOf(deprecated).toUTCString());
}
