import { InputError } from '../input-error.ts';
import type { WriteLine } from '../write.ts';
import { readCases, type CaseFile } from './cases.ts';
import { compareAnswer, type Difference } from '../vectors.ts';
import { findAnswers, readAnswers } from './read-answers.ts';

/** What is wrong with an answer; `case` counts from 0. */
type Wrong = { file: string; case: number; rule: string } & Difference;

/**
 * Compares another engine's answers with what the cases of test/vectors say. Whether all of them agree; files that
 * have no answers are named, and are no difference. Throws `InputError`.
 */
export async function checkVectors(
  { folder, isJson }: { folder: string; isJson: boolean },
  out: WriteLine,
): Promise<boolean> {
  const files = readCases();
  const names = files.map(({ name }) => name);
  const answers = findAnswers(folder, names);
  const unanswered: string[] = [];
  let [cases, agree] = [0, 0];
  for (const file of files) {
    const path = answers.get(file.name);
    if (path === undefined) {
      unanswered.push(`${file.name}.json`);
      continue;
    }
    const wrong = compareFile(file, path);
    for (const one of wrong) await out(isJson ? asJson(one) : asText(one));
    const count = file.cases.length;
    const agreeing = count - new Set(wrong.map(({ case: index }) => index)).size;
    if (!isJson) await out(`${path}: ${agreeing} of ${count} cases agree`);
    cases += count;
    agree += agreeing;
  }
  if (isJson) await out(JSON.stringify({ kind: 'summary', cases, agree, unanswered }));
  else await out(summary(cases, agree, unanswered));
  return agree === cases;
}

function compareFile({ name, cases }: CaseFile, path: string): Wrong[] {
  const answers = readAnswers(path);
  const wrong = cases.flatMap((expected, index): Wrong[] => {
    const { rule } = expected;
    const answer = answers.get(rule);
    answers.delete(rule);
    const differences = answer
      ? compareAnswer(expected, answer)
      : [{ path: '', expected: 'an answer', found: undefined }];
    return differences.map((one) => ({ file: `${name}.json`, case: index, rule, ...one }));
  });
  const [other] = answers.keys();
  if (other === undefined) return wrong;
  throw new InputError(
    `${path} answers a case that ${name}.json has not: ${JSON.stringify(other)}`,
  );
}

const asJson = (wrong: Wrong) => JSON.stringify({ kind: 'difference', ...wrong });

function asText({ file, case: index, rule, path, expected, found }: Wrong): string {
  const place = `${file} /${index}${path}`;
  return `${place}: expected ${shown(expected)}, found ${shown(found)}\n    ${rule}`;
}

/** What is long is not read to its end. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

function summary(cases: number, agree: number, unanswered: string[]): string {
  const all = `${agree} of ${cases} cases agree`;
  return unanswered.length === 0 ? `${all}.` : `${all}; no answers to ${unanswered.join(', ')}.`;
}
