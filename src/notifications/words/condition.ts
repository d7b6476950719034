import type { CauseDetail } from '../../contract/event.ts';
import type { Words } from './words.ts';

// A list of sixteen numbers is none that a person reads on a telephone.
const maxListed = 5;

/** What was asked of a value, in words: "above 8 °C and below 10 °C". */
export function conditionOf(
  { thresholds, negate }: CauseDetail,
  number: (value: number) => string,
  words: Words,
): string {
  const list = (value: unknown) => {
    const numbers = Array.isArray(value) ? value.filter((one) => typeof one === 'number') : [];
    const more = numbers.length > maxListed ? ', …' : '';
    return numbers.slice(0, maxListed).map(number).join(', ') + more;
  };
  const parts = Object.entries(thresholds).flatMap(([kind, value]) => {
    if (kind === 'isGt' && typeof value === 'number') return `${words.above} ${number(value)}`;
    if (kind === 'isLt' && typeof value === 'number') return `${words.below} ${number(value)}`;
    if (kind === 'isOneOf') return `${words.oneOf} ${list(value)}`;
    if (kind === 'isNotIn') return `${words.noneOf} ${list(value)}`;
    return kind === 'isInsideGeo' ? words.insideArea : [];
  });
  const condition = parts.join(` ${words.and} `);
  if (!negate || condition === '') return condition;
  return parts.length > 1 ? `${words.not} (${condition})` : `${words.not} ${condition}`;
}
