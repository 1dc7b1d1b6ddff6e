import { CarillonError } from "../errors.ts";
import type { Account } from "./account.ts";
import { fixedPath } from "./programs.ts";

/** What the command is told about its run. */
export interface RunMarks {
  task: string;
  run: string;
  /** The nominal time, ISO 8601; empty for a run that has no slot. */
  slot: string;
  fence: string;
}

/**
 * Variables by which the loader, an interpreter or a shell takes code from elsewhere. With them, any allowed program
 * would be every program. The list cannot be complete (programs have their own), so it is a second wall, not the first.
 */
const loading =
  /^(?:LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|BASH_ENV|ENV|BASH_FUNC.*|SHELLOPTS|BASHOPTS|PS4|IFS|PROMPT_COMMAND|NODE_OPTIONS|NODE_PATH|PERL5OPT|PERL5LIB|PERLLIB|PERL5DB|PYTHON.*|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|LUA_INIT.*|PHPRC|PHP_INI_SCAN_DIR|GIT_SSH.*|GIT_EXEC_PATH|GIT_CONFIG.*|EDITOR|VISUAL|PAGER)$/;

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
    const elsewhere =
      name === "PATH"
        ? value.split(":").find((folder) => !(fixedPath as readonly string[]).includes(folder))
        : undefined;
    if (elsewhere !== undefined || loading.test(name)) {
      const why =
        elsewhere === undefined
          ? "can make a program load other code"
          : `leads to ${JSON.stringify(elsewhere)}, not a system folder`;
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
