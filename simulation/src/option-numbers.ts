/** What is no number would make a run of nothing, which passes: it is refused, with the option, what was given and what is wanted. */

/** A count or a seed. @param option as it is written, without its dashes @param least the smallest that makes sense */
export function wholeNumber(option: string, text: string, least = 1): number {
  const value = numberOf(text);
  if (!Number.isSafeInteger(value) || value < least)
    throw refused(`--${option} is a whole number from ${least} on, not ${JSON.stringify(text)}`);
  return value;
}

/** A length of time, of which a part is something too. */
export function positiveNumber(option: string, text: string): number {
  const value = numberOf(text);
  if (!Number.isFinite(value) || value <= 0)
    throw refused(`--${option} is a number above 0, not ${JSON.stringify(text)}`);
  return value;
}

const numberOf = (text: string) => (text.trim() === "" ? Number.NaN : Number(text));
/** As `parseArgs` refuses: whoever starts a harness tells it in one line. */
const refused = (message: string) => Object.assign(new Error(message), { code: "ERR_PARSE_ARGS_INVALID_OPTION_VALUE" });
