import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
beforeAll(async () => {
  await stage.open();
});
afterAll(() => stage.close());

const linesOf = (request: string) => stage.lines.filter(({ fields }) => fields.request === request);

test("the node's log line about a refusal has the request id", async () => {
  const headers = { "x-request-id": "deploy-7" };
  const { status } = await stage.ask("PUT", "/v1/quotas/user/ann", { token: stage.tokens.viewer, headers, body: {} });
  expect(status).toBe(403);
  expect(linesOf("deploy-7")).toMatchObject([
    { level: "warn", fields: { code: "ACCESS_DENIED", route: "PUT /v1/quotas/:kind/:name" } },
  ]);
  const wrong = await stage.ask("GET", "/v1/me", { token: "ct_1_nonsense", headers: { "x-request-id": "deploy-8" } });
  expect([wrong.status, wrong.headers.get("x-request-id")]).toEqual([401, "deploy-8"]);
  expect(linesOf("deploy-8")).toMatchObject([{ level: "warn", fields: { code: "SIGN_IN_NEEDED" } }]);
});

test("the node's log line about an internal error has the request id, and the answer has only that id", async () => {
  const { store } = stage;
  const { find } = store.operations;
  store.operations.find = async () => {
    throw new TypeError("a bug that was planted");
  };
  try {
    const answer = await fetch(`${stage.urlOf()}/v1/operations/7`, {
      headers: { authorization: `Bearer ${stage.tokens.viewer}`, "x-request-id": "deploy-9" },
    });
    expect([answer.status, answer.headers.get("x-request-id")]).toEqual([500, "deploy-9"]);
    expect(await answer.text()).not.toContain("planted");
  } finally {
    store.operations.find = find;
  }
  expect(linesOf("deploy-9")).toMatchObject([
    { level: "error", fields: { error: expect.stringContaining("planted"), path: "/v1/operations/7" } },
  ]);
});

test("an event stream, and the refusal of an invalid URL, have the request id", async () => {
  const over = new AbortController();
  const { headers } = await fetch(`${stage.urlOf()}/v1/events`, {
    headers: { authorization: `Bearer ${stage.tokens.viewer}`, "x-request-id": "deploy-10" },
    signal: over.signal,
  });
  over.abort();
  expect(headers.get("x-request-id")).toBe("deploy-10");

  const { hostname, port } = new URL(stage.urlOf());
  const answer = await new Promise<string>((resolve, reject) => {
    let got = "";
    const socket = connect(Number(port), hostname, () =>
      socket.write(
        `GET /v1/tasks/%zz HTTP/1.1\r\nhost: ${hostname}\r\nx-request-id: deploy-11\r\nconnection: close\r\n\r\n`,
      ),
    );
    socket.on("data", (data) => {
      got += data;
    });
    socket.once("end", () => resolve(got));
    socket.once("error", reject);
  });
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toMatch(/\r\nx-request-id: deploy-11\r\n/);
});
