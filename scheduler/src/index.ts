export type { AlarmOptions } from "./alarm-options.ts";
export { type Calendar, type CalendarContent, calendarContent } from "./calendar.ts";
export { Carillon, carillon } from "./carillon.ts";
export { GraceLockRow, type GraceLockRowOptions } from "./coordination/grace-lock.ts";
export type { GraceOptions } from "./coordination/locks.ts";
export {
  type CrontabFile,
  type CrontabNote,
  type CrontabOptions,
  type CrontabProblem,
  type ImportedCrontab,
  type ImportedTask,
  importCrontab,
} from "./crontab/crontab.ts";
export type { DeadGroup, DeadGroups, DeadLetter } from "./dead-letters.ts";
export type { Duration } from "./duration.ts";
export type { EnqueueOptions } from "./enqueue-options.ts";
export { CarillonError, type ErrorCode, errorCodes, isCarillonError } from "./errors.ts";
export type { Continuation, RunInput } from "./flow.ts";
export type { GraceLockStore } from "./grace-lock-store.ts";
export type { ChildSpec, Handler, Run, RunLog, RunNotice } from "./handler.ts";
export type { HttpOptions, HttpSpec, StatusPattern } from "./http-task.ts";
export { holidaysOfIcs, type IcsWindow } from "./ics.ts";
export type { Json } from "./json.ts";
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
} from "./locks.ts";
export type { Log } from "./log.ts";
export type { BackfillRange, OperationFilter, OperationKind, OperationRecord, OperationRequest } from "./operations.ts";
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
  type Schedule,
  type ScheduleSpec,
  validateSchedule,
} from "./schedule.ts";
export type { CarillonOptions, CommandOptions, HttpTaskOptions } from "./settings.ts";
export type { RunRecord, SqlClient, Store, TaskRecord } from "./store.ts";
export { defineTask, type TaskDefinition, type TaskOptions } from "./task.ts";
export type { RunHandle, Task } from "./task-handle.ts";
