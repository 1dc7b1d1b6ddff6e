/** Pauses or resumes many tasks: those that were chosen, or all that match, as an operation that can be watched and stopped. */
import { Button, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { call, type Given } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { OperationLink } from "../operations/filter-text.tsx";
import { Confirm } from "../parts/confirm.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Shown, Trouble } from "../parts/notice.tsx";
import { toast } from "../parts/toasts.tsx";
import css from "./tasks.module.css";
import { Gauge } from "./tasks.tsx";

type TaskFilter = Given<"previewOperation">["filter"];
export type BulkTarget = { kind: "pause" | "resume" } & ({ tasks: string[] } | { filter: TaskFilter });

const namesShown = 8;

export function Bulk({ target, onClose, onDone }: { target: BulkTarget; onClose: () => void; onDone: () => void }) {
  return "tasks" in target ? (
    <Chosen kind={target.kind} tasks={target.tasks} onClose={onClose} onDone={onDone} />
  ) : (
    <Matched kind={target.kind} filter={target.filter} onClose={onClose} onDone={onDone} />
  );
}

function Chosen({
  kind,
  tasks,
  onClose,
  onDone,
}: {
  kind: "pause" | "resume";
  tasks: string[];
  onClose: () => void;
  onDone: () => void;
}) {
  const { t } = useWords();
  const [done, setDone] = useState(0);
  return (
    <Confirm
      title={t(`bulk.${kind}Title`, { n: tasks.length })}
      consequence={t(`task.${kind}Told`)}
      act={t(`task.${kind}`)}
      asksReason
      onDo={async ({ reason, key }) => {
        for (const [at, task] of tasks.entries()) {
          await call(kind === "pause" ? "pauseTask" : "resumeTask", { task, reason }, { key: `${key}-${at}` });
          setDone(at + 1);
        }
        outdate("listTasks", "getTask", "listComing");
        toast({ text: t(`bulk.${kind}Done`, { n: tasks.length }) });
        onDone();
      }}
      onClose={onClose}
    >
      <Names names={tasks.slice(0, namesShown)} total={tasks.length} />
      {done > 0 && <Gauge done={done} total={tasks.length} label={t("bulk.progress")} />}
    </Confirm>
  );
}

function Matched({
  kind,
  filter,
  onClose,
  onDone,
}: {
  kind: "pause" | "resume";
  filter: TaskFilter;
  onClose: () => void;
  onDone: () => void;
}) {
  const { t } = useWords();
  const [operation, setOperation] = useState<number>();
  const isBegun = useRef(false);
  const preview = useAnswer("previewOperation", { kind, filter });
  const total = preview.data?.total ?? 0;
  if (operation !== undefined) return <Watched operation={operation} onClose={onDone} />;
  return (
    <Confirm
      title={preview.data ? t(`bulk.${kind}Title`, { n: total }) : t("bulk.counting")}
      consequence={t(`task.${kind}Told`)}
      act={t(`task.${kind}`)}
      blocked={total === 0}
      onDo={async ({ reason, key }) => {
        const begun = await call("beginOperation", { kind, filter, reason }, { key });
        isBegun.current = true;
        setOperation(begun.operation);
      }}
      // The operation is shown where the question was.
      onClose={() => {
        if (!isBegun.current) onClose();
      }}
    >
      <Shown of={preview} rows={3}>
        {(data) =>
          data.total === 0 ? (
            <p>{t(`bulk.${kind}None`)}</p>
          ) : (
            <Names names={data.first.slice(0, namesShown)} total={data.total} />
          )
        }
      </Shown>
    </Confirm>
  );
}

export function Names({ names, total }: { names: string[]; total: number }) {
  const { t } = useWords();
  return (
    <ul className={css.first}>
      {names.map((name) => (
        <li key={name}>{name}</li>
      ))}
      {total > names.length && <li className="soft">{t("bulk.andMore", { n: total - names.length })}</li>}
    </ul>
  );
}

/** Goes on without being watched, too. */
export function Watched({ operation, onClose }: { operation: number; onClose: () => void }) {
  const { t } = useWords();
  const asked = useAnswer("getOperation", { operation }, { everyMs: 500 });
  const stop = useMutation({ mutationFn: () => call("stopOperation", { operation }) });
  const isOver = asked.data !== undefined && !["running", "stopping"].includes(asked.data.state);
  const close = () => {
    outdate("listTasks", "getTask", "listComing", "listRuns", "listOperations");
    onClose();
  };
  return (
    <Dialog onClose={close} title={t("bulk.operation", { operation: String(operation) })}>
      <Shown of={asked} rows={3}>
        {(data) => (
          <>
            <p role="status">
              {t(`operation.${data.state}`)} · {t("bulk.done", { done: data.done + data.passed, n: data.total })}
              {data.failed > 0 && ` · ${t("bulk.failed", { n: data.failed })}`}
            </p>
            <Gauge done={data.done + data.passed + data.failed} total={data.total} label={t("bulk.progress")} />
            {data.error && <p>{data.error}</p>}
          </>
        )}
      </Shown>
      <p className="soft">
        <OperationLink operation={operation}>{t("operations.see")}</OperationLink>
      </p>
      {stop.error && <Trouble error={stop.error} small />}
      <Group justify="flex-end" mt="lg">
        {!isOver && (
          <Button variant="default" loading={stop.isPending} onClick={() => stop.mutate()}>
            {t("bulk.stop")}
          </Button>
        )}
        <Button onClick={close}>{isOver ? t("act.close") : t("bulk.leave")}</Button>
      </Group>
    </Dialog>
  );
}
