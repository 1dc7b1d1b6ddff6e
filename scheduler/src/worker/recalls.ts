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
  /** Records in the store that these runs have started. */
  report(runs: HeldRun[]): Promise<void>;
}

/**
 * Answers the store's recalls (requests to cancel or withdraw a claim), and retries while a recalled claim has not arrived here yet
 * or the recalls cannot be read.
 */
export class Recalls {
  readonly #host: RecallsHost;
  #open = false;

  constructor(host: RecallsHost) {
    this.#host = host;
  }

  /** Answers again if a recalled claim had not arrived here, or if the recalls could not be read. */
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

  /** Returns the run in a list if its start is to be reported, because it had started or goes on; else an empty list. */
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
    // Any other action means that the run's verdict is on its way to the store, so no second verdict is sent.
    if (act === "report released") release(run);
    return [];
  }
}
