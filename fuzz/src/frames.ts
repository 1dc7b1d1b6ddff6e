/** Valid replies of a ZooKeeper server as bytes, written by the client's own encoder. */
import type { Stat } from "../../zookeeper/src/operations/stat.ts";
import { Writer, writeMultiEnd } from "../../zookeeper/src/wire/bytes.ts";
import { op } from "../../zookeeper/src/wire/codes.ts";

export const stat: Stat = {
  czxid: 77n,
  mzxid: 78n,
  ctimeMs: 1_700_000_000_000,
  mtimeMs: 1_700_000_000_001,
  version: 3,
  cversion: 4,
  aversion: 0,
  ephemeralOwner: 0x1000_0000_0000_0001n,
  dataLength: 5,
  childCount: 2,
  pzxid: 79n,
};

function writeStat(writer: Writer): void {
  writer.long(stat.czxid);
  writer.long(stat.mzxid);
  writer.long(BigInt(stat.ctimeMs));
  writer.long(BigInt(stat.mtimeMs));
  for (const value of [stat.version, stat.cversion, stat.aversion]) writer.int(value);
  writer.long(stat.ephemeralOwner);
  for (const value of [stat.dataLength, stat.childCount]) writer.int(value);
  writer.long(stat.pzxid);
}

/** Writers of the body that follows a reply's header, by the kind of request. */
export const bodies = {
  create: (writer: Writer) => {
    writer.string("/a/b");
    writeStat(writer);
  },
  get: (writer: Writer) => {
    writer.buffer(Buffer.from("hello"));
    writeStat(writer);
  },
  children: (writer: Writer) => {
    writer.list(["x", "y-0000000001", "é"], (name) => writer.string(name));
    writeStat(writer);
  },
  exists: writeStat,
  set: writeStat,
  getAcl: (writer: Writer) => {
    writer.list([31, 1], (mask) => {
      writer.int(mask);
      writer.string("world");
      writer.string("anyone");
    });
    writeStat(writer);
  },
  none: () => undefined,
  ephemerals: (writer: Writer) => writer.list(["/a/b", "/c"], (path) => writer.string(path)),
  count: (writer: Writer) => writer.int(7),
  whoAmI: (writer: Writer) =>
    writer.list(["a", "b"], (id) => {
      writer.string("digest");
      writer.string(id);
    }),
  multi: (writer: Writer) => {
    const part = (type: number) => {
      writer.int(type);
      writer.bool(false);
      writer.int(0);
    };
    part(op.create2);
    bodies.create(writer);
    part(op.setData);
    writeStat(writer);
    part(op.delete);
    part(op.check);
    writeMultiEnd(writer);
  },
  multiFailed: (writer: Writer) => {
    for (const code of [0, -101, -2, -2]) {
      writer.int(op.error);
      writer.bool(false);
      writer.int(code);
      writer.int(code);
    }
    writeMultiEnd(writer);
  },
};
export type Body = keyof typeof bodies;
export const bodyNames = Object.keys(bodies) as Body[];

/** Returns a frame: its length, then the bytes that `write` writes. */
export function frame(write: (writer: Writer) => void): Buffer {
  const writer = new Writer();
  writer.beginFrame();
  write(writer);
  writer.endFrame();
  return Buffer.from(writer.take());
}

export const reply = (xid: number, error: number, body: (writer: Writer) => void): Buffer =>
  frame((writer) => {
    writer.int(xid);
    writer.long(80n);
    writer.int(error);
    if (error === 0) body(writer);
  });

export const notification = (type: number, path: string): Buffer =>
  reply(-1, 0, (writer) => {
    writer.int(type);
    writer.int(3);
    writer.string(path);
  });

export const welcome = (timeoutMs: number): Buffer =>
  frame((writer) => {
    writer.int(0);
    writer.int(timeoutMs);
    writer.long(0x1000_0000_0000_0002n);
    writer.buffer(Buffer.alloc(16, 7));
    writer.bool(false);
  });

export function bodyBytes(name: Body): Buffer {
  const writer = new Writer();
  bodies[name](writer);
  return Buffer.from(writer.take());
}
