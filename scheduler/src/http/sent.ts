import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type RouteShape, writes } from "../api/contract/route.ts";
import { locationOf } from "../api/location.ts";
import { hasAlready, tagOf } from "./given.ts";
import type { Answered } from "./repeated.ts";

/** Answers shorter than this many characters are not compressed, because that would cost more than the rest of the request. */
const packFromLength = 16 * 1024;

const pack = promisify(gzip);

/** Compresses text with gzip, on another thread, so that other requests are not delayed. */
const packed = (text: string): Promise<Buffer> => pack(text, { level: 1 });

/** True if Accept-Encoding allows gzip: "gzip", "*" and "gzip;q=0.5" do, "gzip;q=0" does not. */
function takesPacked({ headers }: Pick<FastifyRequest, "headers">): boolean {
  for (const part of String(headers["accept-encoding"] ?? "").split(",")) {
    const [coding = "", weight = ""] = part.split(";").map((text) => text.trim().toLowerCase());
    if ((coding === "gzip" || coding === "*") && !/^q=0(?:\.0*)?$/.test(weight)) return true;
  }
  return false;
}

/** Sends the answer of a route. */
export async function send(
  request: FastifyRequest,
  reply: FastifyReply,
  shape: RouteShape,
  basePath: string,
  { status, answer, version }: Answered,
): Promise<FastifyReply> {
  const location = locationOf(shape, answer);
  if (location !== null) reply.header("location", `${basePath}${location}`);
  reply.code(status);
  if (answer === undefined) return reply.send();
  // The answer is not validated at run time: its type is checked by the compiler, and tests compare answers with the contract.
  const text = shape.media ? (answer as string) : JSON.stringify(answer);
  if (version !== null) {
    const tag = writes(shape) ? `"${version}"` : tagOf(version, text);
    reply.header("etag", tag);
    if (!writes(shape) && hasAlready(request.headers["if-none-match"], tag)) return reply.code(304).send();
  }
  return sendText(request, reply, text, shape.media);
}

/** Sends a text, compressed if it is long and the client accepts that. */
export async function sendText(
  request: FastifyRequest,
  reply: FastifyReply,
  text: string,
  media = "application/json",
): Promise<FastifyReply> {
  reply.header("content-type", `${media}; charset=utf-8`);
  if (text.length < packFromLength || !takesPacked(request)) return reply.send(text);
  reply.headers({ "content-encoding": "gzip", vary: "accept-encoding" });
  return reply.send(await packed(text));
}
