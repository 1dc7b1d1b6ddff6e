import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { ownPath, sharedServer } from "../support/servers.ts";

const program = fileURLToPath(new URL("../../../examples/dist/zookeeper/delayed-publishing.js", import.meta.url));

it("delayed publishing: each article appears once, in order, and one that always fails is set aside", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [program, sharedServer(), ownPath("publishing")], {
    timeout: 60_000,
  });
  const lines = stdout.trim().split("\n");
  const published = lines.flatMap((line) => /^published: (.*), by publisher [12]$/.exec(line)?.[1] ?? []);
  expect(published).toEqual([
    "Breaking news, on time",
    "Morning edition, on time",
    "Noon edition, at attempt 2",
    "Evening edition, on time",
  ]);
  expect(lines).toContain("attempt 1 failed: Error: the site is down");
  expect(lines).toContain("laid aside after attempt 3: Error: it has no text");
  expect(lines.at(-1)).toBe("0 articles wait, 1 lies aside");
});
