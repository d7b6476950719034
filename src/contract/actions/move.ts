import { integer32 } from '../integer.ts';
import type { Action } from './action.ts';

export const moveMembers = { gotoStId: integer32.optional(), gotoPuId: integer32.optional() };

/** Moves the device to another state, of this purpose or of another one; where to: `targetOf`. */
export const move: Action<{
  engine?: { gotoStId?: number | undefined; gotoPuId?: number | undefined } | undefined;
}> = {
  name: 'move',
  reaches: 'engine',
  isAsked: ({ engine }) => engine?.gotoStId !== undefined || engine?.gotoPuId !== undefined,
};
