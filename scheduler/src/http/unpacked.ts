import { PassThrough, type Readable } from "node:stream";
import { createGunzip, createInflate } from "node:zlib";
import type { preParsingHookHandler } from "fastify";
import { CarillonError } from "../base/errors.ts";

const unpackers: Readonly<Record<string, typeof createGunzip | typeof createInflate>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
};

/**
 * Bodies as they are meant. Whoever sends one that is not what its Content-Encoding says is told so: whether it begins wrong or
 * breaks off, the rest of it is read first, as far as a body may go, for a sender whose connection ends in the middle reads no
 * answer. @fastify/compress, which does this otherwise, destroys the request with the unpacker.
 */
export const unpack: preParsingHookHandler = (request, reply, raw, done) => {
  const coding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  if (coding === "identity") return done(null, raw);
  if (!Object.hasOwn(unpackers, coding))
    return done(
      new CarillonError("REQUEST_INVALID", `the body's Content-Encoding ${JSON.stringify(coding)} is not known here`, {
        hint: "Send it as it is, or packed by gzip or deflate.",
      }),
    );
  const unpacker = (unpackers[coding] as typeof createGunzip)();
  const body = unpacked(raw as Readable, unpacker, request.routeOptions.bodyLimit);
  // A body that nobody wanted to read to its end would keep the connection's next request back.
  reply.raw.once("finish", () => {
    raw.unpipe(unpacker);
    raw.resume();
    unpacker.destroy();
  });
  done(null, body);
};

/** @param most bytes as they come; a body of more is refused */
function unpacked(raw: Readable, unpacker: ReturnType<typeof createGunzip>, most: number): Readable {
  // Fastify compares it with Content-Length, and what comes out with the limit: a small body may unpack to a huge one.
  const body = Object.assign(new PassThrough(), { receivedEncodedLength: 0 });
  // Refused for something else, such as its length, it is listened to no more; then this is told to nobody.
  body.on("error", () => undefined);
  let ended = false;
  let failure: Error | undefined;
  const tell = () => {
    if (failure && (ended || body.receivedEncodedLength > most)) body.destroy(failure);
  };
  raw.on("data", (chunk: Buffer) => {
    body.receivedEncodedLength += chunk.length;
    tell();
  });
  raw.once("end", () => {
    ended = true;
    tell();
  });
  // Gone in the middle: nobody waits for an answer.
  raw.once("close", () => {
    if (ended) return;
    unpacker.destroy();
    body.destroy();
  });
  unpacker.once("error", (error: Error) => {
    failure = new CarillonError("REQUEST_INVALID", `the body cannot be unpacked: ${error.message}`, {
      cause: error,
      hint: "Its Content-Encoding says how it is packed; leave it out for a body that is not.",
    });
    raw.unpipe(unpacker).resume();
    tell();
  });
  raw.pipe(unpacker).pipe(body);
  let bytes = 0;
  unpacker.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    // Refused as soon as this has come through; unpacking the rest of it would cost as much as it was made to.
    if (bytes > most) unpacker.unpipe(body).destroy();
  });
  return body;
}
