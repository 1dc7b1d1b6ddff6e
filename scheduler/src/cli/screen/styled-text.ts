import { widthOf } from "./text.ts";

/** The colour sequences that `style.ts` puts around text; `\p{Cc}` matches the escape character. */
const colour = /\p{Cc}\[[0-9;]*m/gu;

/** The width in columns of a line that may contain colour sequences, which take up no columns. */
export const styledWidth = (line: string): number => widthOf(line.replace(colour, ""));

/** Cuts a coloured line to `width` columns. Colour sequences have no width; a cut line ends with "…", and resets colours that it set. */
export function cutStyled(line: string, width: number): string {
  if (styledWidth(line) <= width) return line;
  let used = 0;
  let kept = "";
  let coloured = false;
  for (const piece of line.split(/(\p{Cc}\[[0-9;]*m)/u)) {
    if (piece.startsWith("\u001b")) {
      kept += piece;
      coloured = true;
      continue;
    }
    for (const character of piece) {
      used += widthOf(character);
      if (used > width - 1) return `${kept}${width > 0 ? "…" : ""}${coloured ? "\u001b[0m" : ""}`;
      kept += character;
    }
  }
  return kept;
}
