import { join } from 'node:path';
import { InputError, parseWith, readJson } from '../input-error.ts';
import { readText } from '../read-purposes.ts';
import { Answer, listFiles } from './cases.ts';

const endings = ['.json', '.ndjson'];

/** Which of a folder's files have answers, by the name of the file of cases. Throws `InputError`. */
export function findAnswers(folder: string, names: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const file of listFiles(folder)) {
    const ending = endings.find((one) => file.endsWith(one));
    if (!ending) continue;
    const name = file.slice(0, -ending.length);
    const path = join(folder, file);
    // A file whose name is misspelt would not be looked at.
    if (!names.includes(name))
      throw new InputError(`${path}: there are no such cases. There are ${names.join(', ')}.`);
    const other = found.get(name);
    if (other) throw new InputError(`${other} and ${path} answer the same cases.`);
    found.set(name, path);
  }
  if (found.size > 0) return found;
  const example = `${names[0]}.json or ${names[0]}.ndjson`;
  throw new InputError(`${folder} has no answers: expected files like ${example}.`);
}

/** The answers of a file by the rules of their cases: an array, or a line for each. Throws `InputError`. */
export function readAnswers(file: string): Map<string, Answer> {
  const text = readText(file);
  const all = file.endsWith('.ndjson')
    ? text.split('\n').flatMap((line, index) => {
        const where = `${file}:${index + 1}`;
        return line.trim() === ''
          ? []
          : [parseWith(Answer, readJson(line, file, index + 1), where)];
      })
    : parseWith(Answer.array(), readJson(text, file), file);
  const byRule = new Map<string, Answer>();
  for (const answer of all) {
    if (byRule.has(answer.rule)) {
      throw new InputError(`${file} answers ${JSON.stringify(answer.rule)} twice.`);
    }
    byRule.set(answer.rule, answer);
  }
  return byRule;
}
