import { isZooKeeperError, type ZooKeeper } from "../../src/index.ts";

/** The names under a path that recipes make as a container: none, once the server has removed the empty container. */
export async function namesUnder(zk: ZooKeeper, path: string): Promise<readonly string[]> {
  try {
    return (await zk.children(path)).names;
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return [];
    throw error;
  }
}
