import { Button } from "@mantine/core";
import { IconArrowBackUp, IconBan, IconRefresh } from "@tabler/icons-react";
import { useState } from "react";
import { outdate } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Confirm, type Doing } from "../parts/form/confirm.tsx";
import { toast } from "../parts/state/toasts.tsx";
import type { Run } from "./answers.ts";
import { Rerun } from "./rerun.tsx";
import { isOver } from "./states.ts";

type Act = "cancel" | "rerun" | "retry" | "fail";

/** The buttons with the acts on a run. */
export function RunActs({ run }: { run: Run }) {
  const { t } = useWords();
  const may = useReach("operator").on(run.task);
  const [act, setAct] = useState<Act>();
  if (!may) return null;
  const number = run.run;
  const after = () => outdate("getRun", "getRunFamily", "listRuns", "listRecentRuns");
  const acts: Record<Exclude<Act, "rerun">, (doing: Doing) => Promise<unknown>> = {
    cancel: async ({ reason, key }) => {
      const { outcome } = await call("cancelRun", { run: number, reason }, { key });
      toast({ text: t(outcome === "cancelled" ? "run.cancelled" : "run.stopping", { run: String(number) }) });
    },
    retry: ({ reason, key }) => call("decideRun", { run: number, how: "retry", reason }, { key }),
    fail: ({ reason, key }) => call("decideRun", { run: number, how: "fail", reason }, { key }),
  };
  return (
    <>
      {isOver(run) && (
        <Button leftSection={<IconRefresh size={17} aria-hidden />} onClick={() => setAct("rerun")}>
          {t("run.rerun")}
        </Button>
      )}
      {run.state === "undecided" && (
        <>
          <Button leftSection={<IconArrowBackUp size={17} aria-hidden />} onClick={() => setAct("retry")}>
            {t("run.retry")}
          </Button>
          <Button variant="default" onClick={() => setAct("fail")}>
            {t("run.fail")}
          </Button>
        </>
      )}
      {!isOver(run) && run.state !== "undecided" && (
        <Button variant="default" leftSection={<IconBan size={17} aria-hidden />} onClick={() => setAct("cancel")}>
          {t("run.cancel")}
        </Button>
      )}
      {act === "rerun" && <Rerun run={run} onClose={() => setAct(undefined)} />}
      {act && act !== "rerun" && (
        <Confirm
          title={t(`run.${act}Title`, { run: String(number) })}
          consequence={t(act === "cancel" && run.state === "claimed" ? "run.cancelRunningTold" : `run.${act}Told`)}
          act={t(`run.${act}`)}
          grave={act === "cancel" || act === "fail"}
          onDo={async (doing) => {
            await acts[act](doing);
            after();
          }}
          onClose={() => setAct(undefined)}
        />
      )}
    </>
  );
}
