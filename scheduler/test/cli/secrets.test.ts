import { spawnSync } from "node:child_process";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { makeSecretKey } from "../../src/access/secrets/secret-keys.ts";
import { ask, file, folder, here, json } from "./process.ts";

const main = fileURLToPath(new URL("../../lib/cli.js", import.meta.url));
const value = "canary-b81f of the bank";
const carillon = (keys: string | undefined, input: string | Buffer, ...args: string[]) => {
  const { CARILLON_SECRET_KEYS: _, ...env } = process.env;
  return spawnSync(process.execPath, [main, ...args, ...here()], {
    cwd: folder,
    input,
    encoding: "utf8",
    env: { ...env, ...(keys === undefined ? {} : { CARILLON_SECRET_KEYS: keys }) },
  });
};

it("secrets are set from standard input, listed without values, rewrapped with a new key, and removed", async () => {
  const [old, next] = [carillon(undefined, "", "secrets", "key").stdout, `${makeSecretKey()}\n`];
  await file("keys", `# of 2030\n${old}`);
  expect(carillon("file:keys", value, "secrets", "set", "bank").stderr).toMatch(
    /SECRET_KEY_OPEN: keys .*chmod 600 keys/s,
  );
  await chmod(join(folder, "keys"), 0o600);
  expect(carillon("file:nowhere", value, "secrets", "set", "bank").stderr).toContain("FILE_INVALID");
  const set = carillon("file:keys", `${value}\n`, "secrets", "set", "bank", "--task", "settle", "--reason", "new bank");
  expect([set.stdout, set.stderr]).toEqual(["bank is at version 1\n", ""]);
  const binary = carillon("file:keys", Buffer.alloc(16, 0xff), "secrets", "set", "bank");
  expect([binary.status, binary.stderr]).toEqual([2, expect.stringMatching(/SECRET_INVALID: .*UTF-8[\s\S]*base64/)]);
  await file("both", `${next}${old}`);
  await chmod(join(folder, "both"), 0o600);
  expect(carillon("file:both", "", "secrets", "rewrap").stdout).toMatch(/^1 values are wrapped anew/);
  const [listed] = await json("secrets", "list");
  expect(listed).toMatchObject({ name: "bank", version: 1, tasks: ["settle"], reason: "new bank" });
  expect(set.stdout + JSON.stringify(listed)).not.toContain("canary");
  expect((await ask("secrets", "remove", "bank")).code).toBe(0);
});
