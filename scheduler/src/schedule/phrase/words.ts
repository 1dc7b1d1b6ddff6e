/** Splits an English phrase about time into tokens, and interprets single words. */
import { CarillonError } from "../../base/errors.ts";
import { editDistance } from "../../base/nearest.ts";

export interface Clock {
  hour: number;
  minute: number;
  second: number;
  /** True for an hour without minutes such as "9", which may mean the morning or the evening. */
  bare: boolean;
}

export type Token =
  | { kind: "word"; text: string }
  | { kind: "number"; value: number; text: string }
  | { kind: "ordinal"; value: number; text: string }
  | { kind: "clock"; clock: Clock; text: string }
  | { kind: "comma"; text: string };

const monthNames = "january february march april may june july august september october november december".split(" ");
const weekdayNames = "sunday monday tuesday wednesday thursday friday saturday".split(" ");
const ordinalWords = "first second third fourth fifth".split(" ");
const numberWords = "zero one two three four five six seven eight nine ten eleven twelve".split(" ");
const synonyms: Record<string, string> = {
  each: "every",
  "&": "and",
  through: "to",
  thru: "to",
  until: "to",
  till: "to",
  "-": "to",
  between: "from",
  per: "every",
  secs: "seconds",
  sec: "second",
  mins: "minutes",
  min: "minute",
  hrs: "hours",
  hr: "hour",
  workday: "weekday",
  workdays: "weekdays",
  everyday: "daily",
  annually: "yearly",
  midday: "noon",
  during: "in",
  starting: "from",
  sept: "september",
  tues: "tuesday",
  weds: "wednesday",
  thur: "thursday",
  thurs: "thursday",
};
const small =
  "at every on the of in from to and or only a last day days weekday weekdays weekend weekends second seconds minute minutes hour hours month months year years before nearest noon midnight daily hourly weekly monthly yearly quarterly past after".split(
    " ",
  );
const vocabulary = [...small, ...monthNames, ...weekdayNames, ...ordinalWords, ...numberWords];

/** Returns 1 to 12 for a month's name or its first three letters; undefined for another word. */
export const monthOf = (text: string): number | undefined => named(monthNames, text, 1);
/** Returns 0 (Sunday) to 6 for a weekday's name, its first three letters or its plural; undefined for another word. */
export const weekdayOf = (text: string): number | undefined =>
  named(weekdayNames, text.replace(/s$/, ""), 0) ?? named(weekdayNames, text, 0);

function named(names: readonly string[], text: string, from: number): number | undefined {
  const at = names.findIndex((name) => name === text || (text.length === 3 && name.startsWith(text)));
  return at < 0 ? undefined : at + from;
}

const pattern =
  /\s*(?:(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s*([ap])\.?m\b\.?)?|(\d{1,2})\s*([ap])\.?m\b\.?|(\d+)(?:st|nd|rd|th)\b|(\d+)|([a-z]+|&|-)|(,))/iy;

/** Returns the word of the vocabulary that a synonym stands for; any other word unchanged. */
const meantBy = (given: string): string => (Object.hasOwn(synonyms, given) ? synonyms[given] : undefined) ?? given;

/** True if the text has a time of day or a word that no cron expression has: neither a month nor a weekday. */
export const hasPhraseWord = (text: string): boolean =>
  /\d:\d|\d\s*[ap]\.?m\b|\d(?:st|nd|rd|th)\b/i.test(text) ||
  (text.toLowerCase().match(/[a-z]+/g) ?? []).some((given) => {
    const word = meantBy(given);
    return vocabulary.includes(word) && monthOf(word) === undefined && weekdayOf(word) === undefined;
  });

/** Splits a phrase into tokens. @throws CRON_INVALID for text that is neither a word, a number nor a time */
export function tokensOf(phrase: string): Token[] {
  const tokens: Token[] = [];
  const text = phrase.trim().replace(/[.!]+$/, "");
  pattern.lastIndex = 0;
  while (pattern.lastIndex < text.length) {
    const from = pattern.lastIndex;
    const found = pattern.exec(text);
    if (!found) throw refusal(phrase, `${JSON.stringify(text.slice(from).trim().slice(0, 20))} is not understood`);
    const [whole, hour, minute, second, half, bareHour, bareHalf, ordinal, number, word] = found;
    const shown = whole.trim();
    if (hour !== undefined)
      tokens.push({ kind: "clock", text: shown, clock: clockOf(phrase, shown, { hour, minute, second, half }) });
    else if (bareHour !== undefined)
      tokens.push({ kind: "clock", text: shown, clock: clockOf(phrase, shown, { hour: bareHour, half: bareHalf }) });
    else if (ordinal !== undefined) tokens.push({ kind: "ordinal", value: Number(ordinal), text: shown });
    else if (number !== undefined) tokens.push({ kind: "number", value: Number(number), text: shown });
    else if (word !== undefined) tokens.push(wordToken(word.toLowerCase()));
    else tokens.push({ kind: "comma", text: "," });
  }
  return tokens;
}

function wordToken(given: string): Token {
  const text = meantBy(given);
  if (text === "noon") return { kind: "clock", text, clock: { hour: 12, minute: 0, second: 0, bare: false } };
  if (text === "midnight") return { kind: "clock", text, clock: { hour: 0, minute: 0, second: 0, bare: false } };
  const number = numberWords.indexOf(text);
  if (number >= 0) return { kind: "number", value: number, text };
  // "second" is not returned as an ordinal, because it may also be the unit; a caller that expects an ordinal checks for this word.
  const ordinal = ordinalWords.indexOf(text);
  if (ordinal >= 0 && text !== "second") return { kind: "ordinal", value: ordinal + 1, text };
  return { kind: "word", text };
}

interface ClockParts {
  hour: string;
  minute?: string | undefined;
  second?: string | undefined;
  /** "a" for am, "p" for pm; undefined if neither is given. */
  half: string | undefined;
}

function clockOf(phrase: string, shown: string, { hour, minute = "0", second = "0", half }: ClockParts): Clock {
  const clock = { hour: Number(hour), minute: Number(minute), second: Number(second), bare: false };
  if (half !== undefined) {
    if (clock.hour < 1 || clock.hour > 12) throw refusal(phrase, `there is no ${shown}`);
    clock.hour = (clock.hour % 12) + (half.toLowerCase() === "p" ? 12 : 0);
  }
  if (clock.hour > 23 || clock.minute > 59 || clock.second > 59)
    throw refusal(phrase, `there is no ${shown}`, ["at 00:00", "at 23:59"]);
  return clock;
}

/** Creates the error for a phrase that cannot be parsed. @param suggestions phrases with the meanings that may have been intended */
export function refusal(phrase: string, why: string, suggestions: readonly string[] = []): CarillonError {
  const hint =
    suggestions.length > 0
      ? `Say ${suggestions.map((one) => JSON.stringify(one)).join(" or ")}.`
      : 'For example "every weekday at 9:30", "every 15 minutes", "at 08:00 on the first Monday of the month".';
  return new CarillonError("CRON_INVALID", `${JSON.stringify(phrase)} is no cron: ${why}`, { hint });
}

/** Returns the known word that is most similar; undefined if none is similar enough. */
export function nearestWord(text: string): string | undefined {
  let best: string | undefined;
  let least = text.length > 4 ? 3 : 2;
  for (const word of vocabulary) {
    const distance = editDistance(text, word);
    if (distance < least) [best, least] = [word, distance];
  }
  return best;
}
