import type { SecretSource } from "../../access/secrets/secrets.ts";
import type { WorkerKey } from "../../access/worker-store.ts";
import type {
  AskedInputs,
  AskedSecret,
  GivenInputs,
  GivenSecret,
  GivenSpawn,
  GivenState,
  GivenVerdict,
  Refusal,
  Spawned,
} from "../../api/worker-protocol.ts";
import { CarillonError, type ErrorCode, isCarillonError } from "../../base/errors.ts";
import { jsonText } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import { namespaceOf } from "../../base/namespace.ts";
import type { ChildWrite, Onward } from "../../run/flow.ts";
import type { Store } from "../../store/store.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import type { Quotas } from "../quotas.ts";

/** Errors that concern only one claim's request; other errors fail the whole poll. */
const ofOneClaim: readonly ErrorCode[] = [
  "FENCE_STALE",
  "TASK_UNKNOWN",
  "KEY_FORBIDDEN",
  "OPTION_INVALID",
  "PAYLOAD_NOT_JSON",
  "PAYLOAD_TOO_LARGE",
  "QUOTA_EXCEEDED",
  "SECRET_UNKNOWN",
  "SECRET_FORBIDDEN",
  "SECRET_INVALID",
  "SECRET_KEY_MISSING",
];

export type Refuse = (claim: { runId: number; fence: number }, part: Refusal["part"], error: CarillonError) => void;

/**
 * Executes the calls of remote workers' handlers, such as starting other runs. The caller has checked that the claim belongs to the
 * session; the store checks by the fence that the claim is still valid. A run may start runs only in the groups of the worker's key,
 * because otherwise the holder of a key for one group could start runs of other groups, with any payload.
 */
export class FlowCalls {
  readonly #store: Store;
  readonly #storeClock: StoreClock;
  readonly #secrets: SecretSource;
  readonly #quotas: Quotas;

  constructor(store: Store, storeClock: StoreClock, secrets: SecretSource, quotas: Quotas) {
    this.#secrets = secrets;
    this.#quotas = quotas;
    this.#store = store;
    this.#storeClock = storeClock;
  }

  async save(given: GivenState, refuse: Refuse): Promise<void> {
    const { runId, fence, state } = given;
    await refusable(given, "state", refuse, async () => {
      const text = jsonText(state ?? undefined, `run ${runId}: state`);
      if (!(await this.#store.flow.saveState(runId, fence, text))) throw over(runId);
    });
  }

  async spawn(key: WorkerKey, spawns: GivenSpawn[], refuse: Refuse): Promise<Spawned[]> {
    const spawned: Spawned[] = [];
    const names = spawns.flatMap(({ children, join }) => [
      ...children.map(({ task }) => task),
      ...(join ? [join] : []),
    ]);
    const tasks = await this.#tasks(key, names);
    for (const given of spawns) {
      const { runId, fence, children, join } = given;
      await refusable(given, "spawn", refuse, async () => {
        if (join !== undefined) tasks(join);
        const writes = children.map(
          ({ task, key: name, payload }): ChildWrite => ({
            taskId: tasks(task),
            key: name,
            payload: jsonText(payload, `run ${runId}: the payload of its child`),
          }),
        );
        if (writes.length > 0) await this.#quotas.takeOfKey(key.name, writes.length);
        const made =
          writes.length === 0 ? [] : await this.#store.flow.spawn({ runId, fence }, writes, this.#storeClock.now());
        spawned.push({ runId, fence, children: made });
      });
    }
    return spawned;
  }

  async inputs(asked: AskedInputs, refuse: Refuse): Promise<GivenInputs | undefined> {
    const { runId, fence, afterRunId = 0 } = asked;
    const page = { afterRunId, limit: limits.inputsPerPoll, bytes: limits.inputBytesPerPoll };
    return refusable(asked, "inputs", refuse, async () => {
      return { runId, fence, ...(await this.#store.flow.inputsPage({ runId, fence }, page)) };
    });
  }

  async secret(asked: AskedSecret, refuse: Refuse): Promise<GivenSecret | undefined> {
    const { runId, fence, name, version = null } = asked;
    return refusable(asked, "secret", refuse, async () => {
      return { runId, fence, name, value: await this.#secrets.open({ runId, fence }, name, version) };
    });
  }

  /** Returns the continuations that successful verdicts request; for a continuation that cannot be begun, the error. */
  async onwards(key: WorkerKey, verdicts: GivenVerdict[]): Promise<Map<GivenVerdict, Onward | CarillonError>> {
    const found = new Map<GivenVerdict, Onward | CarillonError>();
    const some = verdicts.flatMap((verdict) => (verdict.onward ? [{ verdict, onward: verdict.onward }] : []));
    if (some.length === 0) return found;
    const tasks = await this.#tasks(
      key,
      some.flatMap(({ onward }) => ("join" in onward ? [onward.join] : [])),
    );
    for (const { verdict, onward } of some) {
      const begun = await refusable(
        verdict,
        "verdict",
        (_claim, _part, error) => found.set(verdict, error),
        async () => onwardOf(verdict.runId, onward, tasks),
      );
      if (begun) found.set(verdict, begun);
    }
    return found;
  }

  /**
   * Reads these tasks, and returns a function that maps a name to the task's id. The function throws for an unknown task and for one that
   * the key does not allow.
   */
  async #tasks(key: WorkerKey, names: string[]): Promise<(name: string) => number> {
    const records = names.length === 0 ? [] : await this.#store.tasks.byNames([...new Set(names)]);
    const known = new Map(records.map(({ name, taskId, definition }) => [name, { taskId, group: definition.group }]));
    return (name) => {
      const task = known.get(name);
      // For tasks in namespaces where the key has no group, the error is the same whether the task exists or not, so that nothing is
      // revealed.
      const near = task && key.groups.some((group) => namespaceOf(group) === namespaceOf(name) || group === task.group);
      if (!near)
        throw new CarillonError("TASK_UNKNOWN", `there is no task ${JSON.stringify(name)}`, {
          hint: "See `carillon tasks list`. A task exists once it is stored.",
        });
      if (key.groups.includes(task.group)) return task.taskId;
      throw new CarillonError(
        "KEY_FORBIDDEN",
        `task ${name} is of group ${task.group}, which the worker's key does not allow`,
        {
          hint: `Make a key that allows it too: carillon keys create NAME --group ${task.group}; the worker need not serve it.`,
        },
      );
    };
  }
}

function onwardOf(runId: number, given: NonNullable<GivenVerdict["onward"]>, tasks: (name: string) => number): Onward {
  if ("join" in given)
    return {
      kind: "join",
      taskId: tasks(given.join),
      payload: jsonText(given.payload, `run ${runId}: the payload of ${given.join}`),
    };
  const { payload, state } = given.continueAs;
  return {
    kind: "continue",
    payload: jsonText(payload, `run ${runId}: the payload of the next run`),
    state: jsonText(state ?? undefined, `run ${runId}: the state of the next run`),
  };
}

async function refusable<Done>(
  claim: { runId: number; fence: number },
  part: Refusal["part"],
  refuse: Refuse,
  work: () => Promise<Done>,
): Promise<Done | undefined> {
  try {
    return await work();
  } catch (error) {
    if (!isCarillonError(error) || !ofOneClaim.includes(error.code)) throw error;
    refuse(claim, part, error);
    return undefined;
  }
}

const over = (runId: number) =>
  new CarillonError("FENCE_STALE", `run ${runId} is no longer this worker's, so its state is not kept`);
