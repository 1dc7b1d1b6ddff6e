import type { Answer, Given, RouteId } from "../contract.ts";

/** A request and its answer, as the OpenAPI page shows them. */
export interface Example<Fields = Readonly<Record<string, unknown>>, Answered = unknown> {
  /** The fields of the path, the query and the body, in one object as for the client. */
  readonly given?: Fields;
  /** The version in the If-Match header. */
  readonly ifVersion?: number;
  /** The body of the answer; undefined: the answer has no body. */
  readonly answer?: Answered;
}

export type Examples = { readonly [Id in RouteId]?: Example<Given<Id>, Answer<Id>> };
