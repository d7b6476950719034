import { writeFileSync } from 'node:fs';
import process from 'node:process';
import { Purpose } from '../contract/purpose.ts';
import { messageOf } from '../lib/thrown.ts';
import { asksForHelp, readArguments, UsageError } from './command-line.ts';
import { InputError, parseWith, readText } from './engine/options.ts';
import { readModels } from './import-rules/model.ts';
import { renumber, reportOf } from './import-rules/report.ts';
import { translate } from './import-rules/translate.ts';

const help = `Makes purposes of the rules of another service, and says what it could not take over.

Usage:
  npm run import-rules -- aws-iot-events FILE [--sense NAME=ID]... [--out FILE]

FILE has a detector model: the answer of aws iotevents describe-detector-model, the input of
create-detector-model, or a CloudFormation template with AWS::IoTEvents::DetectorModel, in JSON or YAML.

Standard output gets the purposes, as a list for npm run engine, and standard error what came of each
model: whether it was taken over as a whole, in part or not, what to set up, and what is left out or
differs, with its place as a JSON Pointer.

  --sense NAME=ID  The number that your devices have for a sense, such as pressure=0x21. The names are
                   those of the configuration that is printed; the others get the next free numbers.
  --out FILE       Write the purposes into a file.
  --help           This text.

docs/import-rules.md says what is taken over, table by table.

Exit status: 0 if all models are taken over as a whole, 3 if one is only in part, 4 if one is not,
1 if the file cannot be read, 2 if an option is wrong.
`;

process.exitCode = await main(process.argv.slice(2)).catch(explain);

async function main(args: string[]): Promise<number> {
  if (asksForHelp(args)) {
    process.stdout.write(help);
    return 0;
  }
  const { values, positionals } = readArguments({
    args,
    options: { out: { type: 'string' }, sense: { type: 'string', multiple: true } },
    allowPositionals: true,
  });
  const [from, file, ...more] = positionals;
  if (from !== 'aws-iot-events')
    throw new UsageError('Expected aws-iot-events, whose rules can be imported.');
  if (file === undefined || more.length > 0) throw new UsageError('Expected one file.');
  const models = await readModels(readText(file), file);
  const ids = readIds(values.sense ?? []);
  const read = models.map((model, index) => translate(model, index + 1));
  const names = read.flatMap(({ senses, timer }) => [
    ...senses.map(({ name }) => name),
    ...(timer === null ? [] : ['timer']),
  ]);
  for (const name of ids.keys())
    if (!names.includes(name))
      throw new UsageError(`--sense: no sense is called ${name}; there are ${names.join(', ')}.`);
  const translated = read.map((one) => renumber(one, ids));
  for (const one of translated) process.stderr.write(`${reportOf(one)}\n`);
  const purposes = translated.flatMap(({ purpose }) => purpose ?? []);
  for (const [index, purpose] of purposes.entries())
    parseWith(Purpose, purpose, 'the purpose', `/${index}`);
  const text = `${JSON.stringify(purposes, null, 2)}\n`;
  if (values.out === undefined) process.stdout.write(text);
  else writeFileSync(values.out, text);
  const verdicts = new Set(translated.map(({ verdict }) => verdict));
  return verdicts.has('not') ? 4 : verdicts.has('in part') ? 3 : 0;
}

/** The numbers of senses, by their names. */
function readIds(given: readonly string[]): Map<string, string> {
  const ids = new Map<string, string>();
  for (const one of given) {
    const [, name = '', sId = ''] = /^(.+)=(0x[0-9A-Fa-f]+)$/.exec(one) ?? [];
    if (name === '')
      throw new UsageError(`--sense ${one}: expected NAME=0x and hexadecimal digits.`);
    const isTwice = [...ids].some(([other, id]) => other === name || Number(id) === Number(sId));
    if (isTwice) throw new UsageError(`--sense ${one}: this name or number was given before.`);
    ids.set(name, sId);
  }
  return ids;
}

function explain(error: unknown): number {
  const isExpected = error instanceof UsageError || error instanceof InputError;
  const text = isExpected || !(error instanceof Error) ? messageOf(error) : error.stack;
  process.stderr.write(`${text}\n`);
  if (!(error instanceof UsageError)) return 1;
  process.stderr.write('Use --help to see the options.\n');
  return 2;
}
