import { ActionIcon, Button } from "@mantine/core";
import { IconRefresh, IconTrash } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { type Answer, call, type Given } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { useWords } from "../messages/words.ts";
import { Names, Watched } from "../operations/begin.tsx";
import { useBegin } from "../operations/use-begin.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Card, Facts, Wide } from "../parts/layout/page.tsx";
import { Shown } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { AnchoredList } from "../parts/table/anchored-list.tsx";
import { More } from "../parts/table/more.tsx";
import { usePages } from "../parts/table/pages.ts";
import { RunLink, TaskLink } from "../parts/value/links.tsx";
import { Away, Moment } from "../parts/value/moment.tsx";
import { plain } from "../parts/value/plain.ts";
import { Tree } from "../parts/value/tree.tsx";
import css from "./dead-letters.module.css";
import { type Group, type Narrowing, wordsOf } from "./words.ts";

type Letter = Answer<"listDeadLetters">["items"][number];
type Kind = "redrive" | "dismiss";
/** The open dialog: an act (`kind`) on one dead letter, or, if `letter` is undefined, on all letters of the group that match the filter. */
export type Asked = { kind: Kind; group: Pick<Group, "fingerprint" | "letters">; letter?: Pick<Letter, "run"> };

const lettersShown = 25;
const tasksShown = 6;

export const outdateLetters = () => outdate("listDeadGroups", "listDeadLetters", "listRuns", "getRun");

/** @param onAsk opens a dialog outside this component, because the component unmounts when the group has no letters left */
export function DeadGroup({
  group,
  narrowing,
  onAsk,
}: {
  group: Group;
  narrowing: Narrowing;
  onAsk: (asked: Asked) => void;
}) {
  const { t, count } = useWords();
  const reach = useReach("operator");
  const { fingerprint, letters, tasks, taskCount, reason } = group;
  const may = tasks.some(reach.on);
  return (
    <div className={css.detail}>
      <Card
        title={<span className={css.title}>{plain(wordsOf(group) ?? t("dead.unknown"))}</span>}
        more={
          may && (
            <span className={css.acts}>
              <Button
                size="compact-md"
                leftSection={<IconRefresh size={16} aria-hidden />}
                onClick={() => onAsk({ kind: "redrive", group })}
              >
                {t("dead.redriveAll", { n: letters })}
              </Button>
              <Button
                size="compact-md"
                variant="default"
                leftSection={<IconTrash size={16} aria-hidden />}
                onClick={() => onAsk({ kind: "dismiss", group })}
              >
                {t("dead.dismissAll", { n: letters })}
              </Button>
            </span>
          )
        }
      >
        <Facts
          facts={[
            [t("dead.letters"), <b key="letters">{count(letters)}</b>],
            [t("dead.first"), <Away key="first" at={group.first} past />],
            [t("dead.last"), <Away key="last" at={group.last} past />],
            ...(reason?.code
              ? [
                  [
                    t("dead.code"),
                    <code key="code" className="mono">
                      {plain(reason.code)}
                    </code>,
                  ] as [string, ReactNode],
                ]
              : []),
            [
              t("dead.fingerprint"),
              <code key="print" className="mono">
                {fingerprint.slice(0, 12)}
              </code>,
            ],
          ]}
        />
        <p className={css.ofTasks}>
          <span className="soft">{t("screen.tasks")}</span>
          {tasks.slice(0, tasksShown).map((task) => (
            <TaskLink key={task} task={task} />
          ))}
          {taskCount > tasksShown && <span className="soft">{t("bulk.andMore", { n: taskCount - tasksShown })}</span>}
        </p>
      </Card>
      <Sample run={group.lastRun} />
      <Card title={t("screen.runs")} tight>
        <Letters group={group} narrowing={narrowing} mayOn={reach.on} onAsk={onAsk} />
      </Card>
    </div>
  );
}

