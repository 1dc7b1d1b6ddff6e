import { useEffect, useRef } from "react";
import { isRefusal } from "../api/call.ts";
import { useLine } from "../live/live.ts";
import { useWords } from "../messages/words.ts";
import { Page } from "../parts/layout/page.tsx";
import { Trouble } from "../parts/state/notice.tsx";

/** Shown instead of a screen that crashed or could not be loaded; the rest of the console stays usable. */
export function Broken({ error, reset }: { error: unknown; reset: () => void }) {
  const { t } = useWords();
  const isAway = isRefusal(error, "SERVER_UNREACHABLE");
  const { state } = useLine();
  const stood = useRef(state === "live");
  useEffect(() => {
    // When the server is reachable again, a reload loads the code of the screen that the address names.
    if (isAway && state === "live" && !stood.current) window.location.reload();
    stood.current = state === "live";
  }, [isAway, state]);
  return (
    <Page title={t(isAway ? "line.broken" : "broken.title")}>
      <Trouble error={error} again={isAway ? () => window.location.reload() : reset} />
    </Page>
  );
}
