import { isZooKeeperError, type ZooKeeper } from "../../src/index.ts";

/** What lies under a path that recipes make as a container: nothing, once the server has tidied the empty container away. */
export async function namesUnder(zk: ZooKeeper, path: string): Promise<readonly string[]> {
  try {
    return (await zk.children(path)).names;
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return [];
    throw error;
  }
}
