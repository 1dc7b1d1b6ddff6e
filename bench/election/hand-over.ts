/** The measurements of elections: leaders that close, are killed, or are stopped (SIGSTOP) and continued. */
import { setTimeout as pause } from "node:timers/promises";
import { type Figures, median, percentile } from "../measure/figures.ts";
import { type Candidate, msBetween, now, type Told } from "./candidate.ts";

/** Starts a candidate's process. */
export type Start = (id: string) => Candidate;

/** The time in ms for which a stopped leader is watched after it continues. */
const beliefMs = 1_000;

/** The candidates of one election, and the measurements on them. */
export class Election {
  readonly #start: Start;
  readonly #candidates: Candidate[] = [];
  #leader: Candidate | undefined;
  #started = 0;
  /** Descriptions of the faults found so far. */
  readonly faults: string[] = [];
  #fence = 0n;

  constructor(start: Start) {
    this.#start = start;
  }

  /** Starts `count` candidates; resolves when all have joined the election and one of them leads. */
  async begin(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.#add();
    const [first] = this.#candidates;
    if (!first) throw new Error("an election needs a candidate");
    this.#leads(first, await first.says("leads", 0));
  }

  /** Lets the leader close and rejoin, `times` times. @returns for each, the ms from the leader's call of `close` to the next leadership */
  async handOver(times: number): Promise<number[]> {
    const took: number[] = [];
    for (let i = 0; i < times; i++) {
      const old = this.#leader as Candidate;
      const since = this.#marks();
      const oldSince = old.told.length;
      old.ask("leave");
      const next = await this.#next(since, old);
      const { atNs } = await old.says("leaving", oldSince);
      took.push(msBetween(atNs, next.atNs));
      await old.says("left", oldSince);
      await this.#join(old);
    }
    return took;
  }

  /** Kills the leader and adds a new candidate, `times` times. @returns for each, the ms from the kill to the next leadership */
  async kill(times: number): Promise<number[]> {
    const took: number[] = [];
    for (let i = 0; i < times; i++) {
      const old = this.#leader as Candidate;
      const since = this.#marks();
      this.#candidates.splice(this.#candidates.indexOf(old), 1);
      const killedNs = now();
      await old.kill();
      took.push(msBetween(killedNs, (await this.#next(since, old)).atNs));
      await this.#add();
    }
    return took;
  }

  /**
   * Stops the leader (SIGSTOP) until another candidate leads, then continues it, `times` times.
   * @returns for each, the ms for which the old leader still believed that it led after it continued
   */
  async stop(times: number): Promise<number[]> {
    const believed: number[] = [];
    for (let i = 0; i < times; i++) {
      const old = this.#leader as Candidate;
      old.ask("watch");
      await pause(50); // Wait until the candidate has begun to check.
      const since = this.#marks();
      old.signal("SIGSTOP");
      await this.#next(since, old);
      const goesOnNs = now();
      old.signal("SIGCONT");
      await pause(beliefMs);
      const asked = old.told.length;
      old.ask("belief");
      const { more: _, atNs } = await old.says("belief", asked);
      if (atNs === 0n) this.faults.push(`candidate ${old.id} never believed that it led`);
      believed.push(Math.max(0, msBetween(goesOnNs, atNs)));
      // A candidate that was told to watch cannot be told to stop watching, so it is killed and a new candidate replaces it.
      this.#candidates.splice(this.#candidates.indexOf(old), 1);
      await old.kill();
      await this.#add();
    }
    return believed;
  }

  async end(): Promise<void> {
    await Promise.all(this.#candidates.map((candidate) => candidate.kill()));
  }

  async #add(): Promise<void> {
    const candidate = this.#start(String(++this.#started));
    this.#candidates.push(candidate);
    await candidate.says("ready", 0);
    await this.#join(candidate);
  }

  async #join(candidate: Candidate): Promise<void> {
    const since = candidate.told.length;
    candidate.ask("join");
    await candidate.says("joined", since);
  }

  #marks(): Map<Candidate, number> {
    return new Map(this.#candidates.map((candidate) => [candidate, candidate.told.length]));
  }

  /** Waits until a candidate other than `old` leads, and returns its event. Records a fault if a second candidate leads too. */
  async #next(since: Map<Candidate, number>, old: Candidate): Promise<Told> {
    const others = this.#candidates.filter((candidate) => candidate !== old);
    const [next, told] = await Promise.any(
      others.map(async (one) => [one, await one.says("leads", since.get(one) ?? 0)] as const),
    );
    for (const other of others) {
      const led = other.told.slice(since.get(other)).some(({ what }) => what === "leads");
      if (other !== next && led) this.faults.push(`candidates ${next.id} and ${other.id} both lead after ${old.id}`);
    }
    this.#leads(next, told);
    return told;
  }

  #leads(candidate: Candidate, { more }: Told): void {
    this.#leader = candidate;
    if (more === "") return; // Java's candidates print no fence.
    if (BigInt(more) <= this.#fence) this.faults.push(`fence ${more} of ${candidate.id} after ${this.#fence}`);
    this.#fence = BigInt(more);
  }
}

export function electionFigures(handOvers: number[], kills: number[], beliefs: number[]): Figures {
  const sorted = handOvers.toSorted((a, b) => a - b);
  return {
    hand_overs: handOvers.length,
    hand_over_p50_ms: median(handOvers),
    hand_over_p99_ms: percentile(sorted, 0.99),
    hand_over_max_ms: percentile(sorted, 1),
    after_kill_p50_ms: median(kills),
    after_kill_max_ms: Math.max(...kills),
    believes_after_stop_max_ms: Math.max(...beliefs),
  };
}
