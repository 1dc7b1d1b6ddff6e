/** Lists the participants in line of a latch or selector, Curator's included: a node's data is the participant's id. */
import { isZooKeeperError } from "../../base/errors.ts";
import type { CallOptions } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { inOrder } from "../base/protect.ts";

export interface Participant {
  readonly id: string;
  /** True for the first in line. The participant itself may not have noticed yet that it leads. */
  readonly leader: boolean;
}

/** @returns the participants in the order of the line, without those that left between the listing and the reading */
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

/** @returns undefined if the line is empty */
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
    // Otherwise the node was deleted after the listing: another participant is the first now.
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
