/** Parts of Carillon that it does not export, from the build that this bench measures. */
const part = (path: string): string => new URL(`./${path}.js`, import.meta.resolve("carillon")).href;

export const { openZooKeeper } = (await import(
  part("coordination/zookeeper")
)) as typeof import("../../scheduler/src/coordination/zookeeper.ts");
export const { openRedisWitness } = (await import(
  part("coordination/redis")
)) as typeof import("../../scheduler/src/coordination/redis.ts");
export const { joinCluster } = (await import(
  part("coordination/membership")
)) as typeof import("../../scheduler/src/coordination/membership.ts");
export const { openPostgres } = (await import(
  part("store/postgres")
)) as typeof import("../../scheduler/src/store/postgres.ts");
export const { StoreClock } = (await import(
  part("store-clock")
)) as typeof import("../../scheduler/src/store-clock.ts");
export const { systemClock } = (await import(part("clock"))) as typeof import("../../scheduler/src/clock.ts");
export const { silentLog } = (await import(part("log"))) as typeof import("../../scheduler/src/log.ts");
export const { defineTask } = (await import(part("task"))) as typeof import("../../scheduler/src/task.ts");
