/**
 * The cache of the server's answers. The cache key is the route's id, then the parameters, so that all answers of one route can be
 * invalidated together.
 */
import { keepPreviousData, QueryClient, useQueries, useQuery } from "@tanstack/react-query";
import { type Answer, call, type Given, isAway, isRefusal, type PlainId } from "./call.ts";

/** The time for which an answer counts as fresh. */
const freshMs = 1_000;

/** The interval at which an answer that could not be read is requested again, until it arrives. */
const againMs = 3_000;

export const answers = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: freshMs,
      gcTime: 5 * 60_000,
      // A request is retried (twice) only if the server was unreachable, because a request that the server refused would be refused
      // again.
      retry: (failures, error) => failures < 2 && isRefusal(error, "SERVER_UNREACHABLE"),
      retryDelay: (attempt) => 500 * 2 ** attempt,
      refetchOnWindowFocus: true,
      // Requests are sent even if the browser is offline, because a server on 127.0.0.1 needs no network.
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

export interface Asking {
  enabled?: boolean;
  /** Refetch interval while the tab is visible, for data without push events. */
  everyMs?: number;
  /** Shows the previous answer until the new one arrives: for lists whose filter changes. */
  keep?: boolean;
}

/**
 * The refetch interval in ms; false for none. If the last fetch failed because the server or its store was away, the answer is
 * fetched again every 3 s, so that the page recovers without user action.
 */
export const refetchEvery =
  (everyMs: number | undefined) =>
  ({ state }: { state: { error: unknown } }): number | false =>
    isAway(state.error) ? againMs : (everyMs ?? false);

const queryOf = <Id extends PlainId>(id: Id, given: Given<Id>, asking: Asking) => ({
  queryKey: [id, given],
  queryFn: ({ signal }: { signal: AbortSignal }) => call(id, given, { signal }) as Promise<Answer<Id>>,
  enabled: asking.enabled ?? true,
  refetchInterval: refetchEvery(asking.everyMs),
});

export function useAnswer<Id extends PlainId>(id: Id, given: Given<Id>, asking: Asking = {}) {
  return useQuery({
    ...queryOf(id, given, asking),
    ...(asking.keep ? { placeholderData: keepPreviousData } : {}),
  });
}

/** Begins a read for a component that is not rendered yet. An error is left to the component, which reads again. */
export function begin<Id extends PlainId>(id: Id, given: Given<Id>): void {
  void answers.prefetchQuery(queryOf(id, given, {}));
}

/** The answers to several requests of one route, for a list that is longer than one request may name. */
export function useAnswers<Id extends PlainId>(id: Id, givens: readonly Given<Id>[], asking: Asking = {}) {
  return useQueries({ queries: givens.map((given) => queryOf(id, given, asking)) });
}

/** Marks the answers of these routes as stale; those on screen are fetched again. */
export const outdate = (...ids: PlainId[]): void => {
  for (const id of ids) void answers.invalidateQueries({ queryKey: [id] });
};
