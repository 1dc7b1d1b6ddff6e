/** Acts on several items from one dialog, one after the other. Each item has its own idempotency key, so that a retry is harmless. */
import { useRef, useState } from "react";
import { useWords } from "../../messages/words.ts";
import { toast } from "../state/toasts.tsx";
import type { Doing } from "./confirm.tsx";

/**
 * Returns `each`, which calls an act for every item, and the number of items done. A retry continues with the item that failed. If
 * the dialog is closed, the loop stops before the next item, and a toast reports how many items are done.
 */
export function useEach<Item>(items: readonly Item[]) {
  const { t } = useWords();
  const next = useRef(0);
  const [done, setDone] = useState(0);
  /** @returns true if all items are done */
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
