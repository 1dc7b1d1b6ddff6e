/** Every bound of the client, with its unit in its name. Options may change those that are an option. */
export const limits = {
  /** The largest request that a server with the default jute.maxbuffer accepts, without its length prefix. */
  maxRequestBytes: 1_048_575,
  /**
   * The smallest `maxRequestBytes` option, because frames that set watches again and frames of shared reads are not cut to fit the
   * option.
   */
  minMaxRequestBytes: 256 * 1024,
  /** Large enough for a list of children: a million names of queue items take 45 MB. */
  maxReplyBytes: 128 * 1024 * 1024,
  /**
   * The smallest `maxReplyBytes` option: a watch event holds a path and must fit, because no single request could fail in its
   * place.
   */
  minMaxReplyBytes: 16 * 1024,
  /** The most requests that wait to be sent or answered, and the most bytes of requests that wait to be sent. */
  maxWaitingRequests: 200_000,
  maxWaitingBytes: 64 * 1024 * 1024,
  /** From `restUnanswered` unanswered requests on, answers are read only every `restMs`. */
  restUnanswered: 256,
  restMs: 2,
  /** From `togetherUnanswered` unanswered requests on, consecutive reads share a request, at most `mostTogether` reads per request. */
  togetherUnanswered: 16,
  mostTogether: 32,
  /** If a timer fires later than this, the process is considered to have stood still. */
  lateTimerMs: 20,
  /** The longest time spent rejecting or sending waiting calls in one turn of the event loop. */
  sliceMs: 5,
  /** Interval at which calls that wait for a session are checked for expiry. */
  waitingLookMs: 50,
  /** Watches are set again in frames of about this size after a reconnect. */
  setWatchesBytes: 128 * 1024,
  /** Events that wait for a slow reader of a watch. */
  maxWaitingEvents: 10_000,
  defaultSessionTimeoutMs: 30_000,
  minSessionTimeoutMs: 100,
  /** Servers keep the timeout as a 32-bit number. */
  maxSessionTimeoutMs: 2_147_483_647,
  /** Pause between rounds through all hosts, doubled each time, with jitter. */
  firstBackoffMs: 20,
  maxBackoffMs: 2_000,
  /** Pause between searches for a server with a quorum while the current server has none; doubled each time. */
  firstQuorumLookMs: 100,
  maxQuorumLookMs: 60_000,
  /** A connection that lasts this long resets the back-off. After a shorter one the client waits at most this long. */
  steadyMs: 250,
  /** Bounds of the initial time limit for one server to accept a session: see maxConnectMs in hosts.ts. */
  minConnectMs: 250,
  maxConnectMs: 5_000,
  /** The longest time that `close` spends on closing the session at the server. */
  closeMs: 1_000,
  /** The most ended sessions that are remembered in order to close them at the server. */
  maxUnburied: 4,
  pathChars: 4_096,
} as const;
