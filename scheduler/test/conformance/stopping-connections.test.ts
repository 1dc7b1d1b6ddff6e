import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, test } from "vitest";
import { RemoteStage } from "../support/remote-stage.ts";
import { until } from "../support/store-stage.ts";

const stage = new RemoteStage();
const sockets: Socket[] = [];

beforeAll(async () => void (await stage.serve()));
afterAll(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await stage.close();
});

/** Opens a connection that sends `text` and reads nothing until the test resumes it. */
async function connected(text: string): Promise<Socket> {
  const [host = "", port] = String(stage.server.listening).split(":");
  const socket = connect({ host, port: Number(port) }).pause();
  socket.on("error", () => undefined);
  sockets.push(socket);
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

const page = "GET /v1/openapi.json HTTP/1.1\r\nhost: tower\r\n\r\n";
const signIn = "POST /v1/sign-in HTTP/1.1\r\nhost: tower\r\ncontent-type: application/json\r\n";

test("a request head that arrives too slowly is abandoned", async () => {
  const slow = await connected("GET /livez HTTP/1.1\r\n");
  slow.resume();
  const trickle = setInterval(() => slow.write("x"), 500);
  try {
    await until("it is closed", () => slow.destroyed);
  } finally {
    clearInterval(trickle);
  }
});

test("a server stops despite clients that read nothing, send slowly, idle, pipeline, or have disconnected", async () => {
  await connected(page.repeat(2_000));
  await connected(page.repeat(5));
  await connected("GET /livez HTTP/1.1\r\nhost: tow");
  await connected(`${signIn}content-length: 500\r\n\r\n{"name":"`);
  await connected("");
  const went = await connected(page.repeat(500));
  const probe = await connected("GET /livez HTTP/1.1\r\nhost: tower\r\n\r\n");
  probe.resume();
  await once(probe, "data");
  went.destroy();
  // The clients' unread data stays unread until the test is over, so a stop that waited for it would not end.
  let isOver = false;
  const stopped = stage.server.stop().finally(() => {
    isOver = true;
  });
  await until("the stop to end", () => isOver);
  await stopped;
});
