import type { LockChecker } from "../../lock-history.ts";

/** Nobody keeps a lock for longer, nor stays away from it. */
const boundMs = 45_000;

/** With everything in order nobody waits for ever, and nothing that is gone is waited for. */
export const locksGoOn: LockChecker = {
  invariant: "16: with everything in order, locks go round",
  check({ attempts, calmFromMs, endMs, slackMs }) {
    for (const { lock, process, askedMs, endedMs } of attempts) {
      const fromMs = Math.max(askedMs, calmFromMs);
      if ((endedMs ?? endMs) - fromMs > boundMs + slackMs)
        return {
          what: `${lock}: ${process} waited for it for ${Math.round((endedMs ?? endMs) - fromMs)} ms`,
          atMs: fromMs,
        };
    }
    return undefined;
  },
};
