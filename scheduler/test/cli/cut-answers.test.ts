/** Commands by a server whose answer breaks off on its way. */
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ApiStage } from "../support/api-stage.ts";
import { inProcess } from "../support/in-process.ts";

const stage = new ApiStage();
const environment = () => ({ CARILLON_TOKEN: stage.tokens.admin });
const jsonOf = async (...args: string[]) =>
  JSON.parse((await inProcess([...args, "--server", stage.urlOf(), "--json"], environment())).stdout);

beforeAll(async () => {
  await stage.open();
  await stage.task("nobody", { group: "elsewhere" });
});
afterAll(() => stage.close());

/** Before the stage's server: cuts the answer to the next request with this method, once, in the middle of its body. */
async function cutting() {
  let method: string | undefined;
  const { hostname, port } = new URL(stage.urlOf());
  const proxy = createServer((asked, answer) => {
    const upstream = request(
      { hostname, port, method: asked.method, path: asked.url, headers: asked.headers },
      (given) => {
        const isCut = asked.method === method;
        answer.writeHead(given.statusCode as number, given.headers);
        if (!isCut) return void given.pipe(answer);
        method = undefined;
        given.once("data", (chunk: Buffer) => answer.write(chunk.subarray(0, 5), () => answer.destroy()));
      },
    );
    asked.pipe(upstream);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return {
    close: () => proxy.close(),
    /** A command whose first answer to such a request is cut. */
    async cut(at: string, args: string[]) {
      method = at;
      const done = await inProcess([...args, "--server", url], environment());
      expect([args, method]).toEqual([args, undefined]);
      return done;
    },
  };
}

describe("an answer that is cut in the middle", () => {
  it("is asked for again under its key, so what was to be done is done once", async () => {
    const between = await cutting();
    try {
      const runsOfNobody = async () =>
        (await jsonOf("runs", "list", "--task", "nobody")).map((run: { run: number }) => run.run);
      const before = await runsOfNobody();
      const made = await between.cut("POST", ["tasks", "run", "nobody", "--json"]);
      expect([made.code, made.stderr]).toEqual([0, expect.not.stringContaining("BUG")]);
      const { run } = JSON.parse(made.stdout);
      expect((await runsOfNobody()).filter((id: number) => !before.includes(id))).toEqual([run]);
      const user = await between.cut("POST", ["users", "create", "cut", "--role", "viewer"]);
      expect([user.code, (await jsonOf("users", "list")).map(({ name }: { name: string }) => name)]).toEqual([
        0,
        expect.arrayContaining(["cut"]),
      ]);
      expect((await between.cut("GET", ["users", "list"])).stderr).toContain("SERVER_UNREACHABLE");
    } finally {
      between.close();
    }
  });

  it("is said to may have been done, where it has a secret in it and is not kept", async () => {
    const between = await cutting();
    try {
      const { code, stderr } = await between.cut("POST", ["keys", "create", "cut", "--json"]);
      expect([code, JSON.parse(stderr)]).toMatchObject([
        4,
        {
          code: "SERVER_UNREACHABLE",
          message: expect.stringContaining("it may have been done all the same"),
          hint: expect.stringContaining("carillon keys list"),
        },
      ]);
      expect((await jsonOf("keys", "list")).map(({ name }: { name: string }) => name)).toContain("cut");
    } finally {
      between.close();
    }
  });
});
