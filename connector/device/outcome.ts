import type { Outcome } from '../../src/contract/uplink.ts';
import type { Parsed } from './parse-uplink.ts';

/** What is known of a message's items before the database has seen them: what its text alone tells. */
export function outcomeOf({ content, rejections }: Parsed): Outcome {
  const isEmpty = 'items' in content ? content.items.length === 0 : content.kind === 'none';
  return { stored: isEmpty ? 0 : 1, repeated: 0, rejected: rejections };
}
