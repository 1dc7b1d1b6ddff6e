import { SegmentedControl, Textarea, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { call } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/confirm.tsx";
import { toast } from "../parts/toasts.tsx";
import css from "./task.module.css";
import type { Task } from "./task.tsx";

/** @returns undefined where it is no JSON */
function parsed(text: string): { value: unknown } | undefined {
  if (text.trim() === "") return { value: undefined };
  try {
    return { value: JSON.parse(text) };
  } catch {
    // The field says so.
    return undefined;
  }
}

/** Runs a task beside its schedule. The payload begins as that of its last run: a form that knows nothing better. */
export function RunNow({ task, onClose }: { task: Task; onClose: () => void }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const last = useAnswer("listRecentRuns", { task: [task.name], each: 1 });
  const lastRun = last.data?.tasks[0]?.runs[0]?.run;
  const lastWhole = useAnswer("getRun", { run: lastRun ?? 1 }, { enabled: lastRun !== undefined });
  const slotPayload = (task.definition as { slotPayload?: unknown }).slotPayload ?? null;
  const known = lastWhole.data?.payload ?? slotPayload;
  const [typed, setTyped] = useState<string>();
  const text = typed ?? (known === null || known === undefined ? "" : JSON.stringify(known, null, 2));
  const [when, setWhen] = useState<"now" | "later">("now");
  const [delay, setDelay] = useState("15m");
  const [runKey, setRunKey] = useState("");
  const payload = parsed(text);
  const isDelay = /^\d+(?:\.\d+)?\s*(?:ms|s|m|h|d|w)$/.test(delay.trim());
  return (
    <Confirm
      title={t("runNow.title", { task: task.name })}
      consequence={t("runNow.told")}
      act={t("task.runNow")}
      blocked={payload === undefined || (when === "later" && !isDelay)}
      onDo={async ({ reason, key }) => {
        const made = await call(
          "runTask",
          {
            task: task.name,
            reason,
            ...(payload?.value === undefined ? {} : { payload: payload.value }),
            ...(when === "later" ? { in: delay.trim() } : {}),
            ...(runKey.trim() === "" ? {} : { key: runKey.trim() }),
          },
          { key },
        );
        outdate("listRuns", "listRecentRuns");
        toast({ text: t(made.created ? "runNow.done" : "runNow.there", { run: String(made.run) }) });
        void navigate({ to: "/runs/$run", params: { run: String(made.run) } });
      }}
      onClose={onClose}
    >
      <div className={css.form} style={{ marginTop: 14 }}>
        <Textarea
          label={t("run.payload")}
          description={
            lastRun !== undefined && typed === undefined
              ? t("runNow.asLast", { run: String(lastRun) })
              : t("runNow.json")
          }
          autosize
          minRows={4}
          maxRows={14}
          spellCheck={false}
          styles={{ input: { fontFamily: "var(--mono)", fontSize: 13 } }}
          value={text}
          error={payload === undefined ? t("runNow.noJson") : undefined}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <div className={css.pair}>
          <SegmentedControl
            aria-label={t("runNow.when")}
            value={when}
            onChange={(value) => setWhen(value === "later" ? "later" : "now")}
            data={[
              { value: "now", label: t("runNow.now") },
              { value: "later", label: t("runNow.later") },
            ]}
          />
          {when === "later" && (
            <TextInput
              aria-label={t("runNow.delay")}
              value={delay}
              error={isDelay ? undefined : t("runNow.noDelay")}
              onChange={(event) => setDelay(event.currentTarget.value)}
            />
          )}
        </div>
        <TextInput
          label={t("run.key")}
          description={t("runNow.keyTold")}
          maxLength={200}
          value={runKey}
          onChange={(event) => setRunKey(event.currentTarget.value)}
        />
      </div>
    </Confirm>
  );
}
