/** Parses the lines of an iCalendar file (RFC 5545, section 3.1) into components. Properties keep their line numbers for error messages. */
import { CarillonError } from "../../base/errors.ts";

export interface Property {
  /** The name in capitals; the names of parameters are in capitals too. */
  name: string;
  parameters: ReadonlyMap<string, string>;
  value: string;
  /** The line number, from 1. */
  line: number;
}

export interface Component {
  name: string;
  line: number;
  properties: Property[];
  components: Component[];
}

export const invalid = (what: string, hint: string): CarillonError =>
  new CarillonError("CALENDAR_INVALID", `calendar: ${what}`, { hint });

export const wrong = ({ line, name }: Pick<Property, "line" | "name">, what: string, hint: string): CarillonError =>
  invalid(`line ${line}, ${name}: ${what}`, hint);

/** @returns the calendars (VCALENDAR) in the file @throws CALENDAR_INVALID */
export function calendarsOf(text: string): Component[] {
  const file: Component = { name: "", line: 0, properties: [], components: [] };
  const open = [file];
  for (const property of propertiesOf(text)) {
    const { name, line } = property;
    const value = property.value.trim().toUpperCase();
    const current = open.at(-1) as Component;
    if (current === file && (name !== "BEGIN" || value !== "VCALENDAR")) throw noCalendar(line);
    if (name === "BEGIN") {
      const component = { name: value, line, properties: [], components: [] };
      current.components.push(component);
      open.push(component);
    } else if (name !== "END") current.properties.push(property);
    else if (value === current.name) open.pop();
    else throw wrong(property, `${value.slice(0, 40)} ends where ${current.name} is open`, beginHint(current));
  }
  const last = open.at(-1) as Component;
  if (last !== file) throw invalid(`line ${last.line}: ${last.name} has no end`, beginHint(last));
  if (file.components.length === 0) throw noCalendar(1);
  return file.components;
}

const beginHint = ({ name, line }: Component) =>
  `BEGIN:${name} in line ${line} needs a line END:${name}. Was the file cut?`;

const noCalendar = (line: number) =>
  invalid(`this is no calendar: see line ${line}`, "An ICS file begins with BEGIN:VCALENDAR.");

function* propertiesOf(text: string): Generator<Property> {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  for (let at = 0; at < lines.length; ) {
    const line = at + 1;
    let whole = lines[at++] as string;
    // A line that begins with white space continues the previous line.
    while (/^[ \t]/.test(lines[at] ?? "")) whole += (lines[at++] as string).slice(1);
    if (whole.trim() !== "") yield propertyOf(whole, line);
  }
}

const parameter = /;([\w-]+)=((?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*)/y;

function propertyOf(given: string, line: number): Property {
  // Outlook writes TZID=(UTC+01:00) Amsterdam, Berlin, a value that contains a colon but is not quoted. Quotes are added here.
  const text = given.replace(/(;TZID=)(\((?:UTC|GMT)[^)"]*\)[^";]*?)(?=:\d|;)/i, '$1"$2"');
  const name = /^[\w-]+/.exec(text)?.[0] ?? "";
  const parameters = new Map<string, string>();
  let at = name.length;
  for (;;) {
    parameter.lastIndex = at;
    const found = parameter.exec(text);
    if (found === null) break;
    parameters.set((found[1] as string).toUpperCase(), (found[2] as string).replace(/"/g, ""));
    at = parameter.lastIndex;
  }
  if (name === "" || text[at] !== ":") throw noProperty(line, text);
  return { name: name.toUpperCase(), parameters, value: text.slice(at + 1), line };
}

const noProperty = (line: number, text: string) =>
  line === 1
    ? noCalendar(1)
    : invalid(
        `line ${line}: ${JSON.stringify(text.slice(0, 60))} is not NAME:VALUE`,
        "A line that goes on with the one before it begins with a space.",
      );

/** Returns the component's property with this name; undefined if there is none. @throws CALENDAR_INVALID if there are several */
export function single(component: Component, name: string): Property | undefined {
  const [first, second] = component.properties.filter((one) => one.name === name);
  if (second) throw wrong(second, `is there twice, in line ${first?.line} too`, "Leave one of the two out.");
  return first;
}
