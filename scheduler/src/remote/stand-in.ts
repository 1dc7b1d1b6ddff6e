import type { PollRequest } from "../api/worker-protocol.ts";
import { machineClock } from "../base/clock.ts";
import { isCarillonError } from "../base/errors.ts";
import { silentLog } from "../base/log.ts";
import type { StandInPlace } from "../cluster/stand-in.ts";
import { Line, writtenMono } from "./line.ts";

export interface RemoteStandInOptions {
  servers: readonly string[];
  key: string;
  answerMs: number;
}

/**
 * Opens the stand-in of a remote worker: the thread that keeps the session alive while the event loop is blocked (see cluster/stand-in.ts).
 * The session is on servers, so each request is a poll that does not wait.
 */
export function openRemoteStandIn(options: RemoteStandInOptions): StandInPlace<{ runId: number; fence: number }> {
  const line = new Line({ ...options, clock: machineClock, log: silentLog });
  const ask = async (request: PollRequest) => {
    const answered = await line.post(request);
    const { answer } = answered;
    return { answer, sureUntilMs: writtenMono(answered) + answer.sureForMs };
  };
  return {
    async prove(session) {
      try {
        const { sureUntilMs } = await ask({ session });
        return { alive: true, alone: false, server: null, sureUntilMs };
      } catch (error) {
        if (isCarillonError(error, "SESSION_LOST")) return { alive: false, alone: false, server: null, sureUntilMs: 0 };
        throw error;
      }
    },
    // A poll that reports no claims gets a list of all of the session's claims.
    claims: async (session) => (await ask({ session, holds: [] })).answer.runs,
    async giveBack(session, claims) {
      await ask({
        session,
        verdicts: claims.map(({ runId, fence }) => ({ runId, fence, outcome: "released" as const })),
      });
    },
    resign: async () => undefined,
    // Sends nothing, because servers end the session after its timeout.
    end: async () => undefined,
    close: async () => line.close(),
  };
}
