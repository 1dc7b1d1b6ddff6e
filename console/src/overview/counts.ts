import { useWords } from "../messages/words.ts";
import type { Counted } from "./figures.ts";

/** Texts of a number of rows: `12`, or `100+` where more pages follow. */
export function useCounts() {
  const { count } = useWords();
  const least = ({ n, isMore }: Counted) => `${count(n)}${isMore ? "+" : ""}`;
  /** For a sentence, which has another form for one. */
  const leastOf = (counted: Counted) => (counted.isMore ? least(counted) : counted.n);
  return { least, leastOf };
}
