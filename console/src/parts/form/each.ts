/** Of many that one dialog acts on: one by one, each with a key of its own, so that what is repeated is done once. */
import { useRef, useState } from "react";
import { useWords } from "../../messages/words.ts";
import { toast } from "../state/toasts.tsx";
import type { Doing } from "./confirm.tsx";

/** Another try goes on where the last one ended; one that is left stops before the next, and how far it came is told. */
export function useEach<Item>(items: readonly Item[]) {
  const { t } = useWords();
  const next = useRef(0);
  const [done, setDone] = useState(0);
  /** @returns whether all are done */
  const each = async ({ key, signal }: Doing, act: (item: Item, key: string) => Promise<unknown>): Promise<boolean> => {
    try {
      for (const [at, item] of items.entries()) {
        if (at < next.current) continue;
        if (signal.aborted) break;
        await act(item, `${key}-${at}`);
        next.current = at + 1;
        setDone(next.current);
      }
    } finally {
      const isStopped = signal.aborted && next.current < items.length;
      if (isStopped) toast({ text: t("bulk.stopped", { done: next.current, n: items.length }) });
    }
    return next.current === items.length;
  };
  return { done, each };
}
