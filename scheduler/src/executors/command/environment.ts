import { CarillonError } from "../../base/errors.ts";
import { allowsEnv, fixedPath, whyRefused } from "../../task/command-rules.ts";
import type { Account } from "./account.ts";

/** What the command is told about its run. */
export interface RunMarks {
  task: string;
  /** The name of the schedule, for a run of one of the task's named schedules; empty for others. */
  schedule: string;
  run: string;
  /** The nominal time, ISO 8601; empty for a run that has no slot. */
  slot: string;
  fence: string;
}

/**
 * A small fixed set, then the task's own, then the marks of the run. Nothing of the worker's environment: its database
 * URL and keys are not the command's. A list of what a task may set, since most programs have a variable of their own by
 * which they run another program.
 * @param free the program is a shell, which can do anything anyway
 * @param allowed what the worker's configuration lets tasks set besides: names, or beginnings with `*`
 * @throws COMMAND_NOT_ALLOWED for a variable or value that is not allowed; TASK_INVALID
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
    if (free || allowsEnv(allowed, name) || (name === "HOME" && value === account.home)) continue;
    const why = whyRefused(name, value);
    if (why !== undefined) {
      throw new CarillonError("COMMAND_NOT_ALLOWED", `the environment variable ${name} ${why}`, {
        hint: `Allow it at the worker (--allow-env ${name}, or commands.allowEnv), or take it out of the task's command.`,
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
    CARILLON_SCHEDULE: marks.schedule,
    CARILLON_RUN: marks.run,
    CARILLON_SLOT: marks.slot,
    CARILLON_FENCE: marks.fence,
  };
}
