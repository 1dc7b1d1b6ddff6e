import { type EmbeddedStore, openEmbedded } from "../../embedded/index.ts";
import { settingsOf } from "../../settings/settings.ts";
import { type CommonOptions, chosenUrl, defaultDirectory, lookingOptions, placeText } from "../store-choice.ts";

export interface StorePlace {
  url: string;
  schema: string;
  /** The store's name in messages. */
  text: string;
  /** undefined: the store is a PostgreSQL server that is not embedded. */
  embedded: EmbeddedStore | undefined;
}

/**
 * Runs `work` at the chosen store without making a Carillon. An embedded store is opened, and released afterwards.
 * @param create true: creates a missing embedded store; default: according to the settings
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
