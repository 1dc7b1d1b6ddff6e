/** Faults for the soak test. A fault that lasts for a while is undone before the next one begins. */
import { setTimeout as pause } from "node:timers/promises";
import type { Member } from "./crew.ts";
import type { Line } from "./line.ts";
import type { StoreServer } from "./store-server.ts";

export interface Stage {
  readonly store: StoreServer;
  readonly nodes: readonly { readonly member: Member; readonly line: Line }[];
  readonly workers: readonly Member[];
  /** Names of the processes that must not be killed, because their resources are measured over the whole test. */
  readonly steady: ReadonlySet<string>;
  readonly random: () => number;
  /** Records an event in the form that the checkers read. */
  happened(what: string): void;
}

export interface Fault {
  readonly name: string;
  /** Resolves when the fault is over and every process or server that it took down is up again. */
  run(stage: Stage): Promise<void>;
}

const between = ({ random }: Stage, least: number, most: number) => least + random() * (most - least);
const oneOf = <T>({ random }: Stage, all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;

async function killAndBegin(stage: Stage, members: readonly Member[]): Promise<void> {
  const member = oneOf(
    stage,
    members.filter(({ name }) => !stage.steady.has(name)),
  );
  stage.happened(`${member.name} is killed`);
  await member.kill();
  await pause(between(stage, 500, 9_000));
  stage.happened(`${member.name} begins its next life`);
  await member.start();
}

async function standStill(stage: Stage, members: readonly Member[]): Promise<void> {
  const member = oneOf(stage, members);
  const forMs = between(stage, 1_000, 16_000);
  stage.happened(`${member.name} stands still for ${Math.round(forMs)} ms`);
  member.stand();
  await pause(forMs);
  member.go();
}

const nodesOf = ({ nodes }: Stage) => nodes.map(({ member }) => member);

export const faultsOfNodes: readonly Fault[] = [
  { name: "a node is killed", run: (stage) => killAndBegin(stage, nodesOf(stage)) },
  { name: "a node stands still", run: (stage) => standStill(stage, nodesOf(stage)) },
  {
    name: "a line to the store is cut",
    run: async (stage) => {
      const { member, line } = oneOf(stage, stage.nodes);
      const forMs = between(stage, 100, 12_000);
      stage.happened(`${member.name} is cut off from the store for ${Math.round(forMs)} ms`);
      line.cut();
      await pause(forMs);
      line.heal();
    },
  },
  {
    name: "a line to the store is silent",
    run: async (stage) => {
      const { member, line } = oneOf(stage, stage.nodes);
      const forMs = between(stage, 1_000, 16_000);
      stage.happened(`${member.name} is answered nothing by the store for ${Math.round(forMs)} ms`);
      line.silence();
      await pause(forMs);
      line.heal();
    },
  },
  {
    name: "the store is restarted",
    run: async (stage) => {
      const forMs = between(stage, 0, 12_000);
      for (const { member } of stage.nodes)
        stage.happened(`${member.name} is without a store for ${Math.round(forMs)} ms`);
      await stage.store.stopNow();
      await pause(forMs);
      await stage.store.startAgain();
    },
  },
  {
    name: "a node is stopped and begun",
    run: async (stage) => {
      const member = oneOf(
        stage,
        nodesOf(stage).filter(({ name }) => !stage.steady.has(name)),
      );
      stage.happened(`${member.name} is stopped in order`);
      await member.stop();
      stage.happened(`${member.name} begins its next life`);
      await member.start();
    },
  },
];

export const faults: readonly Fault[] = [
  ...faultsOfNodes,
  { name: "a worker is killed", run: (stage) => killAndBegin(stage, stage.workers) },
  { name: "a worker stands still", run: (stage) => standStill(stage, stage.workers) },
];

/** Yields the kinds of fault in a random order, each once, and repeats that without end. */
export function* inTurn(random: () => number, kinds: readonly Fault[] = faults): Generator<Fault, never> {
  for (;;) {
    const round = [...kinds];
    while (round.length > 0) yield round.splice(Math.floor(random() * round.length), 1)[0] as Fault;
  }
}
