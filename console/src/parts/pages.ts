import { keepPreviousData, useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { type Answer, call, type Given, type PlainId } from "../api/call.ts";

type PagedId = { [Id in PlainId]: Answer<Id> extends { items: unknown[]; next: string | null } ? Id : never }[PlainId];
type Item<Id extends PagedId> = Answer<Id> extends { items: (infer One)[] } ? One : never;

/** A list of the server's, page after page as they are wanted. */
export function usePages<Id extends PagedId>(
  id: Id,
  given: Given<Id>,
  { everyMs, enabled = true }: { everyMs?: number; enabled?: boolean } = {},
) {
  const asked = useInfiniteQuery({
    queryKey: [id, given, "pages"],
    queryFn: ({ pageParam, signal }) =>
      call(id, { ...given, ...(pageParam === null ? {} : { cursor: pageParam }) } as Given<Id>, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => (page as unknown as { next: string | null }).next,
    placeholderData: keepPreviousData,
    enabled,
    // Pages that were walked to are asked for again all together: past a few that is too much to do on a clock.
    refetchInterval: ({ state }) => ((state.data?.pages.length ?? 0) > 3 ? false : (everyMs ?? false)),
  });
  const items = useMemo(
    () => asked.data?.pages.flatMap((page) => (page as unknown as { items: Item<Id>[] }).items),
    [asked.data],
  );
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = asked;
  const onMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  return {
    data: items,
    error: asked.error,
    refetch: asked.refetch,
    more: hasNextPage,
    onMore,
    stale: asked.isPlaceholderData,
  };
}
