import { CarillonError } from "../../base/errors.ts";
import { allowsEnv, fixedPath, whyRefused } from "../../task/command-rules.ts";
import type { Account } from "./account.ts";

/** The properties of a run that its command receives as environment variables. */
export interface RunMarks {
  task: string;
  /** The name of the schedule if the run belongs to one of the task's named schedules; otherwise empty. */
  schedule: string;
  run: string;
  /** The nominal time in ISO 8601; empty if the run has no slot. */
  slot: string;
  fence: string;
}

/**
 * The command's environment: a small fixed set, the task's own variables, and the properties of the run. It contains nothing from the
 * worker's environment, because the command must not get the worker's database URL and keys. A task may set only allowed variables, because
 * most programs have a variable that makes them run another program.
 * @param free true: the program is a shell, so restricting variables would be pointless
 * @param allowed further variables that the worker's configuration lets tasks set: names, or prefixes with `*`
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
