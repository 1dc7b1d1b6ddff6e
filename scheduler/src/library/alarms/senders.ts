import type { Senders } from "../../engine/alarms/channels.ts";
import { runCommand } from "../../executors/command/command.ts";
import { channelPoster, noticePoster, pingCaller } from "../../executors/http/notice.ts";

/** The variables that mark the run of a command task are there, and empty. */
const noRun = { task: "", schedule: "", run: "", slot: "", fence: "" };

/** The programs of alarms come from the process's own configuration, so they need no list of allowed programs. */
export const alarmSenders: Senders = {
  webhook: noticePoster,
  post: channelPoster,
  ping: pingCaller,
  async run([program = "", ...args], stdin, signal, clock) {
    const log = () => undefined;
    const options = { allow: [program], shell: true, run: noRun, signal, clock, log };
    try {
      await runCommand({ argv: [program, ...args], stdin }, options);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  },
};
