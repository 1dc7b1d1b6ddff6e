/** Pauses or resumes many tasks: the selected tasks, or all matching tasks as an operation, which can be watched and stopped. */
import { type ReactNode, useState } from "react";
import { outdate } from "../../api/answers.ts";
import { call, type Given } from "../../api/call.ts";
import { useWords } from "../../messages/words.ts";
import { BeginMatching, Names } from "../../operations/begin.tsx";
import { Confirm } from "../../parts/form/confirm.tsx";
import { useEach } from "../../parts/form/each.ts";
import { Gauge } from "../../parts/state/gauge.tsx";
import { toast } from "../../parts/state/toasts.tsx";
import { UntilField } from "../until-field.tsx";

export type TaskFilter = Given<"previewOperation">["filter"];
export type BulkTarget = { kind: "pause" | "resume" } & ({ tasks: string[] } | { filter: TaskFilter });

export function Bulk({ target, onClose, onDone }: { target: BulkTarget; onClose: () => void; onDone: () => void }) {
  const { t } = useWords();
  const { kind } = target;
  const [until, setUntil] = useState<string>();
  const fields = kind === "pause" && <UntilField value={until} onChange={setUntil} />;
  if ("tasks" in target)
    return <Chosen kind={kind} tasks={target.tasks} until={until} fields={fields} onClose={onClose} onDone={onDone} />;
  return (
    <BeginMatching
      kind={kind}
      filter={target.filter}
      pauseUntil={until}
      fields={fields}
      titleOf={(n) => t(`bulk.${kind}Title`, { n })}
      consequence={t(`task.${kind}Told`)}
      act={t(`task.${kind}`)}
      none={t(`bulk.${kind}None`)}
      onClose={onClose}
      onDone={onDone}
    />
  );
}

function Chosen({
  kind,
  tasks,
  until,
  fields,
  onClose,
  onDone,
}: {
  kind: "pause" | "resume";
  tasks: string[];
  /** The time at which the pause ends; undefined if it has no end. */
  until: string | undefined;
  fields: ReactNode;
  onClose: () => void;
  onDone: () => void;
}) {
  const { t } = useWords();
  const { done, each } = useEach(tasks);
  return (
    <Confirm
      title={t(`bulk.${kind}Title`, { n: tasks.length })}
      consequence={t(`task.${kind}Told`)}
      act={t(`task.${kind}`)}
      asksReason
      onDo={async (doing) => {
        const { reason } = doing;
        try {
          const act = (task: string, key: string) =>
            kind === "pause"
              ? call("pauseTask", { task, reason, until }, { key })
              : call("resumeTask", { task, reason }, { key });
          if (!(await each(doing, act))) return;
        } finally {
          outdate("listTasks", "getTask", "listComing");
        }
        toast({ text: t(`bulk.${kind}Done`, { n: tasks.length }) });
        if (!doing.signal.aborted) onDone();
      }}
      onClose={onClose}
    >
      {fields}
      <Names names={tasks} total={tasks.length} />
      {done > 0 && <Gauge done={done} total={tasks.length} label={t("bulk.progress")} />}
    </Confirm>
  );
}
