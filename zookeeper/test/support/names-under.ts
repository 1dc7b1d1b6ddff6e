import { isZooKeeperError, type ZooKeeper } from "../../src/index.ts";

/** Returns the names below a path that recipes create as a container; an empty array if the server has deleted the container. */
export async function namesUnder(zk: ZooKeeper, path: string): Promise<readonly string[]> {
  try {
    return (await zk.children(path)).names;
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return [];
    throw error;
  }
}
