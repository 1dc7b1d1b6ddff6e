import { useState } from "react";
import { useAnswer } from "../../api/answers.ts";
import { call, Refusal } from "../../api/call.ts";
import { useWords } from "../../messages/words.ts";
import type { Task } from "../answers.ts";
import { firstValue, type Schema, valueAt } from "./field-schema.ts";
import { type Issues, placeText } from "./payload-form.tsx";

/** @returns undefined if the text is not JSON */
function parsed(text: string): { value: unknown } | undefined {
  if (text.trim() === "") return { value: undefined };
  try {
    return { value: JSON.parse(text) };
  } catch {
    // The field shows the error.
    return undefined;
  }
}

const toldMost = 5;
export const textOf = (value: unknown) => (value === null || value === undefined ? "" : JSON.stringify(value, null, 2));

/**
 * The initial payload: that of the task's last run, or `otherwise`. It is taken once: if a run ends while the form is open, the
 * payload must not change just before the user presses the button. Undefined until it is known.
 */
function useBegun(task: string, otherwise: unknown): { payload: unknown; run?: number } | undefined {
  const last = useAnswer("listRecentRuns", { task: [task], each: 1 });
  const run = last.data?.tasks[0]?.runs[0]?.run;
  const whole = useAnswer("getRun", { run: run ?? 1 }, { enabled: run !== undefined });
  const [begun, setBegun] = useState<{ payload: unknown; run?: number }>();
  // A cached answer is fetched again first.
  const isSettled = !last.isFetching && (run === undefined || (!whole.isFetching && !whole.isPending));
  if (begun === undefined && isSettled) {
    const payload = run === undefined ? null : whole.data?.payload;
    setBegun(payload === null || payload === undefined ? { payload: otherwise } : { payload, run: run as number });
  }
  return begun;
}

export type Payload = ReturnType<typeof usePayload>;

/**
 * Edits the payload of a run. The initial payload is that of the task's last run, or of its slots, or the schema's defaults. The
 * server checks the payload against the schema.
 */
export function usePayload(task: Task) {
  const { t } = useWords();
  const { slotPayload = null, payloadSchema: schema } = task.definition as {
    slotPayload?: unknown;
    payloadSchema?: Schema;
  };
  const begun = useBegun(task.name, slotPayload ?? (schema ? firstValue(schema, schema) : null));
  const [typed, setTyped] = useState<string>();
  const [issues, setIssues] = useState<Issues>(new Map());
  const text = typed ?? textOf(begun?.payload);
  const change = (next: string) => {
    setTyped(next);
    setIssues(new Map());
  };
  /** @throws Refusal with the issues that the schema finds; each shows at its field too */
  const check = async (value: unknown) => {
    if (!schema) return;
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
  return {
    schema,
    /** True once the initial payload is known. */
    isReady: begun !== undefined,
    /** The run from which the payload was taken; undefined once the user has changed the payload. */
    asRun: typed === undefined ? begun?.run : undefined,
    text,
    /** undefined: the text is not JSON. */
    json: parsed(text),
    issues,
    change,
    check,
  };
}
