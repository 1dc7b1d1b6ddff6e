import type { StandardSchemaV1 } from "@standard-schema/spec";
import { CarillonError, isCarillonError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Handler } from "../run/handler.ts";
import { plannedSchedule } from "../schedule/slot-rules.ts";
import { comingSlots } from "../slots/coming-slots.ts";
import type { Definitions } from "../store/definitions.ts";
import { inOrder } from "../task/after.ts";
import { editedParts } from "../task/edits.ts";
import { type Release, releaseOf } from "../task/release.ts";
import { handlerTask } from "../task/schedule-of.ts";
import type { TaskDefinition } from "../task/task.ts";
import type { BroughtBy, TaskStore } from "../task/task-store.ts";
import { GroupNumbers } from "./group-numbers.ts";
import { validateKept } from "./payload.ts";
import type { TaskType } from "./task-type.ts";

export interface Defined {
  readonly definition: TaskDefinition;
  readonly schema: StandardSchemaV1 | undefined;
  readonly handler: Handler<never> | undefined;
}

/** The stores for task definitions, and the author of the changes. */
export interface Registry {
  readonly tasks: TaskStore;
  readonly definitions: Definitions;
  readonly author: string;
  readonly by: BroughtBy;
  readonly nowMs: number;
  readonly log: Log;
}

const savedTogether = 1_000;
const toldAtMost = 20;
const reason = "defined in code";

/** The tasks that this process defines, and the ids that tasks have in the store. */
export class DefinedTasks {
  readonly groupNumbers = new GroupNumbers();
  readonly #defined = new Map<string, Defined>();
  /** Types of tasks for which this process only enqueues runs. */
  readonly #produced = new Map<string, TaskType>();
  readonly #taskIds = new Map<string, number>();
  readonly #hotReload: boolean;
  #swapping = Promise.resolve();
  #definitions: Definitions | undefined;
  #release: Release | undefined;
  /** Lookups of ids that are in progress; concurrent lookups of one name share a query. */
  readonly #asked = new Map<string, Promise<void>>();

  /** @param hotReload true: a second definition of a task replaces the first; false: it throws TASK_DUPLICATE */
  constructor(hotReload = false) {
    this.#hotReload = hotReload;
  }

  /** @returns true if the definition replaces an earlier definition @throws TASK_DUPLICATE, TASK_INVALID */
  add(defined: Defined): boolean {
    const { definition, handler } = defined;
    const { name } = definition;
    const isAgain = this.#defined.has(name);
    if (isAgain && !this.#hotReload) {
      throw new CarillonError("TASK_DUPLICATE", `task ${name} is defined twice in this process`, {
        hint: "Give each task a name of its own. A development server that loads modules again needs carillon({ hotReload: true }).",
      });
    }
    const { command, http } = definition;
    if (handler === undefined && command === null && http === undefined) {
      throw new CarillonError("TASK_INVALID", `task ${name} has neither a handler nor a command nor a URL to call`);
    }
    this.#defined.set(name, defined);
    return isAgain;
  }

