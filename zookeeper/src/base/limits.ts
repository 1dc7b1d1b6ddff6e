/** Every bound of the client, with its unit in its name. Options may change those that are an option. */
export const limits = {
  /** The largest request that a server with the default jute.maxbuffer accepts, without its length prefix. */
  maxRequestBytes: 1_048_575,
  /** Watches that are set again, and reads that share a request, are not cut to an option's size. */
  minMaxRequestBytes: 256 * 1024,
  /** A million names of a queue are 45 MB. */
  maxReplyBytes: 128 * 1024 * 1024,
  /** An event holds a path, and belongs to no request that could fail alone. */
  minMaxReplyBytes: 16 * 1024,
  /** Requests that wait for an answer or to be sent, and the bytes of those to be sent. */
  maxWaitingRequests: 200_000,
  maxWaitingBytes: 64 * 1024 * 1024,
  /** From `restUnanswered` unanswered requests on, answers are read only every `restMs`. */
  restUnanswered: 256,
  restMs: 2,
  /** From `togetherUnanswered` unanswered requests on, consecutive reads share a request, at most `mostTogether` in each. */
  togetherUnanswered: 16,
  mostTogether: 32,
  /** If a timer fires later than this, the process stood still. */
  lateTimerMs: 20,
  /** How long calls are rejected in one turn of the event loop. */
  sliceMs: 5,
  /** How often calls that wait for a session are checked. */
  waitingLookMs: 50,
  /** Watches are set again in frames of about this size after a reconnect. */
  setWatchesBytes: 128 * 1024,
  /** Events that wait for a slow reader of a watch. */
  maxWaitingEvents: 10_000,
  defaultSessionTimeoutMs: 30_000,
  minSessionTimeoutMs: 100,
  /** Servers keep the timeout as a 32-bit number. */
  maxSessionTimeoutMs: 2_147_483_647,
  /** Between rounds through all hosts, doubled each time, with jitter. */
  firstBackoffMs: 20,
  maxBackoffMs: 2_000,
  /** Between searches for a server with a quorum while the present one has none; doubled each time. */
  firstQuorumLookMs: 100,
  maxQuorumLookMs: 60_000,
  /** A connection that lasted for this long ends the back-off, which until then is no longer than this. */
  steadyMs: 250,
  /** One server's initial time limit to accept a session: see maxConnectMs in connection.ts. */
  minConnectMs: 250,
  maxConnectMs: 5_000,
  /** How long `close` tries to close the session on the server. */
  closeMs: 1_000,
  /** Ended sessions that are still to be closed on the server. */
  maxUnburied: 4,
  pathChars: 4_096,
} as const;
