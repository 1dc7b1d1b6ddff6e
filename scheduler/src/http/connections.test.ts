import { EventEmitter } from "node:events";
import { writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { throwAwayFolder } from "@carillon/zookeeper/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import { silentLog } from "../base/log.ts";
import { Connections, connectionsMost } from "./connections.ts";

const most = 4;

class Line extends EventEmitter {
  isOpen = true;
  isBusy = false;
  readonly remoteAddress: string;

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  destroy(): void {
    this.isOpen = false;
    this.emit("close");
  }
}

function held() {
  const clock = new VirtualClock(0);
  const lines: object[] = [];
  const warn = (fields: object, message: string) => void lines.push({ ...fields, message });
  const isBusy = (socket: Socket) => (socket as unknown as Line).isBusy;
  const connections = new Connections(most, isBusy, clock, { ...silentLog, warn });
  const come = (address: string, isBusy = false) => {
    const line = new Line(address);
    line.isBusy = isBusy;
    connections.add(line as unknown as Socket);
    return line;
  };
  return { clock, lines, connections, come };
}
const open = (lines: readonly Line[]) => lines.map(({ isOpen }) => isOpen);

describe("incoming connections", () => {
  it("are limited to half of the process's open-files limit, and to 10,000", () => {
    const file = join(throwAwayFolder("limits"), "limits");
    const mostBy = (text: string) => {
      writeFileSync(file, `Limit                     Soft Limit           Hard Limit           Units\n${text}\n`);
      return connectionsMost(file);
    };
    expect(mostBy("Max open files            1024                 1048576              files")).toBe(512);
    expect(mostBy("Max open files            1048576              1048576              files")).toBe(10_000);
    expect(mostBy("Max open files            unlimited            unlimited            files")).toBe(10_000);
    expect(connectionsMost(`${file}-there-is-none`)).toBe(10_000);
    expect(connectionsMost()).toBeGreaterThan(100);
  });

  it("of the address with the most are closed to admit another address: the oldest idle one first", () => {
    const { come } = held();
    const flood = [come("bad", true), come("bad"), come("bad"), come("good")];
    const late = [come("good"), come("other")];
    expect(open(flood)).toEqual([true, false, false, true]);
    // Both addresses had two connections; the one that had reached two earlier lost a connection.
    expect(open(late)).toEqual([true, true]);
  });

  it("are refused if all connections of the busiest address are in use", () => {
    const { come } = held();
    const busy = Array.from({ length: most }, () => come("bad", true));
    expect(open([...busy, come("good")])).toEqual([true, true, true, true, false]);
  });

  it("are reported at once when some are closed, and then once a minute", () => {
    const { come, clock, lines, connections } = held();
    for (let n = 0; n < most + 3; n++) come("bad");
    const first = { most, message: "as many connections as this process holds: some are closed" };
    expect(lines).toEqual([first]);
    clock.advance(60_000);
    expect(lines.splice(0)).toEqual([first, { most, closed: 3, message: "connections were closed for others" }]);
    clock.advance(60_000);
    connections.close();
    expect(lines).toEqual([]);
  });

  it("never exceed the limit, are never closed during a request, and are counted correctly", () => {
    const act = fc.record({ at: fc.nat(5), op: fc.constantFrom("come", "come", "ask", "answered", "go") });
    fc.assert(
      fc.property(fc.array(act, { maxLength: 80 }), (acts) => {
        const { come, connections } = held();
        const all: Line[] = [];
        for (const { at, op } of acts) {
          const there = all.filter(({ isOpen }) => isOpen);
          const one = there[at % Math.max(1, there.length)];
          const busy = there.filter(({ isBusy }) => isBusy);
          if (op === "come") all.push(come(`a${at % 3}`));
          else if (one && op === "go") one.destroy();
          else if (one) one.isBusy = op === "ask";
          if (op !== "go") expect(busy.every(({ isOpen }) => isOpen)).toBe(true);
          const now = all.filter(({ isOpen }) => isOpen).length;
          expect(now).toBeLessThanOrEqual(most);
          expect(connections.count).toBe(now);
        }
      }),
    );
  });
});
