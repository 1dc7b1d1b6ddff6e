/** The dialog that confirms, starts and shows an operation. */
import { Button, Group } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ComponentProps, type ReactNode, useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { call, type Given } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Dialog } from "../parts/layout/dialog.tsx";
import { Gauge } from "../parts/state/gauge.tsx";
import { Shown, Trouble } from "../parts/state/notice.tsx";
import { plain } from "../parts/value/plain.ts";
import { OperationLink } from "./filter-text.tsx";
import css from "./operations.module.css";
import { settledOf } from "./operations.tsx";
import { useBegin } from "./use-begin.ts";
import { isUnderWay, useOperation } from "./watch.ts";

type Request = Omit<Given<"beginOperation">, "reason">;

const namesShown = 8;
const everyMs = 500;

/**
 * Asks for confirmation, starts the operation, then shows its progress in the same dialog. @param onDone called when the operation
 * has started and the user has closed the dialog
 */
export function Begin({
  request,
  onClose,
  onDone = onClose,
  ...asking
}: { request: Request | undefined; onDone?: () => void } & Omit<ComponentProps<typeof Confirm>, "onDo" | "onDone">) {
  const begin = useBegin();
  const [operation, setOperation] = useState<number>();
  if (operation !== undefined) return <Watched operation={operation} onClose={onDone} />;
  return (
    <Confirm
      {...asking}
      blocked={asking.blocked || request === undefined}
      onDo={async ({ reason, ...asked }) => {
        if (request !== undefined) await begin({ ...request, reason }, asked, setOperation);
      }}
      onDone={() => undefined}
      onClose={onClose}
    />
  );
}

/** An operation on all items that match a filter: the dialog first shows their number and the first names. */
export function BeginMatching({
  kind,
  filter,
  pauseUntil,
  fields,
  titleOf,
  none,
  ...asking
}: {
  kind: Request["kind"];
  filter: Request["filter"];
  pauseUntil?: string | undefined;
  /** Fields that the dialog shows above the names. */
  fields?: ReactNode;
  titleOf: (total: number) => string;
  /** Shown instead of names if no item matches. */
  none: string;
} & Omit<ComponentProps<typeof Begin>, "request" | "title" | "blocked" | "children">) {
  const { t } = useWords();
  const preview = useAnswer("previewOperation", { kind, filter });
  const total = preview.data?.total ?? 0;
  return (
    <Begin
      {...asking}
      request={{ kind, filter, pauseUntil }}
      title={preview.data ? titleOf(total) : t("bulk.counting")}
      blocked={total === 0}
    >
      {fields}
      <Shown of={preview} rows={3}>
        {({ first }) => (total === 0 ? <p>{none}</p> : <Names names={first} total={total} />)}
      </Shown>
    </Begin>
  );
}

/** Shows the first names, and the number of further names. */
export function Names({ names, total, most = namesShown }: { names: string[]; total: number; most?: number }) {
  const { t } = useWords();
  const shown = names.slice(0, most);
  return (
    <ul className={css.first}>
      {shown.map((name) => (
        <li key={name}>{plain(name)}</li>
      ))}
      {total > shown.length && <li className="soft">{t("bulk.andMore", { n: total - shown.length })}</li>}
    </ul>
  );
}

/** Shows an operation's progress. The operation continues if the dialog is closed. */
export function Watched({ operation, onClose }: { operation: number; onClose: () => void }) {
  const { t } = useWords();
  const asked = useOperation(operation, everyMs);
  const stop = useMutation({ mutationFn: () => call("stopOperation", { operation }) });
  const isOver = asked.data !== undefined && !isUnderWay(asked.data);
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
              {t(`operation.${data.state}`)} · {t("bulk.done", { done: settledOf(data), n: data.total })}
              {data.failed > 0 && ` · ${t("bulk.failed", { n: data.failed })}`}
            </p>
            <Gauge done={settledOf(data) + data.failed} total={data.total} label={t("bulk.progress")} />
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
