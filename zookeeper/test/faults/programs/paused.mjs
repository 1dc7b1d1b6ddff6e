/**
 * A client that stops itself in the middle of its work, as a machine that is suspended does. Configured by CARILLON_TEST_PAUSED (JSON). It
 * sends by IPC `ready` with its session, and stops at the message `stop`. When it continues, it sends its belief at the very first moment
 * and the outcomes of all requests under way. It ends by itself once its client is closed.
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
  // The kernel may let this process run a little further; a jump of the clock is the pause.
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
