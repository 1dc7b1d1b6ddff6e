/** The module carillon/task: reads, writes and edits a task's options with the server's own code. It is pure, so browsers can use it. */
export { parseDuration } from "../base/duration.ts";
export { CarillonError, type ErrorCode, isCarillonError, stepsOf, within } from "../base/errors.ts";
export { type Json, sortedJson } from "../base/json.ts";
export { edited } from "./edits.ts";
export { encodedText, storedKey } from "./kinds/encoded.ts";
export type { Shape } from "./kinds/kinds.ts";
export {
  type OptionName,
  type OptionRow,
  optionRows,
  type TaskDefinition,
  type TaskOptions,
  takesNull,
  taskOptions,
  usualWritten,
} from "./options.ts";
export { backoffs, misfirePolicies, overlapPolicies } from "./policies.ts";
export { isOwnOption } from "./schedule-of.ts";
export { readTask } from "./task.ts";
export { givenOptions } from "./written.ts";
