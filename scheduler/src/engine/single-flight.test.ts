import { expect, it } from "vitest";
import { silentLog } from "../base/log.ts";
import { SingleFlight } from "./single-flight.ts";

it("answers each call with a run that began after the call, also if it arrives while another run ends", async () => {
  for (let turns = 0; turns < 10; turns++) {
    let begun = 0;
    let end: () => void = () => undefined;
    const flight = new SingleFlight("one", silentLog, () => {
      begun++;
      return new Promise((resolve) => {
        end = resolve;
      });
    });
    const first = flight.run();
    end();
    for (let turn = 0; turn < turns; turn++) await null;
    const second = flight.run();
    for (let turn = 0; turn < 10; turn++) await null;
    end();
    await Promise.all([first, second]);
    expect(begun, `after ${turns} turns of the event loop's microtasks`).toBe(2);
  }
});
