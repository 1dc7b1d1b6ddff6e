/**
 * Finds numbers in a JSON text that a JavaScript number cannot represent: 12345678901234567890 would become another number, and 1e400 would
 * become null. A number counts as representable if printing the parsed number gives the same decimal number, either as JavaScript prints it
 * or with as many digits as the text has. So 0.1 and 0.10000000000000001 both count as representable.
 */

export interface InexactNumber {
  /** The number as written in the text. */
  readonly number: string;
  /** Member names and list indexes from the outermost value to the number; empty if the text consists of this number alone. */
  readonly path: readonly (string | number)[];
}

/** A number that loses precision has 16 digits and points in a row, or an exponent; texts without either are not scanned. */
const suspect = /[\d.]{16}|\d[eE][+-]?\d/;
const numberAt = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/** Yields the numbers that cannot be represented, in order. @param text JSON that has been parsed without an error */
export function* inexactNumbers(text: string): Generator<InexactNumber, void> {
  if (!suspect.test(text)) return;
  /** For each open object or list, from the outermost, the member name or list index at the current position. */
  const path: (string | number)[] = [];
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string;
    const last = path.length - 1;
    if (character === "[") path.push(0);
    else if (character === "{") path.push("");
    else if (character === "]" || character === "}") path.pop();
    else if (character === ",") {
      if (typeof path[last] === "number") path[last]++;
    } else if (character === '"') {
      const end = endOfString(text, at);
      if (typeof path[last] === "string" && isName(text, end)) path[last] = JSON.parse(text.slice(at, end + 1));
      at = end;
    } else if (character === "-" || (character >= "0" && character <= "9")) {
      numberAt.lastIndex = at;
      const [number = character] = numberAt.exec(text) ?? [];
      if (suspect.test(number) && !isExact(number)) yield { number, path: [...path] };
      at += number.length - 1;
    }
  }
}

/** True if a JavaScript number represents the decimal number exactly enough. @param number in JSON's notation */
export function isExact(number: string): boolean {
  const value = Number(number);
  if (!Number.isFinite(value)) return false;
  const written = decimalOf(number);
  const digits = written.split("e")[0] as string;
  if (digits === "" || decimalOf(String(value)) === written) return true;
  // `toPrecision` accepts at most 100 digits.
  return digits.length <= 100 && decimalOf(value.toPrecision(digits.length)) === written;
}

/** Normalises a number: its digits without zeros at either end, and the power of ten. Equal for all notations of the same number. */
function decimalOf(number: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? [];
  const all = `${whole}${fraction}`.replace(/^0+/, "");
  const digits = all.replace(/0+$/, "");
  if (digits === "") return "";
  return `${digits}e${Number(exponent) - fraction.length + all.length - digits.length}${sign}`;
}

/** True if a colon follows the string, so that the string is a member's name. @param end the index of the string's closing quote */
function isName(text: string, end: number): boolean {
  let at = end + 1;
  while (text[at] === " " || text[at] === "\n" || text[at] === "\r" || text[at] === "\t") at++;
  return text[at] === ":";
}

/** Returns the index of a string's closing quote. @param text valid JSON @param from the index of the string's opening quote */
export function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text[at - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return at;
  }
}
