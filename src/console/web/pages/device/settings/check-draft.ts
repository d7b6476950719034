import { t } from '../../../text/t.ts';
import { numberFields, readNumber, type Draft, type DraftSense } from './draft.ts';

export type FieldProblem = { path: string; message: string };

/** What the service would refuse, at its place and in the reader's language. It looks at everything else itself. */
export function checkDraft({ modules }: Draft): FieldProblem[] {
  const used = new Set<string>();
  return modules.flatMap(({ senses }, m) =>
    senses.flatMap((sense, s) =>
      checkSense(sense, used).map(({ path, message }) => ({
        path: `/module/${m}/senses/${s}/${path}`,
        message,
      })),
    ),
  );
}

function checkSense(sense: DraftSense, used: Set<string>): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const sId = sense.sId.trim();
  if (!/^0x[0-9a-f]+$/i.test(sId)) problems.push({ path: 'sId', message: t('settings.wrongId') });
  if (used.has(sId)) problems.push({ path: 'sId', message: t('settings.wrongTwice') });
  used.add(sId);
  for (const path of numberFields)
    if (sense[path].trim() !== '' && typeof readNumber(sense[path]) !== 'number')
      problems.push({ path, message: t('settings.wrongNumber') });
  const [min, max] = [readNumber(sense.min), readNumber(sense.max)];
  const isBoth = sense.min.trim() !== '' && sense.max.trim() !== '';
  if (isBoth && typeof min === 'number' && typeof max === 'number' && min > max)
    problems.push({ path: 'min', message: t('settings.wrongOrder') });
  return problems;
}
