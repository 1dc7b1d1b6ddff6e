import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Reader, Writer } from "./bytes.ts";
import { FrameReader, headerBytes } from "./frames.ts";

describe("bytes", () => {
  test("written values read back unchanged, across the writer's chunks", () => {
    const value = fc.oneof(
      fc.record({ kind: fc.constant("int" as const), value: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }) }),
      fc.record({ kind: fc.constant("long" as const), value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
      fc.record({ kind: fc.constant("bool" as const), value: fc.boolean() }),
      fc.record({ kind: fc.constant("string" as const), value: fc.string({ unit: "grapheme", maxLength: 300 }) }),
      fc.record({ kind: fc.constant("buffer" as const), value: fc.uint8Array({ maxLength: 40_000 }) }),
    );
    fc.assert(
      fc.property(fc.array(fc.array(value, { maxLength: 12 }), { maxLength: 12 }), fc.nat(3), (frames, takeEvery) => {
        const writer = new Writer();
        const bytes: Buffer[] = [];
        frames.forEach((frame, index) => {
          writer.beginFrame();
          for (const one of frame) (writer[one.kind] as (value: unknown) => void).call(writer, one.value);
          writer.endFrame();
          if (index % (takeEvery + 1) === 0) bytes.push(writer.take());
        });
        bytes.push(writer.take());
        const all = Buffer.concat(bytes);
        let at = 0;
        for (const frame of frames) {
          const length = all.readInt32BE(at);
          const reader = new Reader().over(all, at + 4, at + 4 + length);
          for (const one of frame) {
            const read = reader[one.kind]();
            expect(read).toEqual(one.kind === "buffer" ? Buffer.from(one.value as Uint8Array) : one.value);
          }
          expect(reader.left).toBe(0);
          at += 4 + length;
        }
        expect(at).toBe(all.length);
      }),
    );
  });

  test("a frame whose writing failed leaves no bytes behind", () => {
    const writer = new Writer();
    writer.beginFrame();
    writer.int(1);
    writer.endFrame();
    writer.beginFrame();
    writer.buffer(Buffer.alloc(100_000)); // makes the writer allocate a larger buffer
    writer.dropFrame();
    writer.beginFrame();
    writer.int(2);
    writer.endFrame();
    expect(writer.take().toString("hex")).toBe("00000004000000010000000400000002");
  });

  test("reading beyond the end throws, whatever follows in memory", () => {
    const buffer = Buffer.from("0000000a68656c6c6f", "hex");
    expect(() => new Reader().over(buffer, 0, buffer.length).string()).toThrow(RangeError);
    expect(() => new Reader().over(buffer, 0, 3).int()).toThrow(RangeError);
    expect(new Reader().over(Buffer.from("ffffffff", "hex"), 0, 4).buffer()).toEqual(Buffer.alloc(0));
  });
});

describe("frames", () => {
  const collect = (maxBytes: number) => {
    const seen: string[] = [];
    const reader = new FrameReader(maxBytes, {
      frame: (buffer, start, end) => seen.push(buffer.toString("latin1", start, end)),
      oversized: (head, bytes) => seen.push(`${head.toString("latin1")} of ${bytes}`),
    });
    return { seen, reader };
  };
  const framed = (text: string) => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(text.length);
    return Buffer.concat([length, Buffer.from(text, "latin1")]);
  };

  test("frames are reassembled from any chunks; an oversized frame gives its header and is skipped", () => {
    const maxBytes = 60;
    const text = fc.string({ unit: "binary-ascii", minLength: headerBytes, maxLength: 120 });
    fc.assert(
      fc.property(fc.array(text, { maxLength: 20 }), fc.array(fc.integer({ min: 1, max: 50 })), (texts, cuts) => {
        const { seen, reader } = collect(maxBytes);
        const all = Buffer.concat(texts.map(framed));
        let at = 0;
        for (let index = 0; at < all.length; index++) {
          const size = cuts.length === 0 ? all.length : (cuts[index % cuts.length] as number);
          reader.push(Buffer.from(all.subarray(at, at + size)));
          at += size;
        }
        expect(seen).toEqual(
          texts.map((one) => (one.length > maxBytes ? `${one.slice(0, headerBytes)} of ${one.length}` : one)),
        );
      }),
    );
  });

  test("an impossible length of a reply is refused", () => {
    for (const length of [-1, 0, headerBytes - 1]) {
      const prefix = Buffer.alloc(4);
      prefix.writeInt32BE(length);
      expect(() => collect(100).reader.push(prefix)).toThrow(RangeError);
    }
  });
});
