/** Reruns a run, with its own payload or with another payload. */
import { useNavigate } from "@tanstack/react-router";
import { outdate, useAnswer } from "../api/answers.ts";
import { call, type Given } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm, type Doing } from "../parts/form/confirm.tsx";
import { toast } from "../parts/state/toasts.tsx";
import type { Task } from "../tasks/answers.ts";
import { isReadable, usePayload } from "../tasks/run/payload.ts";
import { PayloadField } from "../tasks/run/payload-field.tsx";
import css from "../tasks/task.module.css";
import type { ListedRun, Run } from "./answers.ts";

/** @param edits true places the focus in the field of the payload */
export function Rerun({ run, edits = false, onClose }: { run: Run; edits?: boolean; onClose: () => void }) {
  const task = useAnswer("getTask", { task: run.task });
  const plain = <Asked run={run} onClose={onClose} again={(doing) => again(run, doing)} />;
  if (!isReadable(run.payload)) return plain;
  // The payload's form follows the task's schema. A removed task has no schema; then the server refuses the rerun and says why.
  if (task.data) return <Edited run={run} task={task.data} edits={edits} onClose={onClose} />;
  return task.isError ? plain : null;
}

const again = ({ run }: Run, { reason, key }: Doing) => call("rerunRun", { run, reason }, { key });

/** Enqueues a run with the payload `payload`, and with the task, priority, labels, keys and overrides of `run`. */
export function anew(run: ListedRun, payload: unknown, { reason, key }: Pick<Doing, "reason" | "key">) {
  const { task, priority, limitKey, labels, overrides } = run;
  const given = {
    task,
    payload,
    priority,
    labels,
    reason,
    ...(run.key === null ? {} : { key: run.key }),
    ...(limitKey === null ? {} : { limitKey }),
    ...overrides,
  } as Given<"runTask">;
  return call("runTask", given, { key });
}

/** Matches the fields of a payload, of which the first one is focused. Read-only inputs are excluded, because they belong to selects. */
const payloadField = "textarea, input:not([readonly], [type=hidden], [type=radio])";

function Edited({ run, task, edits, onClose }: { run: Run; task: Task; edits: boolean; onClose: () => void }) {
  const payload = usePayload(task, run);
  return (
    <Asked
      run={run}
      onClose={onClose}
      blocked={!payload.isReady || payload.json === undefined}
      again={async (doing) => {
        const value = payload.json?.value;
        if (!payload.isChanged && payload.source === `run:${run.run}`) return again(run, doing);
        await payload.check(value);
        return anew(run, value, doing);
      }}
    >
      <div
        className={css.form}
        style={{ marginTop: 14 }}
        // The dialog focuses the first element with this attribute, once it is open.
        ref={(form) => {
          if (edits) form?.querySelector(payloadField)?.setAttribute("data-autofocus", "");
        }}
      >
        <PayloadField task={task} payload={payload} />
      </div>
    </Asked>
  );
}

function Asked({
  run: { run },
  again: send,
  ...asking
}: {
  run: Run;
  again: (doing: Doing) => Promise<{ run: number }>;
  blocked?: boolean;
  children?: React.ReactNode;
  onClose: () => void;
}) {
  const { t } = useWords();
  const navigate = useNavigate();
  return (
    <Confirm
      {...asking}
      title={t("run.rerunTitle", { run: String(run) })}
      consequence={t("run.rerunTold")}
      act={t("run.rerun")}
      onDo={async (doing) => {
        const made = await send(doing);
        outdate("getRun", "getRunFamily", "listRuns", "listRecentRuns");
        toast({ text: t("run.rerunDone", { run: String(made.run) }) });
        if (!doing.signal.aborted) void navigate({ to: "/runs/$run", params: { run: String(made.run) } });
      }}
    />
  );
}
