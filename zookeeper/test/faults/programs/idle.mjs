/**
 * A client that only owns an ephemeral node. Configured by CARILLON_TEST_IDLE (JSON). It sends `ready` by IPC, and after each message
 * whether its session and its node still exist.
 */
import { connect } from "../../../dist/index.js";

const { hosts, path, sessionTimeoutMs } = JSON.parse(process.env.CARILLON_TEST_IDLE ?? "");
const zk = await connect(hosts, { sessionTimeoutMs });
const { session } = zk;
await session.create(`${path}/own`, "", { ephemeral: true });
process.on("message", async () => {
  const own = await session.exists(`${path}/own`).catch((error) => error.code);
  process.send({ said: "still", live: session.live, own: own?.ephemeralOwner === session.id });
});
process.send({ said: "ready" });
