import type { Senders } from "../../engine/alarms/channels.ts";
import { runCommand } from "../../executors/command/command.ts";
import { channelPoster, noticePoster, pingCaller } from "../../executors/http/notice.ts";

/** The values of the environment variables that describe a run. An alarm's program gets them empty, because it belongs to no run. */
const noRun = { task: "", schedule: "", run: "", slot: "", fence: "" };

/**
 * Functions that send alarms. An alarm's program comes from this process's own configuration, so no list of allowed programs applies to it.
 */
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
