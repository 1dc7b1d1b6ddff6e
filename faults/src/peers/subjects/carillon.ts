/**
 * Carillon with its session timeout shortened from 6 s to 4 s: with the grace of 1 s, the runs of a dead worker run again after about the
 * lock time of the peers. The misfire policy `all` drops no slot for being late, as with the peers.
 */

import { silentLog } from "../../../../scheduler/src/base/log.ts";
import { Carillon } from "../../../../scheduler/src/library/carillon.ts";
import type { Run } from "../../../../scheduler/src/run/handler.ts";
import { every } from "../../../../scheduler/src/schedule/schedule.ts";
import { concurrency, recurring, type Subject } from "../subject.ts";

const options = { handleSignals: false, log: silentLog };

export const subject: Subject = {
  async add(store, slots) {
    const tower = new Carillon({ store, scheduler: false, worker: false, ...options });
    const task = tower.task<string>("slots", {}, () => undefined);
    await tower.open();
    await Promise.all(slots.map(({ key, dueMs }) => task.enqueue(key, { at: dueMs, key })));
    await tower.stop();
  },
  async work({ store, name }, handle) {
    const tower = new Carillon({ store, name, concurrency, sessionTimeout: 4_000, ...options });
    tower.task<string>("slots", {}, (_run: Run, key: string) => handle(key));
    tower.task("every", { schedule: every("1s", { anchor: 0 }), misfire: { policy: "all" } }, ({ slot }: Run) =>
      handle(recurring(slot?.getTime() ?? Number.NaN)),
    );
    await tower.start();
  },
};
