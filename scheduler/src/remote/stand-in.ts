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

/** The stand-in of a remote worker, whose session is kept by servers: see cluster/stand-in.ts. Each request is a poll without waiting. */
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
    // For a session that reports no claims, servers list all of them.
    claims: async (session) => (await ask({ session, holds: [] })).answer.runs,
    async giveBack(session, claims) {
      await ask({
        session,
        verdicts: claims.map(({ runId, fence }) => ({ runId, fence, outcome: "released" as const })),
      });
    },
    resign: async () => undefined,
    // Servers detect the worker's end by its silence.
    end: async () => undefined,
    close: async () => line.close(),
  };
}
