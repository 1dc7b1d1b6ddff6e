/**
 * Measures and cleans text for a terminal. Names, messages and logs come from outside, so control characters are replaced or
 * removed before they are written.
 */

const acting = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const zeroWidth = /[\p{M}\p{Cf}]/u;
const ascii = /^[\x20-\x7e]*$/;

/**
 * Converts text to one line without control characters: line ends and tabs become spaces, "\r" is removed, and other control characters
 * (also those for the text's direction) become their symbol, such as ␛, or �.
 */
export function plain(text: string): string {
  return text.replace(acting, (character) => {
    if (/[\n\t\u2028\u2029]/.test(character)) return " ";
    if (character === "\r") return "";
    return character < " " ? String.fromCodePoint(0x2400 + (character.codePointAt(0) as number)) : "�";
  });
}

/** Splits text into lines and applies `plain` to each. */
export const plainLines = (text: string): string[] => text.replace(/\r\n?/g, "\n").split("\n").map(plain);

/** The number of columns that the text takes up. */
export function widthOf(text: string): number {
  if (ascii.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += zeroWidth.test(character) ? 0 : wide.test(character) ? 2 : 1;
  return width;
}

/** The text cut to at most `width` columns; a cut text ends with "…". */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return width < 1 ? "" : `${start(text, width - 1)}…`;
}

/** The longest prefix of whole characters that fits into `width` columns. */
function start(text: string, width: number): string {
  let room = width;
  let kept = "";
  for (const character of text) {
    room -= widthOf(character);
    if (room < 0) break;
    kept += character;
  }
  return kept;
}

export function pad(text: string, width: number, align: "left" | "right" = "left"): string {
  const room = " ".repeat(Math.max(0, width - widthOf(text)));
  return align === "left" ? text + room : room + text;
}

/** Breaks the text into lines of whole words; a word longer than a line is broken into pieces. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  let used = 0;
  for (const word of text.split(" ")) {
    const size = widthOf(word);
    if (line !== "" && used + 1 + size > width) {
      lines.push(line);
      line = "";
    }
    if (line === "" && size > width) {
      const pieces = piecesOf(word, width);
      line = pieces.pop() as string;
      used = widthOf(line);
      lines.push(...pieces);
      continue;
    }
    used = line === "" ? size : used + 1 + size;
    line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Breaks a word into pieces of at most `width` columns; a single character wider than `width` forms a piece by itself. */
function piecesOf(word: string, width: number): string[] {
  const pieces: string[] = [];
  let piece = "";
  let used = 0;
  for (const character of word) {
    const size = widthOf(character);
    if (piece !== "" && used + size > width) {
      pieces.push(piece);
      piece = "";
      used = 0;
    }
    piece += character;
    used += size;
  }
  return [...pieces, piece];
}
