import type { Violation } from "../history.ts";
import { shrink } from "../play/shrink.ts";
import { scenarioOf } from "./draw.ts";
import { PolicyStage, placesOfTower } from "./play.ts";
import { firstBroken } from "./rules/rules.ts";
import type { Scenario } from "./scenario.ts";
import type { Seen } from "./seen.ts";

export interface Broken {
  readonly scenario: Scenario;
  readonly violation: Violation;
  /** The warnings and errors that were logged during the scenario. */
  readonly told: readonly string[];
}

export interface Played {
  readonly scenarios: number;
  readonly runs: number;
  readonly tries: number;
  readonly broken: readonly Broken[];
}

/** Plays scenarios, each on a stage whose workers have as many slots as the scenario requires. */
export class Campaign {
  readonly #url: string;
  readonly #stages = new Map<number, PolicyStage>();

  constructor(url: string) {
    this.#url = url;
  }

  /** Plays the scenarios of these seeds, the lowest seed first. */
  async play(
    seeds: readonly number[],
    onPlayed: (seed: number, violation: Violation | undefined) => void = () => undefined,
    { untilBroken = false, rule }: { untilBroken?: boolean; rule?: string | undefined } = {},
  ): Promise<Played> {
    const broken: Broken[] = [];
    let [scenarios, runs, tries] = [0, 0, 0];
    for (const seed of seeds.toSorted((a, b) => a - b)) {
      const scenario = scenarioOf(seed);
      const seen = await this.#at(scenario, seed % placesOfTower);
      const violation = firstBroken(seen, rule);
      scenarios++;
      runs += seen.runs.length;
      tries += seen.tries.length;
      if (violation) broken.push({ scenario, violation, told: seen.told });
      onPlayed(seed, violation);
      if (violation && untilBroken) break;
    }
    return { scenarios, runs, tries, broken };
  }

  /** Plays one scenario at a position of its stage; the scenario's seed determines the position. */
  see(scenario: Scenario): Promise<Seen> {
    return this.#at(scenario, scenario.seed % placesOfTower);
  }

  /** Returns the scenario without the acts that `shrink` can remove, so that it still breaks the same rule. */
  async smaller({ scenario, violation }: Omit<Broken, "told">): Promise<Scenario> {
    const play = async (fewer: Scenario) => {
      const next = this.#stages.get(scenario.concurrency)?.nextPlace ?? 0;
      return { violation: firstBroken(await this.#at(fewer, next < placesOfTower ? next : 0)) };
    };
    const places = await shrink(scenario, violation, play);
    return { ...scenario, acts: scenario.acts.filter((_, i) => places.includes(i)) };
  }

  async close(): Promise<void> {
    for (const stage of this.#stages.values()) await stage.close();
    this.#stages.clear();
  }

  async #at(scenario: Scenario, place: number): Promise<Seen> {
    const { concurrency } = scenario;
    let stage = this.#stages.get(concurrency);
    if (!stage || stage.nextPlace > place) {
      this.#stages.delete(concurrency);
      await stage?.close();
      stage = await PolicyStage.open(this.#url, concurrency);
      this.#stages.set(concurrency, stage);
    }
    return stage.play(scenario, place);
  }
}
