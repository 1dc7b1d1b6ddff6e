/** A minimal Redis client for the benches: sends one command on a new connection. */
import { connect } from "node:net";

/** @returns the raw reply to `command`, without the reply to QUIT */
export function tellRedis(url: string, command: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(`${command}\r\nQUIT\r\n`));
    let text = "";
    socket.setTimeout(60_000, () => socket.destroy(new Error(`Redis did not answer to ${command}`)));
    socket.setEncoding("utf8").on("data", (part) => {
      text += part;
    });
    socket.on("error", reject);
    socket.on("close", () => {
      const answer = text.replace(/\+OK\r\n$/, "");
      if (answer.startsWith("-")) reject(new Error(`Redis refused ${command}: ${answer.trim()}`));
      else resolve(answer);
    });
  });
}

export async function redisNumber(url: string, command: string): Promise<number> {
  const answer = await tellRedis(url, command);
  const number = /^:(-?\d+)\r\n/.exec(answer)?.[1];
  if (number === undefined) throw new Error(`Redis did not answer ${command} with a number: ${answer}`);
  return Number(number);
}
