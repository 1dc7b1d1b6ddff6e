/** A server with S3's API for single objects. It refuses a request whose signature (AWS Signature Version 4) is wrong. */
import { createHash, createHmac } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

const sha256 = (data: string | Buffer) => createHash("sha256").update(data).digest("hex");
const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();

/**
 * Computes the signature as described at
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
 */
function signatureOf({ method = "", url = "", headers }: IncomingMessage, body: Buffer, secret: string): string {
  const [, scope = "", signed = ""] =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/([^,]+), SignedHeaders=([^,]+), Signature=/.exec(
      headers.authorization ?? "",
    ) ?? [];
  const given = headers["x-amz-content-sha256"];
  if (given !== "UNSIGNED-PAYLOAD" && given !== sha256(body)) return "the body has another hash";
  const lines = signed.split(";").map((name) => `${name}:${String(headers[name] ?? "").trim()}\n`);
  const canonical = [method, url, "", lines.join(""), signed, given].join("\n");
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, sha256(canonical)].join("\n");
  const key = scope.split("/").reduce<string | Buffer>((made, part) => hmac(made, part), `AWS4${secret}`);
  return hmac(key, text).toString("hex");
}

export async function s3Double({
  bucket,
  accessKeyId,
  secret,
}: {
  bucket: string;
  accessKeyId: string;
  secret: string;
}) {
  const objects = new Map<string, string>();
  const asked: string[] = [];
  /** HTTP statuses that the next responses get in place of their real ones. */
  const failing: number[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method = "", url = "", headers } = request;
    asked.push(`${method} ${url}`);
    const answer = (status: number, text = "") => response.writeHead(status).end(text);
    const status = failing.shift();
    if (status !== undefined) return answer(status, "<Code>SlowDown</Code>");
    const authorization = headers.authorization ?? "";
    const isSigned = authorization.endsWith(`Signature=${signatureOf(request, body, secret)}`);
    if (!isSigned || !authorization.includes(`Credential=${accessKeyId}/`))
      return answer(403, "<Code>SignatureDoesNotMatch</Code>");
    if (!url.startsWith(`/${bucket}/`)) return answer(404, "<Code>NoSuchBucket</Code>");
    const key = decodeURIComponent(url.slice(bucket.length + 2));
    if (method === "PUT") {
      objects.set(key, body.toString());
      return answer(200);
    }
    const found = objects.get(key);
    return found === undefined ? answer(404, "<Code>NoSuchKey</Code>") : answer(200, found);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    objects,
    asked,
    failing,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}
