/**
 * The client, in a process of its own: it writes prepared requests to open connections, one request at a time on each. A general HTTP
 * client parses every header and would need more CPU time for a read than the server, so that the client would be measured. The status,
 * type and length of every answer are checked; one answer in 64 is parsed as JSON and compared with the request.
 */
import { connect, type Socket } from "node:net";

export interface ReaderOrder {
  port: number;
  token: string;
  connections: number;
  seconds: number;
  requests: Asked[];
}

/** One request; the reader sends it again and again, in random order with the others. */
export interface Asked {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
  /** The expected status of the answer. */
  status: number;
  /** Fields and values that a parsed answer must contain. */
  has: Record<string, unknown>;
}

export interface ReaderAnswer {
  asked: number;
  /** The number of answers that were parsed as JSON. */
  read: number;
  tookMs: number;
  cpuUs: number;
}

const readEvery = 64;
const headEnd = Buffer.from("\r\n\r\n");

interface Written {
  bytes: Buffer;
  asked: Asked;
}

export async function read({ port, token, connections, seconds, requests }: ReaderOrder): Promise<ReaderAnswer> {
  const written = requests.map((asked) => ({ bytes: bytesOf(asked, port, token), asked }));
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)));
  const began = performance.now();
  const cpu = process.cpuUsage();
  const until = began + seconds * 1_000;
  const counts = await Promise.all(sockets.map((socket) => ask(socket, written, until)));
  const tookMs = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  const sum = (part: "asked" | "read") => counts.reduce((all, count) => all + count[part], 0);
  return { asked: sum("asked"), read: sum("read"), tookMs, cpuUs: user + system };
}

function bytesOf({ method, path, body }: Asked, port: number, token: string): Buffer {
  const text = body === undefined ? "" : JSON.stringify(body);
  const head = [`${method} ${path} HTTP/1.1`, `host: 127.0.0.1:${port}`, `authorization: Bearer ${token}`];
  if (text !== "") head.push("content-type: application/json", `content-length: ${Buffer.byteLength(text)}`);
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${text}`);
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return socket;
}

/** Sends a request, waits for the answer and sends the next, until the time `until` has come. */
function ask(socket: Socket, written: Written[], until: number): Promise<{ asked: number; read: number }> {
  return new Promise((resolve, reject) => {
    let asked = 0;
    let read = 0;
    let rest: Buffer = Buffer.alloc(0);
    let present = written[0] as Written;
    const next = () => {
      if (performance.now() >= until) {
        socket.destroy();
        return resolve({ asked, read });
      }
      present = written[Math.floor(Math.random() * written.length)] as Written;
      socket.write(present.bytes);
    };
    const fail = (why: string) => {
      socket.destroy();
      reject(new Error(`${present.asked.method} ${present.asked.path}: ${why}`));
    };
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("the server closed a connection")));
    socket.on("data", (chunk) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const end = rest.indexOf(headEnd);
      if (end < 0) return;
      const head = rest.toString("latin1", 0, end);
      const bodyAt = end + headEnd.length;
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1]);
      if (!head.startsWith(`HTTP/1.1 ${present.asked.status} `))
        return fail(`${head} ${rest.toString("utf8", bodyAt)}`);
      if (!(length > 0) || !/\r\ncontent-type: application\/json/i.test(head)) return fail(`no JSON: ${head}`);
      if (rest.length < bodyAt + length) return;
      if (rest.length > bodyAt + length) return fail("more came than was asked for");
      if (asked++ % readEvery === 0) {
        const answer = JSON.parse(rest.toString("utf8", bodyAt)) as Record<string, unknown>;
        for (const [name, value] of Object.entries(present.asked.has))
          if (answer[name] !== value) return fail(`${name} is ${JSON.stringify(answer[name])}, not ${value}`);
        read++;
      }
      rest = Buffer.alloc(0);
      next();
    });
    next();
  });
}

const order = process.argv[2];
if (order !== undefined) console.log(JSON.stringify(await read(JSON.parse(order) as ReaderOrder)));
