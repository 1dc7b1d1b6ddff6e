import type { Answer, Given, RouteId } from "../contract.ts";

/** A request and its answer, as the OpenAPI page shows them. */
export interface Example<Fields = Readonly<Record<string, unknown>>, Answered = unknown> {
  /** Fields of the path, the query and the body, as the client takes them. */
  readonly given?: Fields;
  /** The version in If-Match. */
  readonly ifVersion?: number;
  /** Absent: the answer has no body. */
  readonly answer?: Answered;
}

export type Examples = { readonly [Id in RouteId]?: Example<Given<Id>, Answer<Id>> };
