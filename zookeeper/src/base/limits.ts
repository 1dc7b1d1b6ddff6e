/** The client's limits; some of them are defaults or bounds of options. */
export const limits = {
  /** The largest request that a server with the default jute.maxbuffer accepts, without its length prefix. */
  maxRequestBytes: 1_048_575,
  /**
   * Lower bound of the `maxRequestBytes` option. Requests that set watches again, and requests with combined reads, are not split to fit
   * the option; with paths of usual length they are smaller than this bound.
   */
  minMaxRequestBytes: 256 * 1024,
  /** Default of `maxReplyBytes`, large enough for a list of a million children. */
  maxReplyBytes: 128 * 1024 * 1024,
  /**
   * Lower bound of the `maxReplyBytes` option. A watch event contains a path and must fit, because it answers no request that could be
   * rejected.
   */
  minMaxReplyBytes: 16 * 1024,
  /** Largest number of requests that wait to be sent or answered, and largest total size of the requests that wait to be sent. */
  maxWaitingRequests: 200_000,
  maxWaitingBytes: 64 * 1024 * 1024,
  /** From `restUnanswered` unanswered requests on, answers are read only every `restMs`. */
  restUnanswered: 256,
  restMs: 2,
  /** From `togetherUnanswered` unanswered requests on, consecutive reads share a request, at most `mostTogether` reads per request. */
  togetherUnanswered: 16,
  mostTogether: 32,
  /** A timer that fires more than this many ms too late shows that the process was suspended or blocked. */
  lateTimerMs: 20,
  /** The longest time spent rejecting or sending waiting calls in one turn of the event loop. */
  sliceMs: 5,
  /** Interval in ms at which calls that wait for a session are checked for their timeout. */
  waitingLookMs: 50,
  /** After a reconnect, watches are set again in frames of about this size. */
  setWatchesBytes: 128 * 1024,
  /** Default of `maxWaiting`: the largest number of events that wait for a slow reader of a watch. */
  maxWaitingEvents: 10_000,
  defaultSessionTimeoutMs: 30_000,
  minSessionTimeoutMs: 100,
  /** The largest timeout that fits into the signed 32-bit number of the protocol. */
  maxSessionTimeoutMs: 2_147_483_647,
  /** Bounds of the pause after a failed round through all hosts; the pause doubles each time, with jitter. */
  firstBackoffMs: 20,
  maxBackoffMs: 2_000,
  /**
   * Bounds of the pause between searches for a server with a quorum while the present server has none; the pause doubles each time.
   */
  firstQuorumLookMs: 100,
  maxQuorumLookMs: 60_000,
  /**
   * A connection that lasts at least this long resets the back-off. After a shorter connection, the client waits at most this long before
   * it connects again.
   */
  steadyMs: 250,
  /** Bounds of the first time limit in ms for a server to accept a session; see maxConnectMs in hosts.ts. */
  minConnectMs: 250,
  maxConnectMs: 5_000,
  /** The longest time in ms that `close` spends on closing the session at the server. */
  closeMs: 1_000,
  /** Largest number of expired sessions that the client remembers in order to close them at the server. */
  maxUnburied: 4,
  pathChars: 4_096,
} as const;
