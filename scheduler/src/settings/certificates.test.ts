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

const authority = createAuthority();
const until = (time: string) => authority.issue("a", { until: new Date(time) }).cert;
const client = file("client.pem", until("2030-01-01T00:00:00Z"));
const chain = file("chain.pem", `${until("2032-01-01T00:00:00Z")}\n${until("2031-01-01T00:00:00Z")}`);
const both = `postgres://db/app?sslmode=verify-full&sslcert=${encodeURIComponent(client)}&sslrootcert=${chain}`;
const ends = (path: string, time: string) => ({ file: path, endsMs: Date.parse(time) });

test.each([
  [both, client, [ends(client, "2030-01-01T00:00:00Z"), ends(chain, "2031-01-01T00:00:00Z")]],
  ["postgres://db/app", chain, [ends(chain, "2031-01-01T00:00:00Z")]],
  [undefined, undefined, []],
  [`postgres://db/app?sslcert=${join(folder, "none.pem")}`, file("key.pem", authority.key), []],
])("the certificates that a process reads, with the first that expires of each file: %s, %s", (store, extra, found) => {
  expect(certificatesOf(store, extra)).toEqual(found);
});
