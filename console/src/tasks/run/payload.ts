import { useMutation } from "@tanstack/react-query";
import { encodedText, storedKey } from "carillon/task";
import { useState } from "react";
import { call, Refusal } from "../../api/call.ts";
import { useWords } from "../../messages/words.ts";
import type { Task } from "../answers.ts";
import { firstValue, type Schema, valueAt } from "./field-schema.ts";
import { type Issues, placeText } from "./payload-form.tsx";

/** @returns the parsed value, which is undefined for an empty text; undefined instead of an object if the text is not JSON */
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

/** The origin of a payload: the task's own schedule, one of its named schedules, or an earlier run with this number. */
export type Source = "own" | `task:${string}` | `run:${number}`;

interface Begun {
  source: Source;
  payload: unknown;
}

/** False for a payload that is encrypted or stored outside the database: the form cannot show or resend such a payload. */
export const isReadable = (payload: unknown) => storedKey(payload) === undefined && encodedText(payload) === undefined;

/** Reads the payload of a named schedule or of a run. @throws Refusal if the server refuses, or if the run's payload is not readable */
async function read(source: Source): Promise<unknown> {
  const name = source.slice(source.indexOf(":") + 1);
  if (source.startsWith("task:")) {
    const { definition } = await call("getTask", { task: name });
    return (definition as { slotPayload?: unknown }).slotPayload ?? null;
  }
  const { payload } = await call("getRun", { run: Number(name) });
  if (!isReadable(payload)) throw new Refusal("PAYLOAD_OUTSIDE", 0, "");
  return payload;
}

export type Payload = ReturnType<typeof usePayload>;

/**
 * The state of the payload field. It starts with the payload of the task's own slots, or with the schema's defaults. It starts
 * with the payload of an earlier run, which may belong to another customer, only if that run is repeated. The user can load
 * another payload by its origin. A loaded payload does not change when runs end while the form is open.
 * @param first the payload to start with if a run is repeated, and that run's number
 */
export function usePayload(task: Task, first?: { run: number; payload: unknown }) {
  const { t } = useWords();
  const { slotPayload = null, payloadSchema: schema } = task.definition as {
    slotPayload?: unknown;
    payloadSchema?: Schema;
  };
  const [own] = useState<Begun>(() => ({
    source: "own",
    payload: slotPayload ?? (schema ? firstValue(schema, schema) : null),
  }));
  const [begun, setBegun] = useState<Begun>(() =>
    first && isReadable(first.payload) ? { source: `run:${first.run}`, payload: first.payload } : own,
  );
  const taking = useMutation({
    mutationFn: async (source: Source) => (source === "own" ? own : { source, payload: await read(source) }),
    onSuccess: (taken) => {
      setBegun(taken);
      setTyped(undefined);
      setIssues(new Map());
    },
  });
  const [typed, setTyped] = useState<string>();
  const [issues, setIssues] = useState<Issues>(new Map());
  const text = typed ?? textOf(begun.payload);
  const change = (next: string) => {
    setTyped(next);
    setIssues(new Map());
  };
  /**
   * Validates the payload on the server against the task's schema, and sets `issues` for the fields.
   * @throws Refusal that lists the first issues
   */
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
    /** False while another payload is being read. */
    isReady: !taking.isPending,
    source: begun.source,
    take: (source: Source) => taking.mutate(source),
    /** The error if the last selected payload could not be loaded; otherwise null. */
    refusal: taking.error,
    /** True if the text differs from the payload that was loaded last. */
    isChanged: typed !== undefined && typed !== textOf(begun.payload),
    text,
    /** The parsed payload; undefined if the text is neither empty nor valid JSON. */
    json: parsed(text),
    issues,
    change,
    check,
  };
}
