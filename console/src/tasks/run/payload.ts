import { useMutation } from "@tanstack/react-query";
import { encodedText, storedKey } from "carillon/task";
import { useState } from "react";
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

/** Where a payload is taken from: the schedule of the task itself, one of its named schedules, or a run, by its number. */
export type Source = "own" | `task:${string}` | `run:${number}`;

interface Begun {
  source: Source;
  payload: unknown;
}

/** A payload that only processes with a key can read, or that is kept elsewhere, cannot be sent again as it is shown. */
export const isReadable = (payload: unknown) => storedKey(payload) === undefined && encodedText(payload) === undefined;

/** @throws Refusal */
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
 * Edits the payload of a run. It begins with what the task's own slots have, or with the schema's defaults: never with what some
 * run before had, which may have been for another customer. Others are taken by name. A payload is taken once: a run that ends
 * while the form is open changes nothing just before the user presses the button. The server checks it against the schema.
 * @param first the payload to begin with, of a run that is to be repeated
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
    /** False while another payload is being read. */
    isReady: !taking.isPending,
    source: begun.source,
    take: (source: Source) => taking.mutate(source),
    /** Why the payload that was asked for could not be taken. */
    refusal: taking.error,
    /** True once the user has changed the payload. */
    isChanged: typed !== undefined && typed !== textOf(begun.payload),
    text,
    /** undefined: the text is not JSON. */
    json: parsed(text),
    issues,
    change,
    check,
  };
}
