/** URL of a module that Carillon does not export: the compiler's output, in a folder beside that of Carillon's bundle. */
const part = (path: string): string => new URL(`../dist/${path}.js`, import.meta.resolve("carillon")).href;

export const { openZooKeeper } = (await import(
  part("coordination/zookeeper/zookeeper")
)) as typeof import("../../scheduler/src/coordination/zookeeper/zookeeper.ts");
export const { openRedisProvider } = (await import(
  part("coordination/redis/redis")
)) as typeof import("../../scheduler/src/coordination/redis/redis.ts");
export const { joinCluster } = (await import(
  part("coordination/membership")
)) as typeof import("../../scheduler/src/coordination/membership.ts");
export const { openPostgres } = (await import(
  part("store/postgres/postgres")
)) as typeof import("../../scheduler/src/store/postgres/postgres.ts");
export const { StoreClock } = (await import(
  part("store/store-clock")
)) as typeof import("../../scheduler/src/store/store-clock.ts");
export const { systemClock } = (await import(part("base/clock"))) as typeof import("../../scheduler/src/base/clock.ts");
export const { silentLog } = (await import(part("base/log"))) as typeof import("../../scheduler/src/base/log.ts");
export const { releaseOf } = (await import(
  part("task/release")
)) as typeof import("../../scheduler/src/task/release.ts");
export const { defineTask } = (await import(part("task/task"))) as typeof import("../../scheduler/src/task/task.ts");
export const { Carillon } = (await import(
  part("library/carillon")
)) as typeof import("../../scheduler/src/library/carillon.ts");
export const { realSurroundings } = (await import(
  part("settings/surroundings")
)) as typeof import("../../scheduler/src/settings/surroundings.ts");
