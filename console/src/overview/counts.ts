import { useWords } from "../messages/words.ts";
import type { Counted } from "./figures.ts";

/** Texts of a number of rows: `12`, or `100+` where more pages follow. */
export function useCounts() {
  const { count } = useWords();
  const least = ({ n, isMore }: Counted) => `${count(n)}${isMore ? "+" : ""}`;
  /** The value of `n` for a text with a plural form: the number, or "100+", which takes the plural. */
  const leastOf = (counted: Counted) => (counted.isMore ? least(counted) : counted.n);
  return { least, leastOf };
}
