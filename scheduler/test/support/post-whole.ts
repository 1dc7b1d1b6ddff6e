import { type Agent, request } from "node:http";

/** Sends the whole body in pieces, even if the server answers earlier. Resolves with the response; rejects if the connection is cut. */
export function postWhole(
  url: string,
  agent: Agent,
  headers: Record<string, string>,
  body: Buffer,
): Promise<{ status: number; code?: string; detail?: string }> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method: "POST", agent, headers: { ...headers, "content-length": body.length } });
    call.on("error", reject);
    call.on("response", (answer) => {
      let text = "";
      answer.on("data", (part) => {
        text += part;
      });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, ...JSON.parse(text) }));
    });
    let at = 0;
    const more = () => {
      if (at >= body.length) return call.end();
      call.write(body.subarray(at, at + 65_536), () => setImmediate(more));
      at += 65_536;
    };
    more();
  });
}
