/** Tests that the audit log reaches its receiver without a gap, in order, although the processes that send it are killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { postgres } from "../support/servers.ts";
import { openStage, until } from "../support/store-stage.ts";

const program = fileURLToPath(new URL("../support/programs/started.mjs", import.meta.url));
const [rows, kills] = [60, 3];

it("every row of the audit log arrives in order, at least once, through kills of the sender", async ({
  onTestFinished,
}) => {
  const stage = await openStage(postgres());
  const seqs: number[] = [];
  const senders: ChildProcess[] = [];
  const receiver = createServer((request, response) => {
    let raw = "";
    request.on("data", (chunk) => {
      raw += chunk;
    });
    request.on("end", () => {
      seqs.push(JSON.parse(raw).data.seq);
      setTimeout(() => response.writeHead(204).end(), 20);
    });
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const kill = async (sender: ChildProcess) => {
    sender.kill("SIGKILL");
    if (sender.exitCode === null && sender.signalCode === null) await once(sender, "exit");
  };
  onTestFinished(async () => {
    for (const sender of senders) await kill(sender);
    receiver.closeAllConnections();
    await new Promise((resolve) => receiver.close(resolve));
    await stage.close();
  });
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/audit`;
  const options = {
    store: stage.server.url,
    schema: stage.schema,
    sessionTimeout: "6s",
    webhooks: { siem: { url, audit: true } },
  };
  const start = () => {
    const env = { ...process.env, CARILLON_TEST_OPTIONS: JSON.stringify(options) };
    const sender = spawn(process.execPath, [program], { env, stdio: ["ignore", "ignore", "inherit"] });
    senders.push(sender);
    return sender;
  };
  const entry = { atMs: 1, who: "test", act: "edit", about: "task" as const, before: null, after: null, why: "" };
  for (let n = 0; n < rows; n++) await stage.store.audit.record([{ ...entry, named: `t${n}` }]);
  for (let killed = 0; killed < kills; killed++) {
    const sender = start();
    const before = Math.max(0, ...seqs);
    await until("this process has sent some rows", () => Math.max(0, ...seqs) >= before + 5, 60_000);
    await kill(sender);
  }
  start();
  await until("all rows have arrived", () => Math.max(0, ...seqs) >= rows, 60_000);
  expect([...new Set(seqs)].slice(0, rows)).toEqual(Array.from({ length: rows }, (_, n) => n + 1));
  // A row comes again at most once for each kill.
  expect(seqs.length - new Set(seqs).size).toBeLessThanOrEqual(kills);
});
