import type { NoisyKind } from './kind.ts';
import { connectionKinds } from './kinds/connections.ts';
import { firingKinds } from './kinds/firings.ts';
import { packetKinds } from './kinds/packets.ts';
import { readingKinds } from './kinds/reading.ts';
import { requestKinds } from './kinds/requests.ts';
import { writingKinds } from './kinds/writing.ts';

/** Every way in which one account may disturb the others. The oracle and the nightly tests run each. */
export const kinds: NoisyKind[] = [
  ...connectionKinds,
  ...packetKinds,
  ...requestKinds,
  ...readingKinds,
  ...writingKinds,
  ...firingKinds,
];

/** Throws if there is no kind of that name. */
export function getKind(name: string): NoisyKind {
  const kind = kinds.find((each) => each.name === name);
  if (!kind) throw new Error(`There is no kind of noise "${name}".`);
  return kind;
}
