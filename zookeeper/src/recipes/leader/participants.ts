/** Lists the queued participants of a latch or selector, including Curator's. A node's data is the participant's id. */
import { isZooKeeperError } from "../../base/errors.ts";
import type { CallOptions } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { inOrder } from "../base/protect.ts";

export interface Participant {
  readonly id: string;
  /** True for the first participant in the queue, which may not have noticed yet that it leads. */
  readonly leader: boolean;
}

/** @returns the participants in the order of the queue, without those that left between listing and reading */
export async function participantsOf(
  zk: ZooKeeper,
  path: string,
  marker: string,
  options: CallOptions = {},
): Promise<Participant[]> {
  const read = inOrder(await namesOf(zk, path, options), marker).map((name) => idOf(zk, `${path}/${name}`, options));
  const ids = (await Promise.all(read)).filter((id) => id !== undefined);
  return ids.map((id, index) => ({ id, leader: index === 0 }));
}

/** @returns the first participant; undefined if the queue is empty */
export async function leaderOf(
  zk: ZooKeeper,
  path: string,
  marker: string,
  options: CallOptions = {},
): Promise<Participant | undefined> {
  for (;;) {
    const [first] = inOrder(await namesOf(zk, path, options), marker);
    if (first === undefined) return undefined;
    const id = await idOf(zk, `${path}/${first}`, options);
    // Without an id, the node was deleted after the listing, and another participant is now the first. The loop lists again.
    if (id !== undefined) return { id, leader: true };
  }
}

async function namesOf(zk: ZooKeeper, path: string, options: CallOptions): Promise<string[]> {
  try {
    return (await zk.children(path, options)).names;
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return [];
    throw error;
  }
}

async function idOf(zk: ZooKeeper, path: string, options: CallOptions): Promise<string | undefined> {
  try {
    return (await zk.get(path, options)).data.toString("utf8");
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return undefined;
    throw error;
  }
}
