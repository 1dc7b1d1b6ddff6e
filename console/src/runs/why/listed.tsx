/** The reasons why the runs of a list wait: read in one request for the rows that are shown. */
import { createContext, type ReactNode, useContext, useMemo } from "react";
import { useAnswer } from "../../api/answers.ts";
import { useWords } from "../../messages/words.ts";
import { useNow } from "../../now.ts";
import { plain } from "../../parts/value/plain.ts";
import type { ListedRun } from "../answers.ts";
import { isWaiting } from "./why.tsx";
import { type Reason, whyText } from "./why-text.ts";

const everyMs = 5_000;
/** The most runs that the server explains in one request. */
export const explainedMost = 100;

const Explained = createContext<ReadonlyMap<number, readonly Reason[]>>(new Map());

/** @param seen the keys of the rows that are shown */
export function ExplainedRuns({
  rows,
  seen,
  children,
}: {
  rows: ListedRun[];
  seen: readonly string[];
  children: ReactNode;
}) {
  const shown = useMemo(() => new Set(seen), [seen]);
  const waiting = rows.filter((run) => shown.has(String(run.run)) && isWaiting(run)).slice(0, explainedMost);
  const { data } = useAnswer(
    "explainRuns",
    { run: waiting.map(({ run }) => run) },
    { enabled: waiting.length > 0, everyMs, keep: true },
  );
  const found = useMemo(() => new Map((data?.runs ?? []).map(({ run, reasons }) => [run, reasons])), [data]);
  return <Explained value={found}>{children}</Explained>;
}

/** The reasons why a run of the list waits; empty until the server has explained it. */
export const useReasons = (run: number): readonly Reason[] => useContext(Explained).get(run) ?? [];

/** The first reason why a run of the list waits; otherwise its error. */
export function ErrorOrWhy({ run }: { run: ListedRun }) {
  const words = useWords();
  const now = useNow();
  const reasons = useReasons(run.run);
  if (!isWaiting(run) || reasons.length === 0)
    return <span title={run.error?.message}>{plain(run.error?.message ?? "")}</span>;
  const texts = reasons.map((reason) => plain(whyText(reason, words, now)));
  return (
    <span className="soft" title={texts.join(" ")} data-why={reasons[0]?.code}>
      {texts[0]}
    </span>
  );
}
