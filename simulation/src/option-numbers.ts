/**
 * Parses numeric options. A value that is not a number is refused with an error that names the option, the value and what is
 * allowed. If such a value was accepted, a run would do nothing and pass.
 */

/**
 * Parses a whole number, such as a count or a seed.
 * @param option the option's name, without dashes
 * @param least the smallest allowed value
 */
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
/** Returns an error like those of `parseArgs`, which the harness prints as one line. */
const refused = (message: string) => Object.assign(new Error(message), { code: "ERR_PARSE_ARGS_INVALID_OPTION_VALUE" });
