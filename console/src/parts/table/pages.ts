import { type InfiniteData, keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useRef } from "react";
import { answers, refetchEvery } from "../../api/answers.ts";
import { type Answer, call, type Given, type PlainId } from "../../api/call.ts";

type PagedId = { [Id in PlainId]: Answer<Id> extends { items: unknown[]; next: string | null } ? Id : never }[PlainId];
type Item<Id extends PagedId> = Answer<Id> extends { items: (infer One)[] } ? One : never;

/** A list of at most this many pages is refetched as a whole; of a longer list, only the visible pages are refetched. */
const fewPages = 3;

/**
 * A list that is fetched from the server page by page. When the list is stale and has more than `fewPages` pages, only the visible
 * pages are fetched again; the other pages follow when the user scrolls to them. Otherwise a long list would send dozens of requests
 * each time a run ends.
 */
export function usePages<Id extends PagedId>(
  id: Id,
  given: Given<Id>,
  { everyMs, enabled = true }: { everyMs?: number; enabled?: boolean } = {},
) {
  const seen = useRef({ from: 0, to: Number.POSITIVE_INFINITY });
  /** Epoch ms at which each page was fetched, by the page's cursor. */
  const askedMs = useRef(new Map<string | null, number>());
  const key = [id, given, "pages"];
  const asked = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => {
      const known = answers.getQueryData<InfiniteData<Answer<Id>, string | null>>(key);
      const at = known?.pageParams.indexOf(pageParam) ?? -1;
      const page = known?.pages[at];
      if (known && page !== undefined && known.pages.length > fewPages && !isSeen(known.pages, at, seen.current))
        return page;
      askedMs.current.set(pageParam, Date.now());
      return call(id, { ...given, ...(pageParam === null ? {} : { cursor: pageParam }) } as Given<Id>, { signal });
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page as unknown as { next: string | null }).next,
    placeholderData: keepPreviousData,
    enabled,
    refetchInterval: refetchEvery(everyMs),
  });
  const items = useMemo(
    () => asked.data?.pages.flatMap((page) => (page as unknown as { items: Item<Id>[] }).items),
    [asked.data],
  );
  const { hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = asked;
  const onMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  // While the list for changed parameters is being fetched, the rows are still those of the previous parameters.
  const list = useRef("");
  if (!asked.isPlaceholderData) list.current = JSON.stringify(given);
  const latest = useRef(asked.data);
  latest.current = asked.data;
  const onShown = useCallback(
    (from: number, to: number) => {
      seen.current = { from, to };
      const pages = latest.current?.pages ?? [];
      const params = (latest.current?.pageParams ?? []) as (string | null)[];
      if (everyMs === undefined || pages.length <= fewPages) return;
      const isOld = (param: string | null, at: number) =>
        isSeen(pages, at, seen.current) && (askedMs.current.get(param) ?? 0) < Date.now() - everyMs;
      if (params.some(isOld)) void refetch();
    },
    [everyMs, refetch],
  );
  return {
    data: items,
    error: asked.error,
    refetch,
    more: hasNextPage,
    onMore,
    /** The caller must call this with the index range of the visible rows. */
    onShown,
    /** The parameters to which the present rows belong, as JSON. */
    list: list.current,
    stale: asked.isPlaceholderData,
  };
}

export type PagesOf<Id extends PagedId> = ReturnType<typeof usePages<Id>>;

function isSeen(pages: unknown[], at: number, { from, to }: { from: number; to: number }): boolean {
  const sizes = (pages as { items: unknown[] }[]).map(({ items }) => items.length);
  const begins = sizes.slice(0, at).reduce((sum, size) => sum + size, 0);
  return begins <= to && begins + (sizes[at] ?? 0) > from;
}
