import type { Clock } from "../../base/clock.ts";
import type { Handler } from "../../run/handler.ts";
import type { CommandOptions } from "../../settings/settings.ts";
import type { CommandSpec } from "../../task/task.ts";
import { runCommand } from "./command.ts";

/** Returns the handler with which a worker runs a command task. */
export const commandHandler =
  (command: CommandSpec, { allow, allowEnv, shell, rehearse }: Required<CommandOptions>, clock: Clock): Handler =>
  async (run) => {
    const { exitCode } = await runCommand(command, {
      allow,
      allowEnv,
      shell,
      rehearse,
      signal: run.signal,
      clock,
      log: (stream, line) => (stream === "stderr" ? run.log.warn(line) : run.log.info(line)),
      run: {
        task: run.task,
        schedule: run.schedule ?? "",
        run: String(run.id),
        slot: run.slot?.toISOString() ?? "",
        fence: String(run.fence),
      },
    });
    return { exitCode };
  };
