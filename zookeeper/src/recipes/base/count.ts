/** Encodes and decodes a shared count of 4 bytes. Counters write it; semaphores read their number of leases from it. */
import { ZooKeeperError } from "../../base/errors.ts";

/** @throws OPTION_INVALID */
export function encodeCount(count: number, path: string): Buffer {
  if (!Number.isInteger(count) || count < -(2 ** 31) || count >= 2 ** 31) {
    const options = { path, hint: "give a whole number from -2147483648 to 2147483647, or use AtomicLong" };
    throw new ZooKeeperError("OPTION_INVALID", `${path} cannot be set to ${count}`, options);
  }
  const data = Buffer.alloc(4);
  data.writeInt32BE(count);
  return data;
}

/** @throws DATA_INVALID */
export function decodeCount(data: Buffer, path: string): number {
  if (data.length === 4) return data.readInt32BE();
  const options = { path, hint: "a shared count is 4 bytes, high byte first: does something else use this path?" };
  throw new ZooKeeperError("DATA_INVALID", `${path} holds ${data.length} bytes, which is no shared count`, options);
}
