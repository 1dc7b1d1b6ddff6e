import { outdate } from "../api/answers.ts";
import { call, type Given } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { toast } from "../parts/state/toasts.tsx";

/** Starts an operation and shows it. If the user has left the dialog meanwhile, a toast reports that the operation continues. */
export function useBegin() {
  const { t } = useWords();
  return async (
    request: Given<"beginOperation">,
    { key, signal }: { key: string; signal: AbortSignal },
    show: (operation: number) => void,
  ): Promise<void> => {
    const { operation } = await call("beginOperation", request, { key });
    outdate("listOperations");
    if (signal.aborted) toast({ text: t("bulk.begun", { operation: String(operation) }) });
    else show(operation);
  };
}
