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
 * Decompresses request bodies. If the body does not match its Content-Encoding or is incomplete, the client gets an error, after the
 * remaining body has been read up to the limit: a client whose connection is closed while it sends does not read the answer.
 * @fastify/compress is not used here, because it would destroy the request together with the decompressor.
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
  // If the remainder of the body were not read, the next request on the connection could not be read.
  reply.raw.once("finish", () => {
    raw.unpipe(unpacker);
    raw.resume();
    unpacker.destroy();
  });
  done(null, body);
};

/** @param most the maximum size of the body in bytes, both compressed and decompressed */
function unpacked(raw: Readable, unpacker: ReturnType<typeof createGunzip>, most: number): Readable {
  // Fastify compares this count with Content-Length, and the decompressed length with its limit: a small body may decompress to a huge one.
  const body = Object.assign(new PassThrough(), { receivedEncodedLength: 0 });
  // Without a listener, an error would end the process. Fastify removes its own listener when it refuses the body.
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
  // The client has disconnected before the end of its body, so no answer is needed.
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
    // Decompression stops when the output exceeds the limit, because decompressing the rest could be arbitrarily expensive.
    if (bytes > most) unpacker.unpipe(body).destroy();
  });
  return body;
}
