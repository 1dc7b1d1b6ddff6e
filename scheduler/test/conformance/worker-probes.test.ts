import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RemoteWorker, type RemoteWorkerOptions, worker } from "../../src/library/remote-worker.ts";
import { ApiStage } from "../support/api-stage.ts";
import { recordingLog, until } from "../support/store-stage.ts";

const stage = new ApiStage();
const workers: RemoteWorker[] = [];
let key: string;

beforeAll(async () => {
  await stage.open();
  key = await stage.key("probed");
  await stage.task("echo");
  await stage.task("serial", { overlap: "queue" });
});
afterAll(async () => {
  await Promise.all(workers.map((one) => one.stop()));
  await stage.close();
});

const make = (options: RemoteWorkerOptions = {}) => {
  const common = { server: stage.urlOf(), key, handleSignals: false, log: recordingLog().log };
  const one = worker({ ...common, listen: "127.0.0.1:0", ...options });
  workers.push(one);
  return one.task("echo", (_, payload) => payload).task("serial", () => undefined);
};
const get = async (one: RemoteWorker, path: string) => {
  const answer = await fetch(`http://${one.listening}${path}`);
  return { status: answer.status, text: await answer.text() };
};
const startsIn = (text: string) => Number(/^carillon_run_lateness_seconds_count (\d+)$/m.exec(text)?.[1]);
const scrape = async () => {
  const headers = { authorization: `Bearer ${stage.tokens.viewer}` };
  return (await fetch(`${stage.urlOf()}/metrics`, { headers })).text();
};

test("a worker without a store answers probes, and serves its own metrics", async () => {
  const one = make();
  await one.start();
  expect(await get(one, "/livez")).toEqual({ status: 200, text: '{"live":true}' });
  for (const path of ["/readyz", "/healthz"])
    expect(await get(one, path)).toEqual({ status: 200, text: '{"ready":true,"why":null}' });
  const before = startsIn(await scrape());
  const runs = await Promise.all(["echo", "serial", "serial"].map((task) => stage.server.enqueue(task, null)));
  for (const run of runs) await run.result();
  await until("its metrics have them", async () => startsIn((await get(one, "/metrics")).text) === 3);
  const { text } = await get(one, "/metrics");
  expect(text).toMatch(/^carillon_attempt_seconds_count\{outcome="succeeded"\} 3$/m);
  expect(text, "it knows nothing of the store and of leaders").not.toMatch(
    /^carillon_(store_up|led|leader|term|slots_total|runs|ended_total)\b/m,
  );
  await until("its server has them too", async () => startsIn(await scrape()) === before + 3);
  await one.stop();
  expect(one.listening).toBe(null);
});

test("refuses other paths and methods, and requests with a foreign host name", async () => {
  const one = make();
  await one.start();
  expect(JSON.parse((await get(one, "/v1/runs")).text)).toMatchObject({ status: 404, code: "ROUTE_UNKNOWN" });
  const posted = await fetch(`http://${one.listening}/metrics`, { method: "POST" });
  expect(await posted.json()).toMatchObject({ status: 405, code: "METHOD_UNKNOWN" });
  const foreign = await new Promise<number | undefined>((resolve, reject) =>
    request(`http://${one.listening}/livez`, { headers: { host: "evil.example" } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .on("error", reject)
      .end(),
  );
  expect(foreign).toBe(421);
});

test("a worker whose server does not answer is live, but not ready", async () => {
  const one = make({ server: "http://127.0.0.1:9" });
  const starting = one.start().catch((error) => error);
  await until("it listens", () => one.listening !== null);
  expect((await get(one, "/livez")).status).toBe(200);
  expect(await get(one, "/readyz")).toEqual({ status: 503, text: '{"ready":false,"why":"starting"}' });
  await one.stop();
  expect(await starting).toMatchObject({ code: expect.any(String) });
  expect(one.listening).toBe(null);
});

test("a publicly reachable address is refused without a proxy, and one in use is reported", async () => {
  expect(() => make({ listen: "0.0.0.0:0" })).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  const one = make();
  await one.start();
  await expect(make({ listen: one.listening as string }).start()).rejects.toMatchObject({ code: "LISTEN_FAILED" });
});
