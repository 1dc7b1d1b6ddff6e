import type { Rule } from "../workers/said.ts";
import type { Planting } from "./mutant.ts";

/** A bug to plant in the protocol of remote workers, and the rule that it breaks. */
export interface ProtocolMutant extends Planting {
  readonly name: string;
  readonly breaks: Rule;
  readonly also?: Planting;
}

export const protocolMutants: readonly ProtocolMutant[] = [
  {
    name: "another verdict on a claim that is over is accepted",
    file: "store/postgres/claims/refused.ts",
    find: "return new Set(late.map(({ fence }) => fence));",
    put: "return new Set();",
    breaks: "a claim ends once",
  },
  {
    name: "a second verdict in one poll is not refused",
    file: "http/workers/listening.ts",
    find: 'if (tooLate.has(settlement)) refused.push(refusal(settlement, "verdict", "FENCE_STALE", endedBefore));',
    put: "if (tooLate.has(settlement)) continue;",
    breaks: "a refusal is said, with its reason",
  },
  {
    name: "a repeated verdict is refused",
    file: "store/postgres/claims/refused.ts",
    find: "when i.whole then h.result is not distinct from i.result and",
    put: "when i.whole then false and",
    breaks: "the same verdict has the same answer",
  },
  {
    name: "a chain goes on twice",
    file: "store/postgres/flow/following.ts",
    find: 'if (onward?.kind === "continue" && (await goOn(client, s, run, onward, now)))',
    put: 'if (onward?.kind === "continue" && run.limitKey === null) await goOn(client, s, run, onward, now); if (onward?.kind === "continue" && (await goOn(client, s, run, onward, now)))',
    breaks: "what goes on is made once",
  },
  {
    name: "a number that cannot be held fails the whole poll",
    file: "http/workers/listening.ts",
    find: "const found = inexact.get(one); if (found) return",
    put: 'const found = inexact.get(one); if (found) throw new Error("inexact"); if (found) return',
    breaks: "no answer is a server's fault",
  },
  {
    name: "late verdicts are not kept",
    file: "store/postgres/claims/refused.ts",
    find: "if (told.length === 0) return;",
    put: "if (told.length >= 0) return;",
    breaks: "what was refused is kept as late",
  },
  {
    name: "a key that is revoked stays known",
    file: "http/workers/keys.ts",
    find: "if (known) known.readMono = Number.NEGATIVE_INFINITY;",
    put: "if (known) known.readMono = this.#clock.monotonic();",
    also: {
      file: "http/server.ts",
      find: 'if (isCarillonError(error, "SESSION_LOST")) await this.#keys.of(request.headers.authorization, request.ip, true);',
      put: "",
    },
    breaks: "a key that is revoked is refused",
  },
];
