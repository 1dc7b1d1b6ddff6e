/**
 * Reads the five time fields by the rules of cron programs. Unlike Carillon's dialect, these rules have no `L`, `W`, `#` and `?`, but
 * accept steps longer than the field's range, and `~` for a value that is chosen once. A form that two cron programs interpret differently
 * (`5/10`, `50-10`) is refused. The lists of accepted and refused forms were checked against Debian's `crontab -n`.
 */
import { CarillonError } from "../../base/errors.ts";

export interface TimeFields {
  /** The expression in Carillon's dialect. */
  expression: string;
  /**
   * True if the minute or hour field begins with `*`, or for `@hourly`. Cron then runs the entry by elapsed time across a clock
   * change.
   */
  wildcard: boolean;
  /** The values that were chosen for `~`, as text for a note to the user. */
  chosen: string[];
}

interface FieldForm {
  name: string;
  min: number;
  max: number;
  /** The longest step that Carillon's own dialect allows. */
  longestStep: number;
  names?: readonly string[];
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const forms: readonly FieldForm[] = [
  { name: "minute", min: 0, max: 59, longestStep: 59 },
  { name: "hour", min: 0, max: 23, longestStep: 23 },
  { name: "day of month", min: 1, max: 31, longestStep: 30 },
  { name: "month", min: 1, max: 12, longestStep: 11, names: months },
  { name: "day of week", min: 0, max: 7, longestStep: 6, names: weekdays },
];

const nicknames = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/**
 * Converts the five fields.
 * @param choose returns a number from 0 to n − 1 for a field, the same one each time for the same input
 * @throws CRONTAB_INVALID
 */
export function readTimeFields(fields: readonly string[], choose: (field: string, n: number) => number): TimeFields {
  const chosen: string[] = [];
  const read = fields.map((field, index) => {
    const form = forms[index] as FieldForm;
    const pick = (low: number, high: number) => {
      const value = low + choose(`${index}:${field}`, high - low + 1);
      chosen.push(`${form.name} ${field} is ${value}`);
      return value;
    };
    return readField(form, field, pick);
  });
  const [, , day, , weekday] = read as [string, string, string, string, string];
  const [, , givenDay, , givenWeekday] = fields as [string, string, string, string, string];
  // If one day field begins with a star, cron requires that a day matches both day fields. An entry is refused if its conversion
  // would remove such a star.
  if (lostStar(givenDay, day) && !givenWeekday.startsWith("*")) throw starProblem("day of month", givenDay);
  if (lostStar(givenWeekday, weekday) && !givenDay.startsWith("*")) throw starProblem("day of week", givenWeekday);
  return {
    expression: read.join(" "),
    wildcard: (fields[0] as string).startsWith("*") || (fields[1] as string).startsWith("*"),
    chosen,
  };
}

/** Reads `@daily` and similar nicknames. @throws CRONTAB_INVALID for @reboot and for unknown nicknames */
export function readNickname(word: string): TimeFields {
  const name = word.toLowerCase();
  if (name === "@reboot") {
    throw refuse(
      "@reboot is the start of a machine, not a time, and cannot be carried over",
      "Start it from the service manager, or define the task without a schedule and run it from your start-up.",
    );
  }
  if (!nicknames.includes(name)) {
    throw refuse(
      `${word} is not a name that cron knows`,
      `Known are ${nicknames.join(", ")}; or write the five fields.`,
    );
  }
  return { expression: name, wildcard: name === "@hourly", chosen: [] };
}

function readField(form: FieldForm, field: string, pick: (low: number, high: number) => number): string {
  return field
    .split(",")
    .map((item) => readItem(form, field, item, pick))
    .join(",");
}

const number = /^(?:\d{1,4}|[a-z]{3})$/i;

function readItem(form: FieldForm, field: string, item: string, pick: (low: number, high: number) => number): string {
  const [base, stepText, ...more] = item.split("/") as [string, string?, ...string[]];
  if (item === "" || base === "" || more.length > 0) throw bad(form, field, "is incomplete or has a sign too many");
  if (base.includes("~")) return String(readRandom(form, field, base, stepText, pick));
  if (/[LW#?]/i.test(base) && !number.test(base) && !base.includes("-")) {
    throw bad(
      form,
      field,
      `has ${base}, which cron does not know`,
      "Define such a task in Carillon itself: its own cron has L, W and #.",
    );
  }

  let low = form.min;
  let high = form.max;
  if (base !== "*") {
    const ends = base.split("-");
    if (ends.length > 2 || !ends.every((end) => number.test(end)))
      throw bad(form, field, `has ${JSON.stringify(base)}`);
    low = readValue(form, field, ends[0] as string);
    high = ends.length === 2 ? readValue(form, field, ends[1] as string) : low;
    if (stepText !== undefined && ends.length === 1) {
      throw bad(
        form,
        field,
        "has a step after a single value, which cron programs read differently",
        `Write the range: ${low}-${form.max}/${stepText}.`,
      );
    }
    if (high < low) {
      const wrapped = form.name === "day of week" && high === 0 ? `${low}-7` : `${low}-${form.max},${form.min}-${high}`;
      throw bad(
        form,
        field,
        "runs backwards, which cron programs read differently",
        `If it is to wrap around, write ${wrapped}.`,
      );
    }
  }
  if (stepText === undefined) return base;
  const step = /^\d{1,4}$/.test(stepText) ? Number(stepText) : 0;
  if (step < 1)
    throw bad(form, field, `has the step ${JSON.stringify(stepText)}`, "A step is a whole number from 1, as in */5.");
  return step > form.longestStep ? String(low) : `${base}/${step}`;
}

/** Reads a random value of cronie and OpenBSD (`0~59`, `~`, `5~`, `~30`), which cron chooses once, when it loads the crontab. */
function readRandom(
  form: FieldForm,
  field: string,
  base: string,
  step: string | undefined,
  pick: (low: number, high: number) => number,
): number {
  const found = /^(\d{0,4})~(\d{0,4})$/.exec(base);
  if (found === null || step !== undefined) {
    throw bad(
      form,
      field,
      "has a random range that cannot be carried over",
      "Write low~high with plain numbers, or choose the values.",
    );
  }
  const low = found[1] === "" ? form.min : readValue(form, field, found[1] as string);
  const highest = form.name === "day of week" ? 6 : form.max;
  const high = found[2] === "" ? highest : readValue(form, field, found[2] as string);
  if (high < low) throw bad(form, field, "runs backwards", `Write the lower value first: ${high}~${low}.`);
  return pick(low, high);
}

function readValue(form: FieldForm, field: string, word: string): number {
  if (/^\d+$/.test(word)) {
    const value = Number(word);
    if (value >= form.min && value <= form.max) return value;
    throw bad(form, field, `has ${word}; ${form.min} to ${form.max} are allowed`);
  }
  const named = form.names?.indexOf(word.toLowerCase()) ?? -1;
  if (named >= 0) return named + (form.names === months ? 1 : 0);
  throw bad(form, field, `has ${JSON.stringify(word)}`);
}

const lostStar = (given: string, read: string) => given.startsWith("*") && !read.startsWith("*");

function starProblem(name: string, field: string): CarillonError {
  return refuse(
    `${name} ${JSON.stringify(field)} is a step longer than the field, and the other day field is restricted too`,
    "Write both day fields with plain values: cron then means either of them.",
  );
}

function bad(form: FieldForm, field: string, what: string, hint?: string): CarillonError {
  const names = form.names === undefined ? "" : `, ${form.names[0]} to ${form.names.at(-1)}`;
  return refuse(
    `${form.name} ${JSON.stringify(field)} ${what}`,
    hint ?? `Write ${form.min} to ${form.max}${names}, *, ranges (1-5), steps (*/5) and lists (1,2,3).`,
  );
}

export function refuse(message: string, hint: string): CarillonError {
  return new CarillonError("CRONTAB_INVALID", message, { hint });
}
