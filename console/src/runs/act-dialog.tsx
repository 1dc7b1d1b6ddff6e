/** The dialog of an act on one run, for the run's page, the graph of its family and the command palette. */
import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm, type Doing } from "../parts/form/confirm.tsx";
import { toast } from "../parts/state/toasts.tsx";
import type { Run } from "./answers.ts";
import { Rerun } from "./rerun.tsx";
import type { RunAct } from "./states.ts";

/** @param act "edit" is a rerun that begins in the field of the payload */
export function RunActDialog({ act, run, onClose }: { act: RunAct | "edit"; run: Run; onClose: () => void }) {
  const { t } = useWords();
  const number = run.run;
  if (act === "rerun" || act === "edit") return <Rerun run={run} edits={act === "edit"} onClose={onClose} />;
  const acts: Record<typeof act, (doing: Doing) => Promise<unknown>> = {
    cancel: async ({ reason, key }) => {
      const { outcome } = await call("cancelRun", { run: number, reason }, { key });
      toast({ text: t(outcome === "cancelled" ? "run.cancelled" : "run.stopping", { run: String(number) }) });
    },
    retry: ({ reason, key }) => call("decideRun", { run: number, how: "retry", reason }, { key }),
    fail: ({ reason, key }) => call("decideRun", { run: number, how: "fail", reason }, { key }),
  };
  return (
    <Confirm
      title={t(`run.${act}Title`, { run: String(number) })}
      consequence={t(act === "cancel" && run.state === "claimed" ? "run.cancelRunningTold" : `run.${act}Told`)}
      act={t(`run.${act}`)}
      grave={act === "cancel" || act === "fail"}
      onDo={async (doing) => {
        await acts[act](doing);
        outdate("getRun", "getRunFamily", "listRuns", "listRecentRuns");
      }}
      onClose={onClose}
    />
  );
}
