import { isConfirmed, useStanding } from "../../live/live.ts";
import { useWords } from "../../messages/words.ts";

/** How much is known of a part of a screen that is made of these answers. A part must not claim what it does not know. */
export function useKnown(of: { data: unknown; error: unknown }[]) {
  const { t, when } = useWords();
  const { state, sinceMs } = useStanding();
  const isThere = of.every(({ data }) => data !== undefined);
  const isHeld = isConfirmed(state);
  return {
    /** All answers have arrived, now or earlier. */
    isThere,
    /** All have arrived, and the server still reads its store. */
    isKnown: isThere && isHeld,
    /** False while the answers are only loading. */
    isLost: !isHeld || of.some(({ data, error }) => data === undefined && error !== null),
    /** Since when it is not known. */
    told: sinceMs === null ? t("known.notYet") : t("known.since", { time: when(sinceMs) }),
  };
}
