/** What is asked of the server is kept under the route's id and what was given, so that an event can name what it makes old. */
import { keepPreviousData, QueryClient, useQuery } from "@tanstack/react-query";
import { type Answer, call, type Given, isRefusal, type PlainId } from "./call.ts";

/** A list page's place: which of them is asked for again when something happens. */
const freshMs = 1_000;

export const answers = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: freshMs,
      gcTime: 5 * 60_000,
      // What the server refused it refuses again; what did not arrive may arrive.
      retry: (failures, error) => failures < 2 && isRefusal(error, "SERVER_UNREACHABLE"),
      retryDelay: (attempt) => 500 * 2 ** attempt,
      refetchOnWindowFocus: true,
      // A page on 127.0.0.1 is reached without a network.
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

export interface Asking {
  enabled?: boolean;
  /** Asked again so often while the page is seen, for what no event tells. */
  everyMs?: number;
  /** What was there before is shown until the new is there: for lists whose filter changes. */
  keep?: boolean;
}

export function useAnswer<Id extends PlainId>(id: Id, given: Given<Id>, asking: Asking = {}) {
  return useQuery({
    queryKey: [id, given],
    queryFn: ({ signal }) => call(id, given, { signal }) as Promise<Answer<Id>>,
    enabled: asking.enabled ?? true,
    refetchInterval: asking.everyMs ?? false,
    ...(asking.keep ? { placeholderData: keepPreviousData } : {}),
  });
}

/** What is shown of these routes is asked for again. */
export const outdate = (...ids: PlainId[]): void => {
  for (const id of ids) void answers.invalidateQueries({ queryKey: [id] });
};
