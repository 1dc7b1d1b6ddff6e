import { timingSafeEqual } from "node:crypto";
import type { Clock } from "../clock.ts";
import { CarillonError } from "../errors.ts";
import { hashOfSecret, parseKey } from "../worker-key.ts";
import type { WorkerKey, WorkerStore } from "../worker-store.ts";

/** A key's sessions end with it, so what is remembered of it matters only to who joins, and that asks anew. */
const freshMs = 60_000;
const rememberedMax = 10_000;

/** Who a request comes from. */
export class Keys {
  readonly #store: WorkerStore;
  readonly #clock: Clock;
  readonly #known = new Map<number, { key: WorkerKey & { hash: Buffer }; readMono: number }>();

  constructor(store: WorkerStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** @param now reads it from the store even if it was read lately @throws KEY_UNKNOWN */
  async of(authorization: string | undefined, now = false): Promise<WorkerKey> {
    const given = parseKey(/^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1] ?? "");
    if (!given) throw unknown("there is no worker key in the request");
    const known = this.#known.get(given.keyId);
    const fresh = !now && known && this.#clock.monotonic() - known.readMono < freshMs;
    const key = fresh ? known.key : await this.#read(given.keyId);
    if (!key || !timingSafeEqual(key.hash, hashOfSecret(given.secret))) throw unknown("no such worker key");
    if (key.revokedMs !== null) throw unknown(`the worker key ${key.name} was revoked`);
    return key;
  }

  async #read(keyId: number): Promise<(WorkerKey & { hash: Buffer }) | null> {
    const key = await this.#store.key(keyId);
    if (this.#known.size >= rememberedMax) this.#known.clear();
    if (key) this.#known.set(keyId, { key, readMono: this.#clock.monotonic() });
    return key;
  }
}

const unknown = (what: string) =>
  new CarillonError("KEY_UNKNOWN", what, {
    hint: "Make one with carillon keys create NAME, and send it as Authorization: Bearer KEY.",
  });
