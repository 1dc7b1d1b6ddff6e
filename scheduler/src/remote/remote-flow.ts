import type { SecretSource } from "../access/secrets/secrets.ts";
import type { PollAnswer, PollRequest, Refusal } from "../api/worker-protocol.ts";
import { CarillonError, type ErrorCode } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { limits } from "../base/limits.ts";
import type { AskingRun, ChildWrite, RunFlow, RunInput } from "../run/flow.ts";
import type { Enqueued } from "../run/run-record.ts";
import { inParts } from "./parts.ts";
import type { RemoteSession } from "./remote-session.ts";

/** Error codes which mean that a claim does not belong to this worker (any more). The handler's request then fails as for a lost claim. */
export const over = ["CLAIM_FOREIGN", "RUN_UNKNOWN", "FENCE_STALE"];

/**
 * The handlers' requests other than verdicts, sent over HTTP. Each request can be repeated safely: a saved state is written again, and a
 * child run is found by its key. Task ids in this class are valid only in this process, because servers identify tasks by name.
 */
export class RemoteFlow implements RunFlow, SecretSource {
  readonly #session: Pick<RemoteSession, "pollUntilAnswered">;
  readonly #names: string[] = [];
  readonly #numbers = new Map<string, number>();

  constructor(session: Pick<RemoteSession, "pollUntilAnswered">) {
    this.#session = session;
  }

  nameOf(taskId: number): string {
    return this.#names[taskId] as string;
  }

  async taskId(name: string, { runId, fence }: AskingRun): Promise<number> {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    await this.#ask({ spawns: [{ runId, fence, children: [], join: name }] });
    // Another run may have added the name during the request.
    const number = this.#numbers.get(name) ?? this.#names.push(name) - 1;
    this.#numbers.set(name, number);
    return number;
  }

  async spawn({ runId, fence }: AskingRun, writes: ChildWrite[]): Promise<Enqueued[]> {
    const children = writes.map(({ taskId, key, payload }) => ({
      task: this.nameOf(taskId),
      key,
      ...(payload === null ? {} : { payload: JSON.parse(payload) as unknown }),
    }));
    const made: Enqueued[] = [];
    for (const part of inParts(children, limits.childrenAtOnce)) {
      const { spawned = [] } = await this.#ask({ spawns: [{ runId, fence, children: part }] });
      made.push(...(spawned[0]?.children ?? []));
    }
    return made;
  }

  async saveState(runId: number, fence: number, state: string | null): Promise<boolean> {
    const states = [{ runId, fence, state: state === null ? null : (JSON.parse(state) as Json) }];
    const { refused } = await this.#session.pollUntilAnswered({ states });
    if (refused[0] && !over.includes(refused[0].code)) throw errorOf(refused[0]);
    return refused.length === 0;
  }

  async inputs({ runId, fence }: AskingRun): Promise<RunInput[]> {
    const all: RunInput[] = [];
    for (let afterRunId = 0, more = true; more; afterRunId = all.at(-1)?.runId ?? 0) {
      const { inputs } = await this.#ask({ inputsOf: { runId, fence, afterRunId } });
      all.push(...((inputs?.inputs ?? []) as RunInput[]));
      more = inputs?.more ?? false;
    }
    return all;
  }

  async open({ runId, fence }: AskingRun, name: string, version: number | null): Promise<string> {
    const { secret } = await this.#ask({ secretOf: { runId, fence, name, ...(version === null ? {} : { version }) } });
    if (secret) return secret.value;
    throw new CarillonError("SECRET_UNKNOWN", "the server gave no secret", {
      hint: "It may be older than this worker.",
    });
  }

  /** Sends a request and returns the response. @throws the error of the first part that the server refused */
  async #ask(part: Pick<PollRequest, "spawns" | "inputsOf" | "secretOf">): Promise<PollAnswer> {
    const answer = await this.#session.pollUntilAnswered(part);
    if (answer.refused[0]) throw errorOf(answer.refused[0]);
    return answer;
  }
}

function errorOf({ code, message }: Refusal): CarillonError {
  return new CarillonError(over.includes(code) ? "FENCE_STALE" : (code as ErrorCode), message);
}
