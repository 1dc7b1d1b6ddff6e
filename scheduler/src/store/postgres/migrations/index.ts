import { main } from "./0001-main.ts";
import { sessionGroups } from "./0002-session-groups.ts";
import { graceLocks } from "./0003-grace-locks.ts";
import { witness } from "./0004-witness.ts";
import { sessionSettings } from "./0005-session-settings.ts";
import { locks } from "./0006-locks.ts";
import { workerKeys } from "./0007-worker-keys.ts";
import { routing } from "./0008-routing.ts";
import { flow } from "./0009-flow.ts";
import { operations } from "./0010-operations.ts";
import { groupLimits } from "./0011-group-limits.ts";
import { runTrace } from "./0012-run-trace.ts";
import { access } from "./0013-access.ts";
import { browse } from "./0014-browse.ts";
import { taskHistory } from "./0015-task-history.ts";
import { bundles } from "./0016-bundles.ts";
import { alarms } from "./0017-alarms.ts";
import { namespaces } from "./0018-namespaces.ts";
import { secrets } from "./0019-secrets.ts";
import { runSpan } from "./0021-run-span.ts";
import { keyRoom } from "./0022-key-room.ts";
import { alarmHeld } from "./0023-alarm-held.ts";
import { accessLines } from "./0024-access-lines.ts";
import { runAgain } from "./0025-run-again.ts";
import { waitsSince } from "./0026-waits-since.ts";
import { historyByOutcome } from "./0027-history-by-outcome.ts";
import { recovery } from "./0028-recovery.ts";
import { storeClock } from "./0029-store-clock.ts";
import { polledSignals } from "./0030-polled-signals.ts";
import { runLosses } from "./0031-run-losses.ts";
import { recoveryDoubt } from "./0032-recovery-doubt.ts";
import { releases } from "./0033-releases.ts";
import { signalsUntil } from "./0034-signals-until.ts";
import { still } from "./0035-still.ts";
import { signIns } from "./0038-sign-ins.ts";
import { logArrival } from "./0039-log-arrival.ts";
import { coordinationAt } from "./0040-coordination-at.ts";
import { drainedNodes } from "./0041-drained-nodes.ts";
import { unbegun } from "./0042-unbegun.ts";
import { versionFloor } from "./0047-version-floor.ts";
import { graceFloor } from "./0048-grace-floor.ts";
import { movedSlots } from "./0049-moved-slots.ts";
import { timeBack } from "./0050-time-back.ts";
import { calendarNames } from "./0051-calendar-names.ts";
import { auditChain } from "./0053-audit-chain.ts";
import { quotas } from "./0056-quotas.ts";
import { pauseUntil } from "./0058-pause-until.ts";
import { temporaryPassword } from "./0059-temporary-password.ts";
import { secondFactors } from "./0060-second-factors.ts";
import { zoneRules } from "./0061-zone-rules.ts";
import { pausesWithAnEnd } from "./0062-pauses-with-an-end.ts";
import { pauseAfter } from "./0063-pause-after.ts";
import { schedules } from "./0064-schedules.ts";
import { atEnd } from "./0065-at-end.ts";
import { pin } from "./0066-pin.ts";
import { awaited } from "./0067-awaited.ts";
import { freshFloors } from "./0068-fresh-floors.ts";
import { keyExpiry } from "./0069-key-expiry.ts";
import { moreQuotas } from "./0070-more-quotas.ts";
import { auditSkips } from "./0071-audit-skips.ts";
import { runOverrides } from "./0072-run-overrides.ts";
import { runLabels } from "./0073-run-labels.ts";
import { events } from "./0076-events.ts";
import { runSnoozes } from "./0079-run-snoozes.ts";
import { knownKeys } from "./0080-known-keys.ts";
import { historySize } from "./0082-history-size.ts";
import { lateness } from "./0083-lateness.ts";
import { storedAlarmRules } from "./0084-alarm-rules.ts";
import { statistics } from "./0085-statistics.ts";
import { relaxed } from "./0086-relaxed.ts";
import { hooks } from "./0087-hooks.ts";
import { manyTasks } from "./0088-many-tasks.ts";
import { appliedItems } from "./0094-applied-items.ts";
import { failingConsumers } from "./0095-failing-consumers.ts";
import { eventContent } from "./0096-event-content.ts";
import { alarmQueue } from "./0097-alarm-queue.ts";
import { alarmLooks } from "./0098-alarm-looks.ts";
import { nodeHealth } from "./0099-node-health.ts";
import { taskOwners } from "./0104-task-owners.ts";

/**
 * The oldest version of Carillon that may run at the same time as this one on the present schema, given as the number of the newest
 * migration in that version. A migration that removes what older code reads, or guarantees something that older code does not respect, must
 * raise this number. A test finds later migrations whose SQL removes or renames columns and tables.
 */
export const servesFrom = 19;

