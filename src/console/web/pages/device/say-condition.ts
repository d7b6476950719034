import type { Sense } from '../../api/types.ts';
import { formatValue } from '../../text/format.ts';
import { t } from '../../text/t.ts';

/** What a cause compares with: "above 8 °C"; empty where every value agrees. */
export function sayCondition(
  thresholds: Record<string, unknown>,
  negate: boolean | undefined,
  sense: Sense | undefined,
): string {
  const shown = (value: unknown) =>
    typeof value === 'number' ? formatValue(value, { unit: sense?.unit }) : '';
  const list = (value: unknown) => (Array.isArray(value) ? value.map(shown).join(', ') : '');
  const { isGt, isLt, isOneOf, isNotIn, isInsideGeo } = thresholds;
  const said = [
    isGt === undefined ? '' : t('event.above', { limit: shown(isGt) }),
    isLt === undefined ? '' : t('event.below', { limit: shown(isLt) }),
    isOneOf === undefined ? '' : t('event.oneOf', { limit: list(isOneOf) }),
    isNotIn === undefined ? '' : t('event.notIn', { limit: list(isNotIn) }),
    isInsideGeo === undefined ? '' : t('event.inside'),
  ];
  const condition = said.filter((each) => each !== '').join(', ');
  return negate && condition !== '' ? t('event.not', { condition }) : condition;
}
