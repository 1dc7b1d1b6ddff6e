import { describe, expect, it } from "vitest";
import { isStoreAway } from "../../base/errors.ts";
import { isTransient, storeError } from "./store-errors.ts";

const failure = (code: string, text = "told by the server") => Object.assign(new Error(text), { code });

describe("the classification of a store's error", () => {
  it.each([
    ["STORE_TLS", failure("SELF_SIGNED_CERT_IN_CHAIN")],
    ["STORE_TLS", failure("ERR_TLS_CERT_ALTNAME_INVALID")],
    ["STORE_TLS", new Error("The server does not support SSL connections")],
    ["STORE_TLS", failure("28000", 'no pg_hba.conf entry for host "10.0.0.7", user "a", database "b", no encryption')],
    ["STORE_TLS", failure("28000", "connection requires a valid client certificate")],
    ["STORE_REFUSED", failure("28P01")],
    ["STORE_REFUSED", new Error("SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string")],
    ["STORE_REFUSED", failure("08P01", 'database "never_there" does not exist')],
    ["STORE_REFUSED", failure("08P01", 'password authentication failed for user "app"')],
    ["STORE_REFUSED", failure("08P01", "unsupported startup parameter: options")],
    ["STORE_REFUSED", failure("08P01", "no such database: never_there")],
    ["STORE_REFUSED", failure("08P01", "no such user")],
    ["STORE_TLS", failure("08P01", "SSL required")],
    ["STORE_READ_ONLY", failure("25006")],
    ["STORE_FULL", failure("53100")],
    ["STORE_PARTITIONS", failure("23514", 'no partition of relation "run_history" found for row')],
    ["STORE_RECOVERING", failure("CA001", "what was written last may be missing")],
    ["STORE_BUSY", failure("53300", "sorry, too many clients already")],
    ["STORE_CONFLICT", failure("40001")],
    ["STORE_UNREACHABLE", failure("ECONNREFUSED")],
    ["STORE_UNREACHABLE", failure("57P01")],
    ["STORE_UNREACHABLE", new AggregateError([new Error("::1 refused"), new Error("127.0.0.1 refused")])],
    ["STOPPED", new Error("Cannot use a pool after calling end on the pool")],
  ])("%s: %s", (code, error) => {
    expect(storeError(error)).toMatchObject({ code, hint: expect.stringMatching(/\S/), cause: error });
  });

  it("distinguishes full shared memory from a full disk", () => {
    const text = 'could not resize shared memory segment "/PostgreSQL.1" to 8388608 bytes: No space left on device';
    expect(storeError(failure("53100", text))).toMatchObject({
      code: "STORE_FULL",
      message: expect.stringContaining("shared memory"),
      hint: expect.stringContaining("--shm-size"),
    });
  });

  it("distinguishes a pooler without a free connection from an unreachable store; both can be retried", () => {
    for (const text of ["query_wait_timeout", "server login has been failing, try again later (server_login_retry)"]) {
      const told = storeError(failure("08P01", text));
      expect(told).toMatchObject({ hint: expect.stringContaining("default_pool_size") });
      expect(isStoreAway(told)).toBe(true);
    }
  });

  it("leaves an error that is a bug unchanged", () => {
    const bug = failure("42601", "syntax error");
    expect(storeError(bug)).toBe(bug);
  });

  it("distinguishes temporary from permanent errors", () => {
    const told = (code: string) => storeError(failure(code));
    const codes = ["ECONNREFUSED", "25006", "53100", "53300", "40001", "28P01"];
    expect(codes.map((code) => isStoreAway(told(code)))).toEqual([true, true, true, true, false, false]);
    expect(codes.map((code) => isTransient(told(code)))).toEqual([true, true, true, true, true, false]);
  });
});
