const told = document.querySelector<HTMLMetaElement>('meta[name="base-path"]')?.content ?? "";

/** The path at which a proxy serves the server, such as "/carillon"; "" if there is none. The server writes it into the page. */
export const basePath = told.startsWith("/") ? told : "";

/** The server's URL without a slash at its end, as programs elsewhere reach it. */
export const serverUrl = `${window.location.origin}${basePath}`;

/** True if the page is shown in a frame of another page. */
export const isFramed = window.self !== window.top;
