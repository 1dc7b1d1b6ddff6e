import { isConfirmed, useStanding } from "../../live/live.ts";
import { useWords } from "../../messages/words.ts";

/** Tells whether the data of a part of a screen is loaded and current. The part must not show outdated data as current. */
export function useKnown(of: { data: unknown; error: unknown }[]) {
  const { t, when } = useWords();
  const { state, sinceMs } = useStanding();
  const isThere = of.every(({ data }) => data !== undefined);
  const isHeld = isConfirmed(state);
  return {
    /** True if all answers have arrived, even if they are out of date. */
    isThere,
    /** True if all answers have arrived and the server is not known to be unavailable. */
    isKnown: isThere && isHeld,
    /** True if the server or its store is unavailable, or if an answer is missing because of an error; false while answers only load. */
    isLost: !isHeld || of.some(({ data, error }) => data === undefined && error !== null),
    /** A text that says since when the data is unknown. */
    told: sinceMs === null ? t("known.notYet") : t("known.since", { time: when(sinceMs) }),
  };
}
