import manifest from '../package.json' with { type: 'json' };

/** Of this program, as package.json says. */
export const version: string = manifest.version;
