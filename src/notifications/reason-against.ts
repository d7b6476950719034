import { normalizePhoneNumber } from '../contract/values.ts';
import { type NumberRule } from './phone-number.ts';
import type { Reason } from './reasons.ts';
import type { Turn } from './turn.ts';

/** Why a message need not be tried, judged when it is its turn: what waited may be older than the rules. */
export function reasonAgainst(turn: Turn, isAllowedNumber: NumberRule): Reason | null {
  if (turn.isDisabled) return 'account-disabled';
  if (turn.kind === 'email' && turn.type !== 'confirm' && !turn.isConfirmed) return 'not-confirmed';
  if (turn.type === 'confirm' && turn.isUnsubscribed) return 'not-confirmed';
  if (!turn.isSuiting) return 'other-labels';
  if (turn.kind !== 'sms') return null;
  const number = normalizePhoneNumber(turn.recipient);
  if (number === null) return 'number-form';
  return isAllowedNumber(number) ? null : 'number-refused';
}
