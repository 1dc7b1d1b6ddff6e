import { Button } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useReach } from "../api/may.ts";
import { catalogues, type Message, useWords } from "../messages/words.ts";
import { Confirm } from "../parts/form/confirm.tsx";
import { Card, Columns } from "../parts/layout/page.tsx";
import { type Asked, Shown } from "../parts/state/notice.tsx";
import { toast } from "../parts/state/toasts.tsx";
import { More } from "../parts/table/more.tsx";
import { type PagesOf, usePages } from "../parts/table/pages.ts";
import { Diff } from "../parts/value/diff.tsx";
import { VersionButton, VersionList } from "../parts/value/versions.tsx";
import type { Task } from "./answers.ts";

/**
 * The task's versions with author, time and reason, and the differences from the present version. The user can revert to one.
 * @param of the read of the task itself, beside which the versions are read
 */
export function Versions({ name, of }: { name: string; of: Asked<Task> }) {
  const versions = usePages("listTaskVersions", { task: name, limit: 50 });
  return <Shown of={of}>{(task) => <VersionsOf task={task} versions={versions} />}</Shown>;
}

function VersionsOf({ task, versions }: { task: Task; versions: PagesOf<"listTaskVersions"> }) {
  const { t } = useWords();
  const may = useReach("editor").on(task.name);
  const { from: asked } = useSearch({ from: "/tasks/$task" });
  const navigate = useNavigate({ from: "/tasks/$task" });
  /** The version to restore (`to`) and the version that was current when the user chose it (`from`), so that later edits are not lost. */
  const [reverting, setReverting] = useState<{ to: number; from: number }>();
  const present = task.version;
  const chosen = asked !== undefined && /^\d{1,9}$/.test(asked) ? Number(asked) : Math.max(1, present - 1);
  const changed = () => outdate("getTask", "listTaskVersions", "listUpcomingSlots", "listTasks", "diffTask");
  /** Restores the version before the revert, as a new version. */
  const undo = async (version: number, ifVersion: number) => {
    try {
      await call("revertTask", { task: task.name, version }, { ifVersion });
      changed();
      toast({ text: t("versions.reverted", { version: String(version) }) });
    } catch (error) {
      toast({ failed: true, text: error instanceof Error ? error.message : String(error) });
    }
  };
  const diff = useAnswer("diffTask", { task: task.name, from: chosen }, { enabled: chosen !== present, keep: true });
  return (
    <Columns shares={[2, 3]}>
      <Card title={t("versions.title")} tight>
        <Shown of={versions}>
          {(rows) => (
            <>
              <VersionList>
                {rows.map((made) => (
                  <li key={made.version}>
                    <VersionButton
                      version={made.version}
                      made={made}
                      isPresent={made.version === present}
                      isChosen={made.version === chosen}
                      onChoose={() =>
                        void navigate({ search: { part: "versions", from: String(made.version) }, replace: true })
                      }
                    />
                  </li>
                ))}
              </VersionList>
              <More of={versions} tight />
            </>
          )}
        </Shown>
      </Card>
      <Card
        title={
          chosen === present ? t("versions.present") : t("versions.diff", { from: String(chosen), to: String(present) })
        }
        more={
          may &&
          chosen !== present && (
            <Button size="compact-sm" variant="default" onClick={() => setReverting({ to: chosen, from: present })}>
              {t("versions.revert", { version: String(chosen) })}
            </Button>
          )
        }
      >
        {chosen === present ? (
          <p className="soft">{t("versions.choose")}</p>
        ) : (
          <Shown of={diff}>
            {({ changes }) =>
              changes.length === 0 ? <p className="soft">{t("versions.same")}</p> : <Changes changes={changes} />
            }
          </Shown>
        )}
      </Card>
      {reverting && (
        <Confirm
          title={t("versions.revert", { version: String(reverting.to) })}
          consequence={t("versions.revertTold")}
          act={t("task.revert")}
          onDo={async ({ reason, key }) => {
            const { to, from } = reverting;
            const made = await call("revertTask", { task: task.name, version: to, reason }, { key, ifVersion: from });
            changed();
            toast({
              text: t("versions.reverted", { version: String(to) }),
              undo: () => void undo(from, made.version),
            });
          }}
          onClose={() => setReverting(undefined)}
        />
      )}
    </Columns>
  );
}

/** The edit form's label of each part of a definition, for parts that have a field of their own and no label `option.PART`. */
const fieldOf: Record<string, Message> = {
  "schedule.expression": "task.expression",
  "schedule.zone": "task.zone",
  "schedule.gap": "task.gap",
  "schedule.overlap": "task.fold",
  "schedule.everyMs": "edit.every",
  "schedule.jitterMs": "edit.jitter",
  "schedule.type": "edit.kind",
  overlap: "task.overlap",
  misfire: "task.misfire",
  calendar: "calendar.ofTask",
  blackout: "edit.blackouts",
  route: "edit.route",
  labels: "edit.labels",
  "retry.attempts": "edit.attempts",
  "retry.backoff": "edit.backoff",
  "retry.delay": "edit.delay",
  "retry.maxDelay": "edit.maxDelay",
};

/** Shows the differences field by field: for a changed schedule only the fields that were changed. */
export function Changes({ changes }: { changes: { part: string; was?: unknown; is?: unknown }[] }) {
  const { t, language } = useWords();
  const sideOf = (side: "was" | "is") =>
    Object.fromEntries(changes.map((change) => [change.part, change[side] ?? null]));
  const nameOf = (part: string) => {
    const message = fieldOf[part] ?? (`option.${part}` as Message);
    return message in catalogues[language] ? t(message) : undefined;
  };
  return <Diff was={sideOf("was")} is={sideOf("is")} label={t("versions.changes")} nameOf={nameOf} />;
}
