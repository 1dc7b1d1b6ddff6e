import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/api/client.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
let admin: Client;
beforeAll(async () => {
  await stage.open();
  admin = stage.client();
});
afterAll(() => stage.close());

const password = "seven bells at noon";

describe("one user, token or worker key is read", () => {
  test("a user: as the list has it, with its version as ETag, by an admin alone, and not once removed", async () => {
    const made = await admin.createUser({ name: "ann", password, role: "operator" });
    expect(await admin.getUser({ user: "ann" })).toEqual(made);
    const { headers, body } = await stage.ask("GET", "/v1/users/ann", { token: stage.tokens.admin });
    expect(headers.get("etag")).toBe(`"${made.version}"`);
    expect(JSON.stringify(body)).not.toMatch(/scrypt|bells/);
    const changed = await admin.changeUser({ user: "ann", role: "viewer" }, { ifVersion: made.version });
    expect(await admin.getUser({ user: "ann" })).toEqual(changed);
    await expect(stage.client("editor").getUser({ user: "ann" })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    await admin.removeUser({ user: "ann" });
    await expect(admin.getUser({ user: "ann" })).rejects.toMatchObject({ code: "USER_UNKNOWN" });
  });

  test("a token: one's own, or anyone's by an admin, and the newest of its name", async () => {
    const operator = stage.client("operator");
    const { user } = await operator.getMe();
    const { secret, ...made } = await operator.createToken({ name: "ci", scopes: ["runs:read"] });
    expect(await operator.getToken({ token: "ci" })).toEqual(made);
    expect(await admin.getToken({ token: "ci", user })).toEqual(made);
    const { body } = await stage.ask("GET", "/v1/tokens/ci", { token: stage.tokens.operator });
    expect(JSON.stringify(body)).not.toContain(secret.slice(-20));
    // A token of another user is answered as one that does not exist.
    for (const asked of [{ token: "ci" }, { token: "ci", user }, { token: "none", user }])
      await expect(stage.client("viewer").getToken(asked)).rejects.toMatchObject({ code: "TOKEN_UNKNOWN" });
    for (const asked of [{ token: "ci" }, { token: "none", user }, { token: "ci", user: "nobody" }])
      await expect(admin.getToken(asked)).rejects.toMatchObject({ code: "TOKEN_UNKNOWN" });
    await operator.revokeToken({ token: "ci" });
    expect(await operator.getToken({ token: "ci" })).toMatchObject({ ...made, revoked: expect.any(String) });
    const { secret: _, ...next } = await operator.createToken({ name: "ci" });
    expect(await operator.getToken({ token: "ci" })).toEqual({ ...next, revoked: null });
  });

  test("a worker key: by an admin of its namespace, revoked or not, and the newest of its name", async () => {
    const theirs = stage.clientOf(await stage.token("admin", { where: ["theirs"] }));
    const { secret, ...made } = await theirs.createWorkerKey({ name: "theirs/key", groups: ["theirs/gpu"] });
    for (const api of [theirs, admin]) expect(await api.getWorkerKey({ key: "theirs/key" })).toEqual(made);
    const { body } = await stage.ask("GET", "/v1/worker-keys/theirs%2Fkey", { token: stage.tokens.admin });
    expect(JSON.stringify(body)).not.toContain(secret.slice(-20));
    await admin.createWorkerKey({ name: "ours/key" });
    for (const key of ["ours/key", "ours/none"])
      await expect(theirs.getWorkerKey({ key })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    const revoked = await theirs.revokeWorkerKey({ key: "theirs/key" });
    expect(await theirs.getWorkerKey({ key: "theirs/key" })).toEqual(revoked);
    const { secret: _, ...next } = await theirs.createWorkerKey({ name: "theirs/key", groups: ["theirs/cpu"] });
    expect(await theirs.getWorkerKey({ key: "theirs/key" })).toEqual(next);
    await expect(admin.getWorkerKey({ key: "none" })).rejects.toMatchObject({ code: "KEY_NAME_UNKNOWN" });
  });
});
