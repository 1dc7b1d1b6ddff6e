/** UTC and the zones that this browser lists. */
export const zones = [...new Set(["UTC", ...Intl.supportedValuesOf("timeZone")])];

/** The zone that a text names in full, in any case, or by an alias with a slash such as US/Eastern; undefined if it names none. */
export function zoneNamed(text: string): string | undefined {
  const name = text.trim();
  const listed = zones.find((zone) => zone.toLowerCase() === name.toLowerCase());
  if (listed !== undefined || !name.includes("/")) return listed;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    // Intl throws if the zone is unknown.
    return undefined;
  }
}
