import { useMutation } from "@tanstack/react-query";
import { useMemo, useRef, useState } from "react";
import { outdate } from "../../api/answers.ts";
import { call } from "../../api/call.ts";
import { keys } from "../../api/keys.ts";
import { useWords } from "../../messages/words.ts";
import { toast } from "../../parts/state/toasts.tsx";
import type { Task } from "../answers.ts";
import { type Form, formOf, made, optionsOf, ownParts, placeOf } from "./form.ts";

type Wrong = Error & { hint?: string };

/** The state of the form that edits a task: computes the edit as the user types, and saves it. @param onDone called after saving */
export function useEdit(task: Task, reason: string, onDone: () => void) {
  const { t } = useWords();
  const [form, setForm] = useState(() => formOf(task));
  const [keyOf] = useState(keys);
  const edit = useMemo(() => {
    try {
      const asked = optionsOf(form, task);
      return { ...asked, is: made(task, asked.options), wrong: undefined };
    } catch (error) {
      return { options: {}, changes: [], is: undefined, wrong: error as Wrong };
    }
  }, [form, task]);
  // Keeps the last valid schedule, so that fields do not disappear while the input is invalid.
  const lastRead = useRef(ownParts(task.definition).schedule);
  if (edit.is) lastRead.current = edit.is.schedule;
  const save = useMutation({
    mutationFn: () => {
      const given = { task: task.name, options: edit.options, reason: reason.trim() || undefined };
      return call("editTask", given, { ifVersion: task.version, key: keyOf(given) });
    },
    onSuccess: () => {
      outdate("getTask", "listTasks", "listUpcomingSlots", "listTaskVersions", "listComing");
      toast({ text: t("edit.done", { task: task.name }) });
      onDone();
    },
  });
  const set = (change: Partial<Form>) => {
    // Discards the last refusal, which concerned the values before this change.
    save.reset();
    setForm((before) => ({ ...before, ...change }));
  };
  const wrong = edit.wrong ?? (save.error as Wrong | null) ?? undefined;
  const place = placeOf(wrong);
  const wrongAt = (...parts: string[]) => {
    if (!wrong || !parts.includes(place)) return undefined;
    return `${wrong.message.replace(`task ${task.name}: `, "")}. ${wrong.hint ?? ""}`;
  };
  return { form, set, edit, lastRead: lastRead.current, save, wrongAt };
}
