import { fixedPath, whyRefused } from "../command-rules.ts";
import { CarillonError } from "../errors.ts";
import type { Account } from "./account.ts";

/** What the command is told about its run. */
export interface RunMarks {
  task: string;
  run: string;
  /** The nominal time, ISO 8601; empty for a run that has no slot. */
  slot: string;
  fence: string;
}

/**
 * A small fixed set, then the task's own, then the marks of the run. Nothing of the worker's environment: its database
 * URL and keys are not the command's.
 * @param free the program is a shell, which can do anything anyway
 * @param allowed names that the worker's configuration lets tasks set although they can load code
 * @throws COMMAND_NOT_ALLOWED for a variable that loads code, or a PATH to folders that are not the system's; TASK_INVALID
 */
export function commandEnvironment(
  given: Readonly<Record<string, string>>,
  account: Account,
  marks: RunMarks,
  { free = false, allowed = [] as readonly string[] } = {},
): Record<string, string> {
  for (const [name, value] of Object.entries(given)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes("\0")) {
      throw new CarillonError(
        "TASK_INVALID",
        `command.env: ${JSON.stringify(name)} or its value cannot be in an environment`,
        {
          hint: "A name has letters, digits and _; a value has no NUL.",
        },
      );
    }
    if (free || allowed.includes(name)) continue;
    const why = whyRefused(name, value);
    if (why !== undefined) {
      throw new CarillonError("COMMAND_NOT_ALLOWED", `the environment variable ${name} ${why}`, {
        hint: `Take ${name} out of the task's command.`,
      });
    }
  }
  return {
    PATH: fixedPath.join(":"),
    SHELL: "/bin/sh",
    LANG: "C.UTF-8",
    HOME: account.home,
    ...given,
    LOGNAME: account.name,
    USER: account.name,
    CARILLON_TASK: marks.task,
    CARILLON_RUN: marks.run,
    CARILLON_SLOT: marks.slot,
    CARILLON_FENCE: marks.fence,
  };
}
