import { plain } from "../../parts/value/plain.ts";

/** A part of a log message in one style. `pieces` interprets terminal colours and drops all other escape sequences. */
export interface Piece {
  text: string;
  /** 0 to 15; null for the default colour. */
  colour: number | null;
  bold: boolean;
  faint: boolean;
  underlined: boolean;
}

type Style = Omit<Piece, "text">;
const unstyled: Style = { colour: null, bold: false, faint: false, underlined: false };

const escapes =
  /\u001b(?:\[([0-9;:]*)([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f]/g;

export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let style = unstyled;
  let from = 0;
  const put = (until: number) => {
    const part = plain(text.slice(from, until));
    if (part !== "") found.push({ text: part, ...style });
  };
  for (const match of text.matchAll(escapes)) {
    put(match.index);
    from = match.index + match[0].length;
    if (match[2] === "m") style = styled(style, match[1] ?? "");
  }
  put(text.length);
  return found;
}

function styled(before: Style, codes: string): Style {
  let style = before;
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at] ?? 0;
    if (code === 0) style = unstyled;
    else if (code === 1) style = { ...style, bold: true };
    else if (code === 2) style = { ...style, faint: true };
    else if (code === 4) style = { ...style, underlined: true };
    else if (code === 22) style = { ...style, bold: false, faint: false };
    else if (code === 24) style = { ...style, underlined: false };
    else if (code === 39) style = { ...style, colour: null };
    else if (code >= 30 && code <= 37) style = { ...style, colour: code - 30 };
    else if (code >= 90 && code <= 97) style = { ...style, colour: code - 82 };
    else if (code === 38 || code === 48) {
      // 256-colour codes above 15 and true colours are not supported; their parameters are skipped.
      const colour = numbers[at + 2] ?? 16;
      if (code === 38 && numbers[at + 1] === 5 && colour < 16) style = { ...style, colour };
      at += numbers[at + 1] === 5 ? 2 : numbers[at + 1] === 2 ? 4 : 0;
    }
  }
  return style;
}

/** The text without escape sequences, for searching. */
export const bare = (text: string): string => text.replace(escapes, "");
