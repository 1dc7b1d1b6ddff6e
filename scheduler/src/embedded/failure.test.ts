import { expect, it } from "vitest";
import { overdueFailure, serverFailure } from "./failure.ts";

it("distinguishes a small /dev/shm from a full disk in the output of initdb (container with 16 KiB)", () => {
  const output = `creating configuration files ... ok
running bootstrap script ... 2026-11-25 20:55:03.419 UTC [6406] FATAL:  could not resize shared memory segment "/PostgreSQL.2819010910" to 1048576 bytes: No space left on device
child process exited with exit code 1
`;
  expect(serverFailure("initdb could not make the data", output, "log")).toMatchObject({
    code: "EMBEDDED_FAILED",
    message: expect.stringMatching(/^\/dev\/shm is too small .*could not resize shared memory segment/),
    hint: expect.stringContaining("--shm-size"),
  });
  const full = 'FATAL:  could not write to file "pg_wal/xlogtemp.29": No space left on device';
  expect(serverFailure("the server ended", full, "log")).toMatchObject({ code: "STORE_FULL" });
});

it("distinguishes a full disk from a hanging server if neither ends", () => {
  expect(overdueFailure(120_000, "log", 4_096)).toMatchObject({
    code: "STORE_FULL",
    message: "The disk of the embedded store is full (4 KiB free); the server did not accept connections within 120 s",
    hint: expect.stringContaining("Free space"),
  });
  for (const free of [2 ** 30, undefined])
    expect(overdueFailure(120_000, "log", free)).toMatchObject({
      code: "EMBEDDED_FAILED",
      message: "The embedded store does not start: the server did not accept connections within 120 s.",
      hint: expect.stringContaining("SIGSTOP"),
    });
});
