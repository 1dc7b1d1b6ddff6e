import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createAuthority } from "../../../zookeeper/src/testing/certificates.ts";
import { certificatesOf } from "./certificates.ts";

const folder = mkdtempSync(join(tmpdir(), "certificates-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const beginsMs = Date.parse("2020-01-01T00:00:00Z");
const nowMs = Date.parse("2030-06-01T00:00:00Z");
const authority = createAuthority();
const until = (time: string) => authority.issue("a", { until: new Date(time) }).cert;
const rootUntil = (time: string) => createAuthority("root", { until: new Date(time) }).cert;
const client = file("client.pem", until("2030-01-01T00:00:00Z"));
const chain = file("chain.pem", `${until("2032-01-01T00:00:00Z")}\n${until("2031-01-01T00:00:00Z")}`);
const both = `postgres://db/app?sslmode=verify-full&sslcert=${encodeURIComponent(client)}&sslrootcert=${chain}`;
const replaced = file("roots.pem", `${rootUntil("2030-01-01T00:00:00Z")}${rootUntil("2030-06-02T00:00:00Z")}`);
const expired = file("old.pem", rootUntil("2030-01-01T00:00:00Z"));
const many = (count: number) =>
  file(`many-${count}.pem`, Array.from({ length: count }, () => until("2031-01-01T00:00:00Z")).join(""));
const ends = (path: string, time: string) => ({ file: path, beginsMs, endsMs: Date.parse(time) });
const ofChain = [ends(chain, "2031-01-01T00:00:00Z"), ends(chain, "2032-01-01T00:00:00Z")];

test.each([
  ["those of all files, each file once", both, client, [ends(client, "2030-01-01T00:00:00Z"), ...ofChain]],
  ["the additional authorities", "postgres://db/app", chain, ofChain],
  ["no settings", undefined, undefined, []],
  ["files without", `postgres://db/app?sslcert=${join(folder, "none.pem")}`, file("key.pem", authority.key), []],
  ["an authority that was replaced", undefined, replaced, [ends(replaced, "2030-06-02T00:00:00Z")]],
  ["the only authority", undefined, expired, [ends(expired, "2030-01-01T00:00:00Z")]],
  ["the system's list of authorities", undefined, many(21), []],
])("the certificates that a process reports: %s", (_, store, extra, found) => {
  expect(certificatesOf(store, extra, nowMs)).toEqual(found);
});

test("a process reports ten certificates at most", () => {
  expect(certificatesOf(`postgres://db/app?sslrootcert=${many(22)}`, many(20), nowMs)).toHaveLength(10);
});
