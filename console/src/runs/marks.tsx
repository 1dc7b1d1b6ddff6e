import { useWords } from "../messages/words.ts";
import { useNow } from "../now.ts";
import { StateMark, shownState } from "../parts/state/mark.tsx";
import type { ListedRun } from "./answers.ts";

export function RunMark({ run }: { run: ListedRun }) {
  const now = useNow();
  return <StateMark state={shownState(run, now)} />;
}

/** The start delay from which a run is highlighted as late. */
const lateFromMs = 1_000;

export function Lateness({ ms }: { ms: number | null }) {
  const { span } = useWords();
  if (ms === null) return null;
  return (
    <span
      className="figures"
      style={ms >= lateFromMs ? { color: "var(--c-late)", fontWeight: 600 } : { color: "var(--c-soft)" }}
    >
      {span(Math.max(0, ms))}
    </span>
  );
}
