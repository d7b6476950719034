import type { Sense } from '../../../api/types.ts';
import type { Series } from './point.ts';

/** `switch`: 0 and 1. `list`: a few whole numbers, such as modes. `number`: drawn as a line. */
export type Kind = 'switch' | 'list' | 'number';

const mostListed = 8;

/** How a sense is shown. Its range says so where it has one, and its values have to agree. */
export function kindOf(sense: Sense | undefined, { points }: Pick<Series, 'points'>): Kind {
  const { min, max, unit, decimals = 0 } = sense ?? {};
  if (min === undefined || max === undefined || unit || decimals > 0) return 'number';
  const isListed = Number.isInteger(min) && Number.isInteger(max) && max - min < mostListed;
  if (!isListed) return 'number';
  if (!points.every((point) => Number.isInteger(point.min) && Number.isInteger(point.max)))
    return 'number';
  return min === 0 && max === 1 ? 'switch' : 'list';
}
