import { type EmbeddedStore, openEmbedded } from "../../embedded/index.ts";
import { settingsOf } from "../../settings/settings.ts";
import { type CommonOptions, chosenUrl, defaultDirectory, lookingOptions, placeText } from "../store-choice.ts";

export interface StorePlace {
  url: string;
  schema: string;
  /** The store's description for messages. */
  text: string;
  /** The embedded store; undefined: the store is another PostgreSQL server. */
  embedded: EmbeddedStore | undefined;
}

/**
 * Runs `work` with the chosen store, without a Carillon instance. An embedded store is opened first, and released afterwards.
 * @param create true: a missing embedded store is created; default: the settings decide whether it is
 */
export async function atStore<T>(
  options: CommonOptions,
  work: (place: StorePlace) => Promise<T>,
  create?: boolean,
): Promise<T> {
  const looking = lookingOptions(options);
  const { directory = defaultDirectory, createStore } = looking;
  const { schema } = settingsOf(looking);
  const given = chosenUrl(options);
  const embedded = given === undefined ? await openEmbedded({ directory, create: create ?? createStore }) : undefined;
  try {
    const url = given ?? (embedded as EmbeddedStore).url;
    return await work({ url, schema, text: placeText(given, embedded), embedded });
  } finally {
    await embedded?.release();
  }
}
