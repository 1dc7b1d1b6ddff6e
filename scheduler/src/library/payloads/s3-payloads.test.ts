import { afterAll, beforeAll, expect, it } from "vitest";
import { s3Double } from "../../../test/support/s3-double.ts";
import { s3Payloads } from "./s3-payloads.ts";

const own = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
let double: Awaited<ReturnType<typeof s3Double>>;
beforeAll(async () => {
  double = await s3Double({ bucket: "payloads", accessKeyId: own.accessKeyId, secret: own.secretAccessKey });
});
afterAll(() => double.close());

const key = "2027-03-01/6f9d";
const open = (more = {}) =>
  s3Payloads({ bucket: "payloads", region: "eu-central-1", endpoint: double.endpoint, credentials: own, ...more });

it("writes and reads objects with signed requests, below the prefix", async () => {
  const store = open({ prefix: "tower one/" });
  const text = JSON.stringify({ text: "größer ".repeat(10_000) });
  await store.put(key, text);
  expect([...double.objects.keys()]).toEqual([`tower one/${key}`]);
  expect(await store.get(key)).toBe(text);
  expect(await store.get("2027-03-01/none"), "no such object").toBeNull();
  expect(await open().get(key), "without the prefix").toBeNull();
});

it("requests credentials for each request if they are a function", async () => {
  const given = [own, { ...own, secretAccessKey: "an older one" }];
  const store = open({ credentials: async () => given.pop() ?? own });
  await expect(store.put(key, "{}")).rejects.toThrow(/could not be written: 403 .*SignatureDoesNotMatch/);
  await store.put(key, "{}");
});

it("repeats a request after 429 or 5xx, up to four attempts, and reports the last answer", async () => {
  const store = open();
  double.asked.length = 0;
  double.failing.push(503, 429);
  await store.put(key, '"again"');
  expect(await store.get(key)).toBe('"again"');
  expect(double.asked.length).toBe(4);
  double.failing.push(500, 500, 500, 500);
  await expect(store.get(key)).rejects.toThrow(/could not be read: 500 .*SlowDown/);
  expect(await store.get(key), "a fifth").toBe('"again"');
});

it("treats a missing bucket as a failure, and not as a missing object", async () => {
  await expect(open({ bucket: "other" }).get(key)).rejects.toThrow(/404 .*NoSuchBucket/);
});

it.each([
  [{ bucket: "" }, "bucket"],
  [{ endpoint: "minio" }, "endpoint"],
  [{ credentials: undefined }, "credentials"],
  [{ buket: "payloads" }, ""],
])("refuses %j", (more, path) => {
  expect(() => open(more)).toThrow(
    expect.objectContaining({ code: "OPTION_INVALID", path, hint: expect.stringMatching(/\S/) }),
  );
});
