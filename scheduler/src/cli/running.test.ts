import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { watchReaders } from "./readers.ts";
import { runUntilStopped } from "./running.ts";
import { Terminal } from "./screen/terminal.ts";

afterEach(() => vi.restoreAllMocks());

it("a component that ends by itself stops the others, and its error is reported", async () => {
  const stopped: string[] = [];
  const tower = (name: string, ended?: () => Promise<void>) => ({
    start: async () => undefined,
    stop: async () => void stopped.push(name),
    ...(ended ? { ended } : {}),
  });
  const fault = new Error("its key was revoked");
  const towers = [tower("first"), tower("second", () => Promise.reject(fault))];
  const hooks = { onStarted: async () => undefined, onStopping: () => undefined };
  await expect(runUntilStopped(towers, hooks)).rejects.toBe(fault);
  expect(stopped).toEqual(["first", "second"]);
});

it("SIGHUP stops a process with a terminal; a process without one logs it and continues", async () => {
  const streams: { isTTY?: boolean }[] = [process.stdin, process.stdout, process.stderr];
  const before = streams.map(({ isTTY }) => isTTY);
  const terminal = (isTTY: boolean) => {
    for (const stream of streams) stream.isTTY = isTTY;
  };
  onTestFinished(() => {
    for (const [at, stream] of streams.entries()) stream.isTTY = before[at] as boolean;
  });
  const stopped = vi.fn(async () => undefined);
  const onHangUp = vi.fn();
  const run = () =>
    runUntilStopped([{ start: async () => undefined, stop: stopped }], {
      onStarted: async () => undefined,
      onStopping: () => undefined,
      onHangUp,
    });
  terminal(false);
  const service = run();
  await new Promise((resolve) => setImmediate(resolve));
  process.emit("SIGHUP");
  await new Promise((resolve) => setImmediate(resolve));
  expect([onHangUp.mock.calls.length, stopped.mock.calls.length]).toEqual([1, 0]);
  process.emit("SIGTERM");
  expect(await service).toBe(0);
  terminal(true);
  const watched = run();
  await new Promise((resolve) => setImmediate(resolve));
  process.emit("SIGHUP");
  expect(await watched).toBe(0);
  expect([onHangUp.mock.calls.length, stopped.mock.calls.length]).toEqual([1, 2]);
});

it("a closed terminal stops a node cleanly, whether a failed write or SIGHUP reports it first", async () => {
  const exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
  watchReaders(new Terminal({ json: false, colour: false }));
  let stop = (): void => undefined;
  const tower = {
    start: async () => undefined,
    stop: () => {
      process.emit("SIGHUP");
      return new Promise<void>((resolve) => {
        stop = resolve;
      });
    },
  };
  const running = runUntilStopped([tower], { onStarted: async () => undefined, onStopping: () => undefined });
  process.stdout.emit("error", Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  await vi.waitFor(() => expect(process.listenerCount("SIGHUP")).toBeGreaterThan(0), 60_000);
  await new Promise((resolve) => setImmediate(resolve));
  expect(exit).not.toHaveBeenCalled();
  process.emit("SIGTERM");
  expect(exit, "a second signal").toHaveBeenCalledWith(130);
  stop();
  await running;
  const idle = { start: async () => undefined, stop: async () => undefined };
  const after = runUntilStopped([idle], { onStarted: async () => undefined, onStopping: () => undefined });
  expect(await after, "one that starts when its output is gone already").toBe(130);
});
