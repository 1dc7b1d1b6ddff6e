import { SegmentedControl, Textarea, TextInput } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { outdate, useAnswer } from "../api/answers.ts";
import { call, Refusal } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Waiting } from "../parts/notice.tsx";
import { toast } from "../parts/toasts.tsx";
import { firstValue, type Schema, valueAt } from "./field-schema.ts";
import { type Issues, PayloadForm, placeText } from "./payload-form.tsx";
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

const toldMost = 5;
const textOf = (value: unknown) => (value === null || value === undefined ? "" : JSON.stringify(value, null, 2));

/**
 * What the payload begins as: that of the task's last run, or `otherwise`. Taken once, when it is known: a run that ends while the
 * form is open would put another under the eyes of who is about to press the button. Undefined until then.
 */
function useBegun(task: string, otherwise: unknown): { payload: unknown; run?: number } | undefined {
  const last = useAnswer("listRecentRuns", { task: [task], each: 1 });
  const run = last.data?.tasks[0]?.runs[0]?.run;
  const whole = useAnswer("getRun", { run: run ?? 1 }, { enabled: run !== undefined });
  const [begun, setBegun] = useState<{ payload: unknown; run?: number }>();
  // What is kept of an earlier look is asked for again first.
  const isSettled = !last.isFetching && (run === undefined || (!whole.isFetching && !whole.isPending));
  if (begun === undefined && isSettled) {
    const payload = run === undefined ? null : whole.data?.payload;
    setBegun(payload === null || payload === undefined ? { payload: otherwise } : { payload, run: run as number });
  }
  return begun;
}

/**
 * Runs a task beside its schedule. The payload begins as that of its last run, or as its schema's defaults; with a schema it is a
 * form, or the JSON behind it, and the server says what the schema has against it before there is a run.
 */
export function RunNow({ task, onClose }: { task: Task; onClose: () => void }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const { slotPayload = null, payloadSchema } = task.definition as { slotPayload?: unknown; payloadSchema?: Schema };
  const begun = useBegun(task.name, slotPayload ?? (payloadSchema ? firstValue(payloadSchema, payloadSchema) : null));
  const lastRun = begun?.run;
  const [typed, setTyped] = useState<string>();
  const [as, setAs] = useState<"form" | "json">(payloadSchema ? "form" : "json");
  const [issues, setIssues] = useState<Issues>(new Map());
  const text = typed ?? textOf(begun?.payload);
  const [when, setWhen] = useState<"now" | "later">("now");
  const [delay, setDelay] = useState("15m");
  const [runKey, setRunKey] = useState("");
  const payload = parsed(text);
  const isDelay = /^\d+(?:\.\d+)?\s*(?:ms|s|m|h|d|w)$/.test(delay.trim());
  const change = (next: string) => {
    setTyped(next);
    setIssues(new Map());
  };
  /** @throws Refusal where the schema has something against it */
  const check = async (value: unknown) => {
    if (!payloadSchema) return;
    const { issues: found } = await call("checkPayload", { task: task.name, payload: value ?? null });
    const said = found.map(({ path, message }) => ({
      path,
      text: path.length > 0 && valueAt(value, path) === undefined ? t("payload.missing") : message,
    }));
    setIssues(new Map(said.map(({ path, text: of }) => [placeText(path), of])));
    if (said.length === 0) return;
    requestAnimationFrame(() => document.querySelector<HTMLElement>('[role="dialog"] [aria-invalid="true"]')?.focus());
    const told = said
      .slice(0, toldMost)
      .map(({ path, text: of }) => (path.length === 0 ? of : `${path.join(".")}: ${of}`));
    throw new Refusal("PAYLOAD_INVALID", 400, told.join("; "));
  };
  return (
    <Confirm
      title={t("runNow.title", { task: task.name })}
      consequence={t("runNow.told")}
      act={t("task.runNow")}
      blocked={begun === undefined || payload === undefined || (when === "later" && !isDelay)}
      onDo={async ({ reason, key, signal }) => {
        await check(payload?.value);
        if (signal.aborted) return;
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
        if (!signal.aborted) void navigate({ to: "/runs/$run", params: { run: String(made.run) } });
      }}
      onClose={onClose}
    >
      <div className={css.form} style={{ marginTop: 14 }}>
        {payloadSchema && (
          <SegmentedControl
            aria-label={t("run.payload")}
            value={as}
            onChange={(value) => setAs(value === "json" ? "json" : "form")}
            data={[
              { value: "form", label: t("payload.form") },
              { value: "json", label: "JSON" },
            ]}
          />
        )}
        {begun === undefined ? (
          <Waiting rows={3} />
        ) : payloadSchema && as === "form" && payload ? (
          <>
            {lastRun !== undefined && typed === undefined && (
              <span className="soft">{t("runNow.asLast", { run: String(lastRun) })}</span>
            )}
            <PayloadForm
              schema={payloadSchema}
              value={payload.value}
              issues={issues}
              onChange={(value) => change(textOf(value))}
            />
          </>
        ) : (
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
            onChange={(event) => change(event.currentTarget.value)}
          />
        )}
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