/** The group's newest run as an example, with the numbers and names that the group's generalised error text omits. */
function Sample({ run }: { run: number }) {
  const { t } = useWords();
  const asked = useAnswer("getRun", { run }, { keep: true });
  return (
    <Card
      title={t("dead.sample")}
      more={
        <span className="soft">
          {t("noun.run")} <RunLink run={run} />
        </span>
      }
    >
      <Shown of={asked} rows={3}>
        {({ error, payload, attempt, node }) => (
          <div className={css.sample}>
            <p className={css.message}>{plain(error?.message ?? t("dead.unknown"))}</p>
            {typeof error?.stack === "string" && (
              <details open>
                <summary>{t("run.stack")}</summary>
                <Wide label={t("run.stack")}>
                  <pre className={css.stack}>{plain(error.stack)}</pre>
                </Wide>
              </details>
            )}
            <p className="soft">
              {t("dead.after", { n: attempt })}
              {node !== null && ` · ${plain(node)}`}
            </p>
            {payload !== null && payload !== undefined && (
              <details>
                <summary>{t("run.payload")}</summary>
                <Tree value={payload} label={t("run.payload")} />
              </details>
            )}
          </div>
        )}
      </Shown>
    </Card>
  );
}

function Letters({
  group,
  narrowing,
  mayOn,
  onAsk,
}: {
  group: Group;
  narrowing: Narrowing;
  mayOn: (task: string) => boolean;
  onAsk: (asked: Asked) => void;
}) {
  const { t } = useWords();
  const letters = usePages("listDeadLetters", { fingerprint: group.fingerprint, limit: lettersShown, ...narrowing });
  return (
    <Shown of={letters} rows={5}>
      {(rows) => (
        <>
          <AnchoredList rows={rows} keyOf={({ run }) => String(run)} list={letters.list} more={letters.more}>
            {(shown, isGone) => (
              <ul className={css.letters}>
                {shown.map((letter) => (
                  <li key={letter.run} data-gone={isGone(letter) || undefined}>
                    <RunLink run={letter.run} />
                    <span className="cut">
                      <TaskLink task={letter.task} />
                    </span>
                    <span className="soft">
                      <Moment at={letter.ended} />
                    </span>
                    {mayOn(letter.task) && !isGone(letter) && (
                      <span className={css.one}>
                        <ActionIcon
                          variant="default"
                          size={30}
                          aria-label={t("dead.redriveOne", { run: String(letter.run) })}
                          title={t("dead.redrive")}
                          onClick={() => onAsk({ kind: "redrive", group, letter })}
                        >
                          <IconRefresh size={16} aria-hidden />
                        </ActionIcon>
                        <ActionIcon
                          variant="default"
                          size={30}
                          aria-label={t("dead.dismissOne", { run: String(letter.run) })}
                          title={t("dead.dismiss")}
                          onClick={() => onAsk({ kind: "dismiss", group, letter })}
                        >
                          <IconTrash size={16} aria-hidden />
                        </ActionIcon>
                      </span>
                    )}
                  </li>
                ))}
              </ul>
            )}
          </AnchoredList>
          <More of={letters} tight />
        </>
      )}
    </Shown>
  );
}

/** Asks for confirmation, then shows the operation in the same dialog; the redrive of one letter needs no operation. */
export function Ask({
  kind,
  letter,
  group,
  narrowing,
  onClose,
}: Asked & { narrowing: Narrowing; onClose: () => void }) {
  const { t } = useWords();
  const begin = useBegin();
  const [filter] = useState<Given<"previewOperation">["filter"]>(() =>
    letter ? { fingerprint: group.fingerprint, run: letter.run } : { fingerprint: group.fingerprint, ...narrowing },
  );
  const preview = useAnswer("previewOperation", { kind, filter });
  const n = preview.data?.total ?? (letter ? 1 : group.letters);
  const [operation, setOperation] = useState<number>();
  if (operation !== undefined) {
    const leave = () => {
      outdateLetters();
      onClose();
    };
    return <Watched operation={operation} onClose={leave} />;
  }
  return (
    <Confirm
      title={t(`dead.${kind}Title`, { n })}
      consequence={t(`dead.${kind}Told`)}
      act={t(`dead.${kind}`)}
      grave={kind === "dismiss"}
      blocked={preview.data === undefined || n === 0}
      onDo={async ({ reason, key, signal }) => {
        if (letter && kind === "redrive") {
          const made = await call("rerunRun", { run: letter.run, reason }, { key });
          outdateLetters();
          toast({ text: t("run.rerunDone", { run: String(made.run) }) });
          onClose();
          return;
        }
        await begin({ kind, filter, reason }, { key, signal }, setOperation);
      }}
      onDone={() => undefined}
      onClose={onClose}
    >
      <Shown of={preview} rows={2}>
        {({ total, first }) =>
          total === 0 ? <p>{t("dead.nothingLeft")}</p> : <Names names={first} total={total} most={5} />
        }
      </Shown>
    </Confirm>
  );
}
