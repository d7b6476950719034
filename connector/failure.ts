import { codeOf } from '../src/lib/thrown.ts';

/** The store, or the way to it, is away for now. */
export const isUnavailableError = (error: unknown) => codeOf(error) === 'unavailable';

/** The device was removed meanwhile. */
export const isGone = (error: unknown) => codeOf(error) === 'device-gone';
