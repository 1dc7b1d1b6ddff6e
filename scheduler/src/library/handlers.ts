import type { Clock } from "../base/clock.ts";
import { CarillonError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { commandHandler } from "../executors/command/handler.ts";
import { httpCaller } from "../executors/http/handler.ts";
import { Isolates } from "../executors/isolate/isolates.ts";
import type { Handler } from "../run/handler.ts";
import type { HttpTaskOptions, Settings } from "../settings/settings.ts";
import type { Surroundings } from "../settings/surroundings.ts";
import { handlerTask } from "../task/schedule-of.ts";
import { defineTask, requireOptions, type TaskDefinition } from "../task/task.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import { batched } from "../worker/running/batches.ts";
import type { Defined, DefinedTasks } from "./defined-tasks.ts";
import { saidSchema } from "./payload.ts";
import { Codecs } from "./payloads/codecs.ts";
import type { CodeOptions } from "./task-handle.ts";
import type { TaskType } from "./task-type.ts";

/** Finds the handler with which this process runs a task. */
export class Handlers {
  readonly isolates: Isolates;
  readonly codecs: Codecs;
  readonly #settings: Settings;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #defined: DefinedTasks;
  readonly #instead: Surroundings["handlerFor"];
  readonly #gathers: Surroundings["gathers"];
  #callHttp: ReturnType<typeof httpCaller>;

  /** @throws OPTION_INVALID */
  constructor(settings: Settings, { clock, handlerFor, gathers }: Surroundings, log: Log, defined: DefinedTasks) {
    this.isolates = new Isolates({ ...settings, log });
    this.codecs = new Codecs(settings, clock, log);
    this.#settings = settings;
    this.#clock = clock;
    this.#instead = handlerFor;
    this.#gathers = gathers;
    this.#log = log;
    this.#defined = defined;
    this.#callHttp = this.httpOf(settings.httpTasks);
  }

  /** @throws OPTION_INVALID */
  httpOf(options: HttpTaskOptions): ReturnType<typeof httpCaller> {
    return httpCaller({ ...options, clock: this.#clock, log: this.#log });
  }

  /** Replaces the HTTP caller for runs that start from now on; runs in progress continue with the previous caller. */
  callHttpBy(call: ReturnType<typeof httpCaller>): void {
    this.#callHttp = call;
  }

  /** Converts the arguments of `task` to a definition and a handler. @throws TASK_INVALID and the errors of the schedule's own check */
  defined(given: string | TaskType, options: CodeOptions, handler: Handler<never> | URL | string | undefined): Defined {
    const name = typeof given === "string" ? given : given.name;
    requireOptions(name, options);
    const { payload: own, isolate, batch, ...rest } = options;
    const schema = typeof given === "string" ? own : given.payload;
    const definition = defineTask(name, { payloadSchema: saidSchema(schema) ?? null, ...rest });
    if (definition.atEnd === "remove")
      throw new CarillonError(
        "TASK_INVALID",
        `task ${name}: it would be removed at its end, and this code defines it`,
        {
          hint: 'The next process to start would make it again. Use "alarm", or a schedule of a task: task.schedule(name, when, { atEnd: "remove" }).',
          path: "atEnd",
        },
      );
    if (batch === undefined) return { definition, schema, handler: this.isolates.handler(name, handler, isolate) };
    const { concurrency } = this.#settings;
    const host = { clock: this.#clock, gathers: this.#gathers, concurrency };
    return { definition, schema, handler: batched(name, isolate ? undefined : (handler as never), batch, host) };
  }

  /** Returns the handler of a task; undefined if this process cannot run the task. */
  of(task: TaskDefinition, tracing: Tracing | undefined): Handler | undefined {
    const own = this.#instead?.(handlerTask(task)) ?? this.#defined.handlerOf(task) ?? this.#ofUndefined(task);
    const handler = own && this.codecs.handler(own);
    return handler && tracing ? tracing.handler(handler) : handler;
  }

  /** Returns the handler of a task that has no code in this process, because its definition contains a command or an HTTP request. */
  #ofUndefined({ command, http }: TaskDefinition): Handler | undefined {
    if (command !== null) return commandHandler(command, this.#settings.commands, this.#clock);
    return http === undefined ? undefined : this.#callHttp(http);
  }
}
