/**
 * Sends consecutive reads as one request (`multiRead`, 3.6 and later), because a busy server needs little more time for it than for a
 * single read. Each read gets its own answer or error.
 */

import { type Reader, type Writer, writeMultiEnd, writeMultiHeader } from "../wire/bytes.ts";
import { op } from "../wire/codes.ts";
import type { Call } from "./call.ts";

export class ReadsTogether {
  /** The combined calls; the answers come in the same order. */
  readonly calls: readonly Call[];
  readonly question: { readonly what: string; readonly path: string };
  readonly sentAt: number;
  xid = 0;

  constructor(calls: readonly Call[]) {
    this.calls = calls;
    const first = calls[0] as Call;
    this.question = { what: `${first.question.what} and ${calls.length - 1} more`, path: first.question.path };
    this.sentAt = first.sentAt;
  }

  write(writer: Writer): void {
    for (const { question } of this.calls) {
      writeMultiHeader(writer, question.op);
      question.write(writer);
    }
    writeMultiEnd(writer);
  }

  /** Settles the calls with the server's answer. @throws RangeError if the body does not match the request */
  answer(code: number, reader: Reader): void {
    for (const call of this.calls) {
      if (code !== 0) call.answer(code, reader);
      else {
        const type = reader.int();
        if (reader.bool()) throw new RangeError("an answer is missing");
        reader.int();
        if (type === op.error) call.answer(reader.int(), reader);
        else if (call.settled) call.question.read(reader);
        else call.answer(0, reader);
      }
    }
  }

  fail(reason: unknown): void {
    for (const call of this.calls) call.fail(reason);
  }
}
