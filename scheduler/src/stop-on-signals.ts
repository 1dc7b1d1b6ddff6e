import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";

/** Stops on SIGTERM and SIGINT, then lets the signal have its usual effect. Ends its listening with `stopping`. */
export function stopOnSignals(stop: () => Promise<void>, stopping: AbortSignal, log: Log): void {
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    const onSignal = () => {
      log.info({ signal: name }, "stopping: waiting for what runs");
      stop()
        .catch((error) => log.error({ error: messageOf(error) }, "could not stop cleanly"))
        // Nobody listens to this signal now unless the program does.
        .finally(() => process.kill(process.pid, name));
    };
    process.once(name, onSignal);
    stopping.addEventListener("abort", () => process.removeListener(name, onSignal), { once: true });
  }
}
