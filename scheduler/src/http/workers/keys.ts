import { timingSafeEqual } from "node:crypto";
import { hashOfSecret, parseKey } from "../../access/worker-key.ts";
import type { WorkerKey, WorkerStore } from "../../access/worker-store.ts";
import type { Clock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { FailedAttempts, networkOf } from "../sign-in/failed-attempts.ts";

/**
 * How long a key is cached, in ms: after this time, a key that was revoked on another server is refused here even if the signal was lost.
 * When a worker joins or requests a secret, the key is always read again.
 */
const freshMs = 500;
const rememberedMax = 10_000;
/** The shortest interval in ms between two reads of all keys, which serve clients from networks that have sent too many wrong keys. */
const allKeysEveryMs = 1_000;

type Known = WorkerKey & { hash: Buffer };

/**
 * Finds the worker key of a request. Wrong keys are limited per network. A valid key is not refused because of wrong keys from
 * the same network: it is cached already, or found when the keys, up to `rememberedMax`, are read.
 */
export class Keys {
  readonly #store: WorkerStore;
  readonly #clock: Clock;
  readonly #now: () => number;
  readonly #failed: FailedAttempts;
  readonly #known = new Map<number, { key: Known; readMono: number }>();
  /** Reads in progress, by key, so that polls of many workers with the same key share one read. */
  readonly #reading = new Map<number, Promise<Known | null>>();
  /** The number of revocations of which this server has been notified since its start. */
  #changes = 0;
  #allReadMono = Number.NEGATIVE_INFINITY;
  #readingAll: Promise<void> | undefined;

  /** @param now returns the store's time in epoch milliseconds */
  constructor(store: WorkerStore, clock: Clock, log: Log, now: () => number) {
    this.#store = store;
    this.#clock = clock;
    this.#now = now;
    this.#failed = new FailedAttempts(clock, log, "worker keys");
  }

  /**
   * Authenticates a request by its worker key.
   * @param address the client's address
   * @param now true: reads the key from the store even if it is cached
   * @throws KEY_UNKNOWN, KEY_THROTTLED
   */
  async of(authorization: string | undefined, address: string, now = false): Promise<WorkerKey> {
    const network = networkOf(address);
    const given = parseKey(/^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1] ?? "");
    if (!given) throw this.#refused(network, "there is no worker key in the request");
    const hash = hashOfSecret(given.secret);
    const present = this.#known.get(given.keyId);
    const proven = present !== undefined && timingSafeEqual(present.key.hash, hash);
    const fresh = present !== undefined && this.#clock.monotonic() - present.readMono < freshMs;
    if (proven && present.key.revokedMs !== null) throw revoked(present.key);
    let key: Known | null | undefined = present?.key;
    // A key that was read in the last `freshMs` costs no query, even if the secret is wrong. Later, a cached key with the right secret is
    // read again. Any other key is read only until its network has sent too many wrong keys; then it is looked up among all keys, which are
    // read together.
    if (fresh && !(proven && now)) key = present.key;
    else if (proven || this.#failed.turnedAwayMs(network) === 0)
      key = await (now ? this.#read(given.keyId) : this.#readOnce(given.keyId));
    else key = await this.#amongAll(given.keyId);
    if (!key || !timingSafeEqual(key.hash, hash)) throw this.#refused(network, "no such worker key");
    if (key.revokedMs !== null) throw revoked(key);
    if (key.expiresMs !== null && key.expiresMs <= this.#now()) throw expired(key);
    return key;
  }

  /** Called when this key was revoked, here or on another server: cached values and reads in progress are outdated. */
  forget(keyId: number): void {
    this.#changes++;
    this.#reading.delete(keyId);
    const known = this.#known.get(keyId);
    if (known) known.readMono = Number.NEGATIVE_INFINITY;
  }

  #refused(network: string, what: string): CarillonError {
    this.#failed.failed(network);
    const turnedAwayMs = this.#failed.turnedAwayMs(network);
    if (turnedAwayMs === 0)
      return new CarillonError("KEY_UNKNOWN", what, {
        hint: "Make one with carillon keys create NAME, and send it as Authorization: Bearer KEY.",
      });
    return new CarillonError("KEY_THROTTLED", "too many worker keys from this address were wrong", {
      hint: "Look for a worker with a wrong or revoked key there. One with a good key is let in.",
      retryAfterMs: turnedAwayMs,
    });
  }

  #readOnce(keyId: number): Promise<Known | null> {
    const under = this.#reading.get(keyId);
    if (under) return under;
    const read = this.#read(keyId).finally(() => {
      if (this.#reading.get(keyId) === read) this.#reading.delete(keyId);
    });
    this.#reading.set(keyId, read);
    return read;
  }

  async #read(keyId: number): Promise<Known | null> {
    const changes = this.#changes;
    const key = await this.#store.key(keyId);
    if (key) this.#remember(key, changes);
    return key;
  }

  async #amongAll(keyId: number): Promise<Known | undefined> {
    if (this.#clock.monotonic() - this.#allReadMono >= allKeysEveryMs)
      this.#readingAll ??= this.#readAll().finally(() => {
        this.#readingAll = undefined;
      });
    await this.#readingAll;
    return this.#known.get(keyId)?.key;
  }

  async #readAll(): Promise<void> {
    this.#allReadMono = this.#clock.monotonic();
    const changes = this.#changes;
    for (const key of await this.#store.validKeys(rememberedMax)) this.#remember(key, changes);
  }

  /** @param changes the value of `#changes` when the read began; if it has changed since, the result may be older than a revocation */
  #remember(key: Known, changes: number): void {
    if (this.#known.size >= rememberedMax && !this.#known.has(key.keyId)) this.#known.clear();
    const isFresh = changes === this.#changes;
    this.#known.set(key.keyId, { key, readMono: isFresh ? this.#clock.monotonic() : Number.NEGATIVE_INFINITY });
  }
}

/**
 * The error for a revoked or expired key. The client has the key's secret, so it is not guessing: this is not counted as a failure, and the
 * client always gets this error.
 */
const over = (key: WorkerKey, how: string) =>
  new CarillonError("KEY_UNKNOWN", `the worker key ${key.name} ${how}`, {
    hint: "Its worker must stop. Make another key with carillon keys create NAME, and start the worker with that one.",
  });
const revoked = (key: WorkerKey) => over(key, "was revoked");
const expired = (key: WorkerKey) => over(key, "has expired");
