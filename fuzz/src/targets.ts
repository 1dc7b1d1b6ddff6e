import type { Target } from "./target.ts";
import { commandLineTargets } from "./targets/command-line.ts";
import { contractTargets } from "./targets/contract.ts";
import { definitionTargets } from "./targets/definitions.ts";
import { importTargets } from "./targets/imports.ts";
import { scheduleTargets } from "./targets/schedules.ts";
import { serverTargets } from "./targets/servers.ts";
import { valueTargets } from "./targets/values.ts";
import { zookeeperTargets } from "./targets/zookeeper.ts";

/** Everything that reads what others wrote. */
export const targets: readonly Target[] = [
  ...[
    ...scheduleTargets,
    ...definitionTargets,
    ...importTargets,
    ...valueTargets,
    ...contractTargets,
    ...zookeeperTargets,
    ...commandLineTargets,
    ...serverTargets,
  ],
];
