import { execFile } from "node:child_process";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { findBinaries } from "../../src/embedded/binaries.ts";
import { openEmbedded } from "../../src/embedded/index.ts";
import { carillon } from "../../src/library/carillon.ts";
import { query, scratch } from "./stage.ts";

const exec = promisify(execFile);

test("a store continues under another PostgreSQL major version by the steps in docs/operate/embedded.md", async () => {
  const folder = await scratch();
  const directory = join(folder, "store");
  const machine = await findBinaries({
    copies: folder,
    signal: new AbortController().signal,
    log: () => undefined,
    packageFolder: () => undefined,
  });
  const old = await openEmbedded({ directory, binaries: machine.folder });
  const tower = carillon({ store: old.url, handleSignals: false, worker: false, scheduler: false });
  tower.task("kept", {}, () => undefined);
  const { runId } = await tower.enqueue("kept", { of: "the old one" });
  await tower.stop();

  const dump = join(folder, "carillon.dump");
  await exec(join(machine.folder, "pg_dump"), ["--format=custom", "--schema=carillon", `--file=${dump}`, old.url]);
  await old.release();
  await rename(directory, join(folder, "store-old"));

  const next = await openEmbedded({ directory });
  expect(Number.parseInt(next.version, 10)).toBeGreaterThan(machine.major);
  await exec(join(machine.folder, "pg_restore"), ["--exit-on-error", `--dbname=${next.url}`, dump]);
  expect(await query(next.url, "select id, payload from carillon.run")).toEqual([
    { id: String(runId), payload: { of: "the old one" } },
  ]);
  const works = carillon({ store: next.url, handleSignals: false });
  const seen = new Promise<unknown>((resolve) => {
    works.task("kept", {}, (_run, payload) => resolve(payload));
  });
  await works.start();
  expect(await seen).toEqual({ of: "the old one" });
  await works.stop();
  await next.release();
});
