/** Parses the lines of a recurrence as calendar files have them: DTSTART, RRULE, RDATE, EXDATE. */
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { show } from "../given.ts";
import { wrongRule } from "./rule.ts";
import { type RuleTime, ruleTime } from "./rule-time.ts";

/** A time together with the zone that its line names; "" if the line names no zone. */
export interface ZonedTime {
  time: RuleTime;
  zone: string;
  /** The path of the text, for error messages. */
  path: string;
}

export interface RuleLines {
  rule: string;
  start: ZonedTime | null;
  rdate: ZonedTime[];
  exdate: ZonedTime[];
}

/** @param given an RRULE alone, or several lines @throws RRULE_INVALID */
export function ruleLines(given: unknown): RuleLines {
  if (typeof given !== "string" || given.trim() === "" || given.length > limits.ruleTextLength)
    throw wrongRule(
      `${show(given)} is not a text of 1 to ${limits.ruleTextLength} characters`,
      'Give a rule such as "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU".',
    );
  const lines: RuleLines = { rule: "", start: null, rdate: [], exdate: [] };
  // A line that begins with white space continues the previous line.
  const unfolded = given.trim().replace(/\r?\n[ \t]/g, "");
  for (const line of unfolded.split(/\r?\n/)) if (line.trim() !== "") readLine(line.trim(), lines);
  if (lines.rule === "") throw wrongRule("there is no RRULE", 'Add a line such as "RRULE:FREQ=DAILY".');
  return lines;
}

function readLine(line: string, lines: RuleLines): void {
  const [, given = "RRULE", parameters = "", value = line] = /^([A-Z-]+)((?:;[^:]*)?):(.*)$/i.exec(line) ?? [];
  const name = given.toUpperCase();
  switch (name) {
    case "RRULE":
      if (lines.rule !== "") throw wrongRule("RRULE is there twice", "Give each rule a task of its own.");
      lines.rule = value;
      return;
    case "DTSTART": {
      if (lines.start !== null) throw wrongRule("DTSTART is there twice", "Leave one of the two out.");
      const [start] = timesOf(name, parameters, value);
      lines.start = start as ZonedTime;
      return;
    }
    case "RDATE":
      lines.rdate.push(...timesOf(name, parameters, value));
      return;
    case "EXDATE":
      lines.exdate.push(...timesOf(name, parameters, value));
      return;
    default:
      throw wrongRule(
        `${show(name.slice(0, 20))} is not a line of a recurrence`,
        name === "EXRULE"
          ? "RFC 5545 has no EXRULE any more: list the times with EXDATE, or use a calendar or a blackout."
          : "Known are DTSTART, RRULE, RDATE, EXDATE.",
      );
  }
}

function timesOf(name: string, parameters: string, value: string): ZonedTime[] {
  let zone = "";
  for (const parameter of parameters.split(";").filter((one) => one !== "")) {
    const [, key = "", text = ""] = /^([A-Z-]+)="?([^"]*)"?$/i.exec(parameter) ?? [];
    if (key.toUpperCase() === "TZID") zone = text;
    else if (key.toUpperCase() !== "VALUE" || !/^DATE(?:-TIME)?$/i.test(text))
      throw wrongRule(
        `${name} has the parameter ${show(parameter.slice(0, 40))}`,
        "Known are TZID, VALUE=DATE and VALUE=DATE-TIME.",
      );
  }
  const items = value.split(",");
  if (name === "DTSTART" && items.length > 1) throw wrongRule("DTSTART has several times", "Give the others as RDATE.");
  return items.map((item) => ({ time: ruleTime(item.trim().toUpperCase(), name, "rule"), zone, path: "rule" }));
}

/** @throws RRULE_INVALID if there are more than limits.ruleDates times */
export function refuseMany(name: string, times: readonly unknown[]): void {
  if (times.length > limits.ruleDates)
    throw new CarillonError("RRULE_INVALID", `rrule: ${name} has ${times.length} times`, {
      hint: `At most ${limits.ruleDates}. For more use a calendar.`,
      path: name,
    });
}
