import { DomainError } from '../errors.ts';
import { sealText, unsealText } from '../lib/sealed-text.ts';

/** Keeps text so that whoever reads the database alone cannot read it. */
export type Box = { seal(text: string): string; open(sealed: string): string };

/** `keys`: newest first; the first one seals, all open. */
export function createBox(keys: readonly Buffer[]): Box {
  const [newest] = keys;
  if (!newest) throw new Error('no key to seal with');
  return {
    seal: (text) => sealText(text, newest),
    open(sealed) {
      for (const key of keys) {
        try {
          return unsealText(sealed, key);
        } catch {
          // Sealed before the secret was changed, with one of the others.
        }
      }
      throw new DomainError(
        'conflict',
        'This was done, but its answer can no longer be read: the secret was changed since.',
      );
    },
  };
}
