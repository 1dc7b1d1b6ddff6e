import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import type { Member } from "../member.ts";
import { type Fault, type Heal, together } from "./fault.ts";

const dayMs = 86_400_000;

async function kill(member: Member, forMs: number) {
  if (!member.alive) return () => undefined;
  await member.kill(forMs);
  return () => member.begin();
}

/** Faults of single processes: killed, stopped, blocked, restarted, with a wrong clock or without resources. */
export const processFaults: readonly Fault[] = [
  {
    name: "worker-killed",
    what: "kill -9 of two workers",
    async inflict(cluster, dice, forMs) {
      const workers = [dice.one(cluster.of("worker")), dice.one(cluster.of("remote worker"))];
      const heals: Heal[] = [];
      for (const worker of workers.filter((one) => one !== undefined)) heals.push(await kill(worker, forMs));
      return together(heals);
    },
  },
  {
    name: "leader-killed",
    what: "kill -9 of the node that leads",
    inflict: async (cluster, _, forMs) => kill(await cluster.leader(), forMs),
  },
  {
    name: "all-killed",
    what: "kill -9 of every process, as when the machine's power goes",
    async inflict(cluster, _, forMs) {
      return together(await Promise.all(cluster.members.map((member) => kill(member, forMs))));
    },
  },
  {
    name: "worker-paused",
    what: "SIGSTOP and SIGCONT of two workers",
    async inflict(cluster, dice, forMs) {
      const workers = [dice.one(cluster.of("worker")), dice.one(cluster.of("remote worker"))];
      const heals: Heal[] = [];
      for (const worker of workers.filter((one) => one !== undefined)) heals.push(await cluster.stand(worker, forMs));
      return together(heals);
    },
  },
  {
    name: "leader-paused",
    what: "SIGSTOP and SIGCONT of the node that leads",
    inflict: async (cluster, _, forMs) => cluster.stand(await cluster.leader(), forMs),
  },
  {
    name: "all-paused",
    what: "SIGSTOP and SIGCONT of every process, as when their machine stands still",
    async inflict(cluster, _, forMs) {
      return together(await Promise.all(cluster.members.map((member) => cluster.stand(member, forMs))));
    },
  },
  {
    name: "blocked",
    what: "the event loops of the leader and of a worker are held by code that does not return",
    async inflict(cluster, dice, forMs) {
      for (const member of [await cluster.leader(), dice.one(cluster.of("worker", "remote worker"))])
        member.block(forMs);
      return () => undefined;
    },
  },
  {
    name: "restarted",
    what: "a node and a worker are stopped in order, and started again",
    momentary: true,
    async inflict(cluster, dice) {
      const members = [await cluster.leader(), dice.one(cluster.of("worker", "remote worker"))];
      const alive = members.filter(({ able, paused }) => able && !paused);
      await Promise.all(alive.map((member) => member.stop()));
      return together(alive.map((member) => () => member.begin()));
    },
  },
  {
    name: "clock-stepped",
    what: "the wall clocks of a node and of a worker jump by up to a day, and back",
    async inflict(cluster, dice) {
      const heals = [dice.one(cluster.of("node")), dice.one(cluster.of("worker", "remote worker"))].map((member) => {
        const ms = Math.round(dice.between(-dayMs, dayMs));
        cluster.happened(`${member.name}'s wall clock steps by ${ms} ms`);
        member.tell({ kind: "step clock", ms });
        // A process that was restarted in the meantime has the right clock already.
        const { pid } = member;
        return () => {
          if (member.pid === pid) member.tell({ kind: "step clock", ms: -ms });
        };
      });
      return together(heals);
    },
  },
  {
    name: "no-descriptors",
    what: "a node and a worker can open no file and no connection any more",
    needs: "prlimit",
    async inflict(cluster, dice) {
      const members = [dice.one(cluster.of("node")), dice.one(cluster.of("worker", "remote worker"))];
      const heals = members.flatMap((member) => {
        if (!member.alive) return [];
        const { pid } = member;
        const limit = (open: string) => execFileSync("prlimit", ["--pid", String(pid), `--nofile=${open}`]);
        const before = String(
          execFileSync("prlimit", ["--pid", String(pid), "--nofile", "--noheadings", "-o", "SOFT"]),
        ).trim();
        cluster.happened(`${member.name} can open nothing any more`);
        limit(`${readdirSync(`/proc/${pid}/fd`).length}:`);
        return [
          () => {
            if (member.alive && member.pid === pid) limit(`${before}:`);
          },
        ];
      });
      return together(heals);
    },
  },
];
