import type { Alarms } from "./alarms/alarms.ts";
import type { Membership } from "./coordination.ts";
import type { Engine } from "./engine/engine.ts";
import type { Reconciler } from "./engine/reconciler.ts";
import type { HttpServer } from "./http/server.ts";
import type { Worker } from "./worker/worker.ts";

/** The parts of a node, each once it has begun: what began of one that could not start must end too. */
export interface Started {
  membership: Membership;
  listening: AbortController;
  engine?: Engine | undefined;
  worker?: Worker | undefined;
  http?: HttpServer | undefined;
  alarms?: Alarms | undefined;
  reconciler?: Reconciler;
  heard?: Promise<void>;
}

export async function endWork({ worker, http, alarms, engine, reconciler }: Started, drainMs: number): Promise<void> {
  await http?.stop();
  await worker?.stop(drainMs);
  await alarms?.stop();
  await engine?.stop();
  await reconciler?.stop();
}

export async function leaveCluster({ membership, listening, heard }: Started, why: string): Promise<void> {
  await membership.leave(why);
  listening.abort();
  await heard;
}