  /**
   * Stores the new definition of a task that was defined again.
   * @param register stores all tasks; undefined if the process has not started
   */
  storeSwapped(name: string, register: (() => Promise<void>) | undefined, log: Log): void {
    this.#taskIds.delete(name);
    // Definitions are stored one after another, so that after two quick changes the later definition is the stored one.
    this.#swapping = this.#swapping.then(register).then(
      () => log.info({ task: name }, "defined anew: its runs that begin from now on have the new handler"),
      (error) => log.error({ task: name, error: messageOf(error) }, "the new definition could not be stored"),
    );
  }

  get size(): number {
    return this.#defined.size;
  }

  /** Returns the release of this process. It is computed at the first call, so tasks defined later belong to the same release. */
  release(label: string): Release {
    this.#release ??= releaseOf(
      label,
      [...this.#defined.values()].map(({ definition }) => definition),
    );
    return this.#release;
  }

  get(name: string): Defined | undefined {
    return this.#defined.get(name);
  }

  /**
   * Registers a task for which this process enqueues runs and which other processes define.
   * @throws TASK_DUPLICATE if this process defines the task, or, without `hotReload`, has another type with the same name
   */
  produce(type: TaskType): void {
    const { name } = type;
    const other = this.#produced.get(name);
    if (this.#defined.has(name) || (other && other !== type && !this.#hotReload))
      throw new CarillonError("TASK_DUPLICATE", `task ${name} has two types in this process`, {
        hint: "Where a task is defined, enqueue it by what `task` returned; elsewhere make its type once, in a module that all import.",
      });
    this.#produced.set(name, type);
  }

  /** Returns the payload schema of a task that this process defines or enqueues. */
  schemaOf(name: string): StandardSchemaV1 | undefined {
    return this.#defined.get(name)?.schema ?? this.#produced.get(name)?.payload;
  }

  /**
   * Returns the handler that this process defines for the task; undefined if it defines none. With a payload schema, the returned
   * handler validates the payload first.
   */
  handlerOf(definition: TaskDefinition): Handler | undefined {
    const name = handlerTask(definition);
    const defined = this.#defined.get(name);
    const handler = defined?.handler as Handler | undefined;
    const schema = defined?.schema;
    if (!handler || !schema) return handler;
    return async (run, payload) => handler(run, await validateKept(schema, payload, name));
  }

  /**
   * Returns the next slots that will run, in epoch ms. They follow from the stored definition if this process has read it, else
   * from the definition in this process.
   * @throws CALENDAR_UNKNOWN if this process has not read the stored definition and the task has a calendar, whose days only the
   * store has
   */
  next(definition: TaskDefinition, nowMs: number, count: number): number[] {
    const taskId = this.#taskIds.get(definition.name);
    const known = taskId === undefined ? undefined : this.#definitions?.get(taskId);
    if (known) {
      const { definition: stored, schedule, taskId: seed } = known;
      return comingSlots({ definition: stored, schedule, seed }, nowMs, count);
    }
    const { name, calendar } = definition;
    if (calendar)
      throw new CarillonError(
        "CALENDAR_UNKNOWN",
        `task ${name}: the days of calendar ${calendar.name} are not known yet`,
        {
          hint: "They are in the store: ask once this process has started, or has enqueued a run of the task.",
        },
      );
    return comingSlots({ definition, schedule: plannedSchedule(definition, undefined), seed: null }, nowMs, count);
  }

  get groups(): string[] {
    return [...new Set(["default", ...[...this.#defined.values()].map(({ definition }) => definition.group)])];
  }

  /** Returns the task's id if this process has cached it. */
  known(name: string): number | undefined {
    return this.#taskIds.get(name);
  }

  /**
   * Returns the task's id. A task that this process defines is stored first if necessary, so that enqueueing works before `start`.
   * @throws TASK_UNKNOWN
   */
  async taskId(name: string, registry: Registry): Promise<number> {
    const known = this.#taskIds.get(name);
    if (known !== undefined) return known;
    let asked = this.#asked.get(name);
    if (!asked) {
      // An error goes to all callers that share this lookup; the next call retries.
      asked = this.#learn(name, registry).finally(() => this.#asked.delete(name));
      this.#asked.set(name, asked);
    }
    await asked;
    return this.#taskIds.get(name) as number;
  }

  async #learn(name: string, registry: Registry): Promise<void> {
    const { tasks } = registry;
    const defined = this.#defined.get(name);
    if (defined) await this.#register(this.#withUpstream(defined.definition), registry);
    else this.#taskIds.set(name, (await tasks.byName(name)).taskId);
  }

  /**
   * Stores the tasks again after the store was restored from a backup, because the restored store may lack tasks or have other ids for
   * them.
   * @param register stores all tasks; undefined if the process has not started
   */
  storeAnew(register: (() => Promise<void>) | undefined, log: Log): void {
    this.#taskIds.clear();
    register?.().catch((error) => {
      if (isCarillonError(error, "STOPPED")) return;
      log.error({ error: messageOf(error) }, "tasks could not be stored again; start this process anew");
    });
  }

  /**
   * Stores the definitions whose ids are not cached. A thousand of them take one statement if the store already has them, else
   * two.
   */
  async registerAll(registry: Registry): Promise<void> {
    const unknown = [...this.#defined.values()].filter(({ definition }) => !this.#taskIds.has(definition.name));
    const ordered = inOrder(unknown.map(({ definition }) => definition));
    for (let from = 0; from < ordered.length; from += savedTogether)
      await this.#register(ordered.slice(from, from + savedTogether), registry);
  }

  /** Returns the definition together with those of the tasks that it runs after, because those definitions must be stored first. */
  #withUpstream(definition: TaskDefinition): TaskDefinition[] {
    const some = new Set([definition]);
    // The loop also visits the definitions that its body adds to the Set.
    for (const { after } of some)
      for (const name of after?.tasks ?? []) {
        const upstream = this.#taskIds.has(name) ? undefined : this.#defined.get(name);
        if (upstream) some.add(upstream.definition);
      }
    return [...some];
  }

  async #register(some: TaskDefinition[], { tasks, definitions, author, by, nowMs, log }: Registry): Promise<void> {
    const edits: Record<string, string[]> = {};
    this.#definitions = definitions;
    const bundles: Record<string, string> = {};
    const others: string[] = [];
    const stored = new Set<TaskDefinition | undefined>(some);
    for (const record of await tasks.saveAll(some, { author, reason, nowMs }, by)) {
      const { name, bundle, isOthers } = record;
      definitions.remember(record);
      // If the definition was replaced in the meantime, the id is not cached, because the new definition must still be stored.
      if (stored.has(this.#defined.get(name)?.definition)) this.#taskIds.set(name, record.taskId);
      if (bundle !== undefined) bundles[name] = bundle;
      else if (isOthers) others.push(name);
      else if (record.definition.asDefined) edits[record.name] = editedParts(record.definition);
    }
    if (Object.keys(edits).length > 0)
      log.warn({ edits }, "these tasks were edited by hand: what the code says of those parts is not used");
    if (others.length > 0)
      log.warn(
        { tasks: others.slice(0, toldAtMost), count: others.length, release: by.release.name },
        "another release defines these tasks, and processes of it live or did until just now: what this one's code says of them is not used",
      );
    if (Object.keys(bundles).length > 0)
      log.info({ bundles }, "these tasks are defined by files that were applied: their options in code are not used");
  }

  /**
   * Validates the fixed payloads of scheduled slots and of runs after other tasks, so that the error appears at the start and not in a run.
   * @throws PAYLOAD_INVALID
   */
  async checkSlotPayloads(): Promise<void> {
    for (const { definition, schema } of this.#defined.values()) {
      if (schema && (definition.schedule.type !== "manual" || definition.after))
        await validateKept(schema, definition.slotPayload, definition.name);
    }
  }
}
