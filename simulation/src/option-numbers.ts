/**
 * Parses numeric options. A value that is not a number would lead to an empty run, which passes, so it is refused with a message
 * that names the option, the given value and the expected kind.
 */

/** A count or a seed. @param option its name, without dashes @param least the smallest sensible value */
export function wholeNumber(option: string, text: string, least = 1): number {
  const value = numberOf(text);
  if (!Number.isSafeInteger(value) || value < least)
    throw refused(`--${option} is a whole number from ${least} on, not ${JSON.stringify(text)}`);
  return value;
}

/** Parses a positive number, such as a duration; fractions are allowed. */
export function positiveNumber(option: string, text: string): number {
  const value = numberOf(text);
  if (!Number.isFinite(value) || value <= 0)
    throw refused(`--${option} is a number above 0, not ${JSON.stringify(text)}`);
  return value;
}

const numberOf = (text: string) => (text.trim() === "" ? Number.NaN : Number(text));
/** An error like those of `parseArgs`: the harness prints it in one line. */
const refused = (message: string) => Object.assign(new Error(message), { code: "ERR_PARSE_ARGS_INVALID_OPTION_VALUE" });
