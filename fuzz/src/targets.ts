import type { Target } from "./target.ts";
import { apiWordTargets } from "./targets/api-words.ts";
import { commandLineTargets } from "./targets/command-line.ts";
import { contractTargets } from "./targets/contract.ts";
import { definitionTargets } from "./targets/definitions.ts";
import { fileTargets } from "./targets/files.ts";
import { importTargets } from "./targets/imports.ts";
import { scheduleTargets } from "./targets/schedules.ts";
import { serverTargets } from "./targets/servers.ts";
import { signInTargets } from "./targets/sign-in.ts";
import { valueTargets } from "./targets/values.ts";
import { zookeeperTargets } from "./targets/zookeeper.ts";

/** All targets: everything that reads input from outside. */
export const targets: readonly Target[] = [
  ...scheduleTargets,
  ...definitionTargets,
  ...importTargets,
  ...valueTargets,
  ...contractTargets,
  ...apiWordTargets,
  ...fileTargets,
  ...zookeeperTargets,
  ...commandLineTargets,
  ...serverTargets,
  ...signInTargets,
];
