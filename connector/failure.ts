const hasCode = (error: unknown, code: string) =>
  error instanceof Error && 'code' in error && error.code === code;

/** The store, or the way to it, is away for now. */
export const isUnavailableError = (error: unknown) => hasCode(error, 'unavailable');

/** The device was removed meanwhile. */
export const isGone = (error: unknown) => hasCode(error, 'device-gone');
