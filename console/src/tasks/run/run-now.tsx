import { SegmentedControl, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { outdate } from "../../api/answers.ts";
import { call } from "../../api/call.ts";
import { useWords } from "../../messages/words.ts";
import { Confirm } from "../../parts/form/confirm.tsx";
import { toast } from "../../parts/state/toasts.tsx";
import type { Task } from "../answers.ts";
import css from "../task.module.css";
import { usePayload } from "./payload.ts";
import { PayloadField } from "./payload-field.tsx";

/** Runs a task outside its schedule, now or later, with a payload. */
export function RunNow({ task, onClose }: { task: Task; onClose: () => void }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const payload = usePayload(task);
  const [when, setWhen] = useState<"now" | "later">("now");
  const [delay, setDelay] = useState("15m");
  const [runKey, setRunKey] = useState("");
  const isDelay = /^\d+(?:\.\d+)?\s*(?:ms|s|m|h|d|w)$/.test(delay.trim());
  return (
    <Confirm
      title={t("runNow.title", { task: task.name })}
      consequence={t("runNow.told")}
      act={t("task.runNow")}
      blocked={!payload.isReady || payload.json === undefined || (when === "later" && !isDelay)}
      onDo={async ({ reason, key, signal }) => {
        const value = payload.json?.value;
        await payload.check(value);
        if (signal.aborted) return;
        const made = await call(
          "runTask",
          {
            task: task.name,
            reason,
            ...(value === undefined ? {} : { payload: value }),
            ...(when === "later" ? { in: delay.trim() } : {}),
            ...(runKey.trim() === "" ? {} : { key: runKey.trim() }),
          },
          { key },
        );
        outdate("listRuns", "listRecentRuns");
        toast({ text: t(made.created ? "runNow.done" : "runNow.there", { run: String(made.run) }) });
        if (!signal.aborted) void navigate({ to: "/runs/$run", params: { run: String(made.run) } });
      }}
      onClose={onClose}
    >
      <div className={css.form} style={{ marginTop: 14 }}>
        <PayloadField task={task} payload={payload} />
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
