export type { SqlClient } from "./base/change.ts";
export type { Duration } from "./base/duration.ts";
export { CarillonError, type ErrorCode, errorCodes, isCarillonError } from "./base/errors.ts";
export type { Json } from "./base/json.ts";
export type { Log } from "./base/log.ts";
export type { GraceLockStore } from "./cluster/grace-lock-store.ts";
export type {
  Election,
  ElectionOptions,
  Held,
  Lock,
  LockOptions,
  SemaphoreOptions,
  Term,
  TryOptions,
  WaitOptions,
} from "./cluster/locks.ts";
export { GraceLockRow, type GraceLockRowOptions } from "./coordination/grace-lock.ts";
export type { GraceOptions } from "./coordination/locks.ts";
export type { Isolate } from "./executors/isolate/isolates.ts";
export {
  type CrontabFile,
  type CrontabNote,
  type CrontabOptions,
  type CrontabProblem,
  type ImportedCrontab,
  type ImportedTask,
  importCrontab,
} from "./importers/crontab/crontab.ts";
export type { Health } from "./library/acts/health.ts";
export type { DrainOptions, Nodes } from "./library/acts/nodes.ts";
export type { BeginOperation, Operation, Operations, OperationTarget } from "./library/acts/operations.ts";
export type { RunEvent } from "./library/acts/run-events.ts";
export type { TaskName, TaskRegistry } from "./library/acts/task-registry.ts";
export { Carillon, carillon } from "./library/carillon.ts";
export type {
  AnyEvent,
  ClusterEvent,
  ClusterEventOf,
  ConsumerOptions,
  EventListening,
  EventsOf,
  EventsOptions,
  Handling,
  OnEvent,
} from "./library/events/event.ts";
export type { Events } from "./library/events/events.ts";
export { fsPayloads } from "./library/payloads/fs-payloads.ts";
export { type S3Credentials, type S3Options, s3Payloads } from "./library/payloads/s3-payloads.ts";
export type { ResultOptions, RunHandle } from "./library/run-handle.ts";
export type { RunSummary, Runs, RunsCount, RunsFilter, RunsPage } from "./library/runs.ts";
export type {
  NamedSchedule,
  NewSchedule,
  RemoveSchedule,
  ScheduleEntry,
  Schedules,
  SchedulesSet,
  SetSchedules,
} from "./library/schedules.ts";
export type { DefineTask, Producer, Task } from "./library/task-handle.ts";
export { type TaskType, taskType } from "./library/task-type.ts";
export type { DeadGroup, DeadGroups, DeadLetter } from "./run/dead-letters.ts";
export type { EnqueueOptions } from "./run/enqueue-options.ts";
export type { Continuation, RunInput } from "./run/flow.ts";
export type { ChildSpec, Handler, Run, RunLog, RunNotice } from "./run/handler.ts";
export type { BatchHandler, BatchOptions, BatchRun } from "./run/handling/batch.ts";
export type { RetryIn, Snooze } from "./run/handling/postponed.ts";
export type {
  BackfillRange,
  OperationFilter,
  OperationKind,
  OperationRecord,
  OperationRequest,
} from "./run/operations.ts";
export type { LogLine, RunRecord } from "./run/run-record.ts";
export type {
  DrizzleTransaction,
  KnexTransaction,
  KyselyTransaction,
  PostgresJsTransaction,
  Transaction,
  TypeOrmTransaction,
} from "./run/transaction.ts";
export { type Calendar, type CalendarContent, calendarContent } from "./schedule/calendar.ts";
export { holidaysOfIcs, type IcsDays, type IcsNotice, type IcsWindow, readIcs } from "./schedule/ics/ics.ts";
export { spreadCron } from "./schedule/phrase/spread-cron.ts";
export {
  at,
  compileSchedule,
  cron,
  every,
  type FoldPolicy,
  type GapPolicy,
  manual,
  nextSlots,
  previousSlots,
  rrule,
  type Schedule,
  type ScheduleSpec,
  validateSchedule,
} from "./schedule/schedule.ts";
export type { AlarmOptions } from "./settings/alarms/alarms.ts";
export type { EventWebhookOptions } from "./settings/event-webhooks.ts";
export type { PayloadCodec } from "./settings/payload-codec.ts";
export type { PayloadOptions, PayloadStore } from "./settings/payload-store.ts";
export type { CarillonOptions, CommandOptions, HttpTaskOptions } from "./settings/settings.ts";
export type { ChangeEventType, EventType, RunEventType, SlotEventType } from "./store/event-store.ts";
export type { Store } from "./store/store.ts";
export type { HttpOptions, HttpSpec, StatusPattern } from "./task/http.ts";
export { defineTask, type TaskDefinition, type TaskOptions } from "./task/task.ts";
export type { TaskRecord } from "./task/task-record.ts";
