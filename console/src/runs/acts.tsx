import { Button } from "@mantine/core";
import { IconArrowBackUp, IconBan, IconRefresh } from "@tabler/icons-react";
import { useState } from "react";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { RunActDialog } from "./act-dialog.tsx";
import type { Run } from "./answers.ts";
import { actsOf, type RunAct } from "./states.ts";

const icons = { rerun: IconRefresh, retry: IconArrowBackUp, cancel: IconBan };

/** The buttons with the acts on a run. */
export function RunActs({ run }: { run: Run }) {
  const { t } = useWords();
  const may = useReach("operator").on(run.task);
  const [open, setOpen] = useState<RunAct>();
  if (!may) return null;
  return (
    <>
      {actsOf(run).map((act) => {
        const Icon = act === "fail" ? undefined : icons[act];
        return (
          <Button
            key={act}
            {...(act === "cancel" || act === "fail" ? { variant: "default" } : {})}
            {...(Icon ? { leftSection: <Icon size={17} aria-hidden /> } : {})}
            onClick={() => setOpen(act)}
          >
            {t(`run.${act}`)}
          </Button>
        );
      })}
      {open && <RunActDialog act={open} run={run} onClose={() => setOpen(undefined)} />}
    </>
  );
}