/** The migrations, in order. The text of a published migration never changes. */
export const migrations: { number: number; name: string; sql: (schema: string) => string }[] = [
  { number: 1, name: "main", sql: main },
  { number: 2, name: "session-groups", sql: sessionGroups },
  { number: 3, name: "grace-locks", sql: graceLocks },
  { number: 4, name: "witness", sql: witness },
  { number: 5, name: "session-settings", sql: sessionSettings },
  { number: 6, name: "locks", sql: locks },
  { number: 7, name: "worker-keys", sql: workerKeys },
  { number: 8, name: "routing", sql: routing },
  { number: 9, name: "flow", sql: flow },
  { number: 10, name: "operations", sql: operations },
  { number: 11, name: "group-limits", sql: groupLimits },
  { number: 12, name: "run-trace", sql: runTrace },
  { number: 13, name: "access", sql: access },
  { number: 14, name: "browse", sql: browse },
  { number: 15, name: "task-history", sql: taskHistory },
  { number: 16, name: "bundles", sql: bundles },
  { number: 17, name: "alarms", sql: alarms },
  { number: 18, name: "namespaces", sql: namespaces },
  { number: 19, name: "secrets", sql: secrets },
  { number: 21, name: "run-span", sql: runSpan },
  { number: 22, name: "key-room", sql: keyRoom },
  { number: 23, name: "alarm-held", sql: alarmHeld },
  { number: 24, name: "access-lines", sql: accessLines },
  { number: 25, name: "run-again", sql: runAgain },
  { number: 26, name: "waits-since", sql: waitsSince },
  { number: 27, name: "history-by-outcome", sql: historyByOutcome },
  { number: 28, name: "recovery", sql: recovery },
  { number: 29, name: "store-clock", sql: storeClock },
  { number: 30, name: "polled-signals", sql: polledSignals },
  { number: 31, name: "run-losses", sql: runLosses },
  { number: 32, name: "recovery-doubt", sql: recoveryDoubt },
  { number: 33, name: "releases", sql: releases },
  { number: 34, name: "signals-until", sql: signalsUntil },
  { number: 35, name: "still", sql: still },
  { number: 38, name: "sign-ins", sql: signIns },
  { number: 39, name: "log-arrival", sql: logArrival },
  { number: 40, name: "coordination-at", sql: coordinationAt },
  { number: 41, name: "drained-nodes", sql: drainedNodes },
  { number: 42, name: "unbegun", sql: unbegun },
  { number: 47, name: "version-floor", sql: versionFloor },
  { number: 48, name: "grace-floor", sql: graceFloor },
  { number: 49, name: "moved-slots", sql: movedSlots },
  { number: 50, name: "time-back", sql: timeBack },
  { number: 51, name: "calendar-names", sql: calendarNames },
  { number: 53, name: "audit-chain", sql: auditChain },
  { number: 56, name: "quotas", sql: quotas },
  { number: 58, name: "pause-until", sql: pauseUntil },
  { number: 59, name: "temporary-password", sql: temporaryPassword },
  { number: 60, name: "second-factors", sql: secondFactors },
  { number: 61, name: "zone-rules", sql: zoneRules },
  { number: 62, name: "pauses-with-an-end", sql: pausesWithAnEnd },
  { number: 63, name: "pause-after", sql: pauseAfter },
  { number: 64, name: "schedules", sql: schedules },
  { number: 65, name: "at-end", sql: atEnd },
  { number: 66, name: "pin", sql: pin },
  { number: 67, name: "awaited", sql: awaited },
  { number: 68, name: "fresh-floors", sql: freshFloors },
  { number: 69, name: "key-expiry", sql: keyExpiry },
  { number: 70, name: "more-quotas", sql: moreQuotas },
  { number: 71, name: "audit-skips", sql: auditSkips },
  { number: 72, name: "run-overrides", sql: runOverrides },
  { number: 73, name: "run-labels", sql: runLabels },
  { number: 76, name: "events", sql: events },
  { number: 79, name: "run-snoozes", sql: runSnoozes },
  { number: 80, name: "known-keys", sql: knownKeys },
  { number: 82, name: "history-size", sql: historySize },
  { number: 83, name: "lateness", sql: lateness },
  { number: 84, name: "alarm-rules", sql: storedAlarmRules },
  { number: 85, name: "statistics", sql: statistics },
  { number: 86, name: "relaxed", sql: relaxed },
  { number: 87, name: "hooks", sql: hooks },
  { number: 88, name: "many-tasks", sql: manyTasks },
  { number: 94, name: "applied-items", sql: appliedItems },
  { number: 95, name: "failing-consumers", sql: failingConsumers },
  { number: 96, name: "event-content", sql: eventContent },
  { number: 97, name: "alarm-queue", sql: alarmQueue },
  { number: 98, name: "alarm-looks", sql: alarmLooks },
  { number: 99, name: "node-health", sql: nodeHealth },
  { number: 104, name: "task-owners", sql: taskOwners },
];
