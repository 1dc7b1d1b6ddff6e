/** What `--set PART=VALUE` takes; a value in { } or [ ] is JSON. */
export const partsToSet =
  "description, group, schedule (a cron, every 5m, at TIME, manual), zone, slotPayload (JSON), priority, timeout (or none), " +
  "retry, overlap, misfire, onWorkerLost, grace, history, command (JSON), http (JSON), calendar (JSON, or none), " +
  "blackout (JSON, or none), after (TASK,TASK…, JSON with on, or none)";
