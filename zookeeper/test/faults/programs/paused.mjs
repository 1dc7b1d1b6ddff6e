/**
 * A client that stops its own process during requests, like a machine that is suspended. Configured by CARILLON_TEST_PAUSED (JSON). It
 * sends `ready` by IPC with its session id, and stops when a message arrives. As soon as it continues, it checks whether its session is
 * live, and sends the result and the outcomes of the unanswered requests. It ends once its client is closed.
 */
import { connect } from "../../../dist/index.js";

const { hosts, path, sessionTimeoutMs } = JSON.parse(process.env.CARILLON_TEST_PAUSED ?? "");
const zk = await connect(hosts, { sessionTimeoutMs });
const first = zk.session;
await zk.create(`${path}/own`, "", { ephemeral: true });

process.once("message", async () => {
  const code = (promise) =>
    promise.then(
      () => "done",
      (error) => error.code ?? String(error),
    );
  const underWay = [
    code(zk.get(path, { watch: () => undefined })),
    code(zk.set(path, "x")),
    code(zk.create(`${path}/late`, "", { ephemeral: true })),
    code(first.children(path)),
  ];
  const stop = performance.now();
  let before = stop;
  process.kill(process.pid, "SIGSTOP");
  // The process may run a little longer before it is stopped. A jump of the clock shows that it was stopped.
  while (performance.now() - before < sessionTimeoutMs / 2) before = performance.now();
  const live = first.live;
  const remainingMs = first.remainingMs;
  const refused = await code(first.get(path));
  const next = await zk.established();
  process.send({
    said: "back",
    live,
    remainingMs,
    refused,
    reason: first.signal.reason?.code,
    outcomes: await Promise.all(underWay),
    next: String(next.id),
    own: (await next.exists(`${path}/own`)) !== undefined,
  });
  await zk.close();
  process.disconnect();
});
process.send({ said: "ready", session: String(first.id) });
