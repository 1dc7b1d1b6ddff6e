import { CarillonError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { HeldRun } from "./running/held-run.ts";

export interface Recall {
  fence: number;
  kind: "cancel" | "withdraw";
  why: string;
}

export interface RecallsHost {
  readonly log: Log;
  readonly held: ReadonlyMap<number, HeldRun>;
  asked(): Promise<readonly Recall[]>;
  cancel(run: HeldRun, reason: CarillonError): void;
  release(run: HeldRun): void;
  /** The store is to know that these had started. */
  report(runs: HeldRun[]): Promise<void>;
}

/** Answers what the store asks back, and again as long as one is asked for whose claim is still on its way here. */
export class Recalls {
  readonly #host: RecallsHost;
  #open = false;

  constructor(host: RecallsHost) {
    this.#host = host;
  }

  /** If an answer is still owed. */
  async retry(): Promise<void> {
    if (this.#open) await this.answer();
  }

  async answer(): Promise<void> {
    this.#open = false;
    const { asked, report, log } = this.#host;
    try {
      await report((await asked()).flatMap((recall) => this.#answerOne(recall)));
    } catch (error) {
      this.#open = true;
      log.debug({ error: messageOf(error) }, "recalls could not be read yet");
    }
  }

  /** @returns it, where it had started */
  #answerOne({ fence, kind, why }: Recall): HeldRun[] {
    const { held, cancel, release } = this.#host;
    const run = held.get(fence);
    if (!run) {
      this.#open = true;
      return [];
    }
    if (kind === "cancel") {
      cancel(run, new CarillonError("CANCELLED", why));
      return run.state === "ending" ? [run] : [];
    }
    const act = run.on("withdraw");
    if (act === "keep" || run.state === "ending") return [run];
    // One whose verdict is on its way already needs no second one.
    if (act === "report released") release(run);
    return [];
  }
}
