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
  /** Asks the store to record that these runs have started. */
  report(runs: HeldRun[]): Promise<void>;
}

/** Answers the store's recalls, and retries while a recalled claim is still on its way here. */
export class Recalls {
  readonly #host: RecallsHost;
  #open = false;

  constructor(host: RecallsHost) {
    this.#host = host;
  }

  /** Answers the recalls that have no answer yet. */
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

  /** @returns the run, if it had started; else an empty list */
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
    // If the verdict of the run is already on its way, the run needs no second one.
    if (act === "report released") release(run);
    return [];
  }
}
