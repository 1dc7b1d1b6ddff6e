/** The participants in line, as Curator's latch and selector show them: a node's data is its participant's id. */
import { isZooKeeperError } from "../../base/errors.ts";
import type { CallOptions } from "../../operations/operations.ts";
import type { ZooKeeper } from "../../operations/session.ts";
import { inOrder } from "../base/protect.ts";

export interface Participant {
  readonly id: string;
  /** It is the first in line. Whether it has noticed that is not visible from here. */
  readonly leader: boolean;
}

/** @returns in line's order, without those that left between the listing and the reading */
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
    // Gone since the listing: another participant is the first now.
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
