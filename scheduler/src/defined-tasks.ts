import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Definitions } from "./definitions.ts";
import { CarillonError } from "./errors.ts";
import type { Handler } from "./handler.ts";
import { validatePayload } from "./payload.ts";
import type { TaskStore } from "./store.ts";
import type { TaskDefinition } from "./task.ts";

interface Defined {
  readonly definition: TaskDefinition;
  readonly schema: StandardSchemaV1 | undefined;
  readonly handler: Handler<never> | undefined;
}

/** Where definitions are stored, and on whose behalf. */
export interface Registry {
  readonly tasks: TaskStore;
  readonly definitions: Definitions;
  readonly author: string;
  readonly nowMs: number;
}

const savedTogether = 1_000;
const reason = "defined in code";

/** The tasks that this process defines, and the numbers that the store knows tasks by. */
export class DefinedTasks {
  readonly #defined = new Map<string, Defined>();
  readonly #taskIds = new Map<string, number>();

  /** @throws TASK_DUPLICATE, TASK_INVALID */
  add(defined: Defined): void {
    const { definition, handler } = defined;
    const { name } = definition;
    if (this.#defined.has(name)) {
      throw new CarillonError("TASK_DUPLICATE", `task ${name} is defined twice in this process`, {
        hint: "Give each task a name of its own.",
      });
    }
    if (handler === undefined && definition.command === null) {
      throw new CarillonError("TASK_INVALID", `task ${name} has neither a handler nor a command`);
    }
    this.#defined.set(name, defined);
  }

  get(name: string): Defined | undefined {
    return this.#defined.get(name);
  }

  get groups(): string[] {
    return [...new Set(["default", ...[...this.#defined.values()].map(({ definition }) => definition.group)])];
  }

  /** The task's number. One defined here is stored first, so that enqueueing works before `start`. */
  async taskId(name: string, registry: Registry): Promise<number> {
    const known = this.#taskIds.get(name);
    if (known !== undefined) return known;
    const { tasks, definitions, author, nowMs } = registry;
    const defined = this.#defined.get(name);
    const record = defined
      ? (await tasks.save(defined.definition, null, { author, reason, nowMs })).record
      : await tasks.byName(name);
    if (defined) definitions.remember(record);
    this.#taskIds.set(name, record.taskId);
    return record.taskId;
  }

  /** A thousand definitions cost one statement when the store has them, two when it has never had them. */
  async registerAll({ tasks, definitions, author, nowMs }: Registry): Promise<void> {
    const unknown = [...this.#defined.values()].filter(({ definition }) => !this.#taskIds.has(definition.name));
    for (let from = 0; from < unknown.length; from += savedTogether) {
      const some = unknown.slice(from, from + savedTogether).map(({ definition }) => definition);
      for (const record of await tasks.saveAll(some, { author, reason, nowMs })) {
        definitions.remember(record);
        this.#taskIds.set(record.name, record.taskId);
      }
    }
  }

  /** A schedule whose slots would all fail on their payload is refused before it fires. @throws PAYLOAD_INVALID */
  async checkSlotPayloads(): Promise<void> {
    for (const { definition, schema } of this.#defined.values()) {
      if (schema && definition.schedule.type !== "manual")
        await validatePayload(schema, definition.slotPayload ?? undefined, definition.name);
    }
  }
}
