/** The state of the form for a new task, and its conversion into task options. */
import { CarillonError, givenOptions, readTask, type TaskDefinition, type TaskOptions, within } from "carillon/task";
import type { Given } from "../../api/call.ts";
import { type Form, formOf, ownParts, scheduleOf } from "../edit/form.ts";
import type { Kind } from "./kinds.ts";
import { lineOf, wordsOf } from "./words-of.ts";

export const methods = ["POST", "GET", "PUT", "PATCH", "DELETE", "HEAD"] as const;

export interface NewTask {
  name: string;
  kind: Kind;
  url: string;
  method: string;
  line: string;
  description: string;
  /** The form fields of the task's schedule. */
  form: Form;
}

export type Options = Given<"createTask">["options"];

/** Returns the definition with which the form begins. @param copied the definition of the task to copy */
export const firstDefinition = (copied: Record<string, unknown> | undefined): TaskDefinition =>
  copied ? ownParts(copied) : readTask("new", {});

export function newTask(first: TaskDefinition): NewTask {
  const { http, command, description = "" } = givenOptions(first);
  return {
    name: "",
    kind: http ? "http" : command ? "command" : "code",
    url: http?.url ?? "",
    method: http?.method ?? "POST",
    line: command ? lineOf(command.argv) : "",
    description,
    form: formOf({ definition: first as unknown as Record<string, unknown> }),
  };
}

function workOf({ kind, url, method, line }: NewTask, copied: TaskOptions): Pick<TaskOptions, "http" | "command"> {
  if (kind === "http") return { http: { ...copied.http, url: url.trim(), method: method as "POST" } };
  if (kind === "code") return {};
  const argv = wordsOf(line);
  if (argv === undefined) throw new CarillonError("TASK_INVALID", "", { hint: "", path: "command" });
  return { command: { ...copied.command, argv } };
}

/** Returns the new task's options, checked as the server will check them. @throws CarillonError */
export function optionsOf(task: NewTask, first: TaskDefinition): { options: Options; is: TaskDefinition } {
  const { http, command, ...copied } = givenOptions(first);
  const schedule = within("schedule", () => scheduleOf(task.form, first.schedule));
  const given = {
    ...copied,
    ...workOf(task, { ...(http ? { http } : {}), ...(command ? { command } : {}) } as TaskOptions),
    schedule,
    description: task.description,
  } as TaskOptions;
  return { options: given as unknown as Options, is: readTask(task.name.trim() || "new", given) };
}
