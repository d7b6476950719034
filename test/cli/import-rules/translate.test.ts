import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseExpression } from '../../../src/cli/import-rules/expression.ts';
import { readModels } from '../../../src/cli/import-rules/model.ts';
import { translate } from '../../../src/cli/import-rules/translate.ts';
import { runProgram } from '../../journeys/process.ts';
import { coldStore, pump } from './models.ts';

async function read(definition: unknown) {
  const models = await readModels(JSON.stringify(definition), 'model.json');
  return models.map((model, index) => translate(model, index + 1));
}

/** A model of two states, with these transitions out of the first. */
const modelOf = (...conditions: string[]) => ({
  key: 'id',
  initialStateName: 'one',
  states: [
    {
      stateName: 'one',
      onInput: {
        transitionEvents: conditions.map((condition) => ({
          eventName: 'go',
          condition,
          nextState: 'two',
        })),
      },
    },
    { stateName: 'two' },
  ],
});

async function causesOf(condition: string) {
  const [one] = await read(modelOf(condition));
  const events = one?.purpose?.states[0]?.events ?? [];
  return events.map(({ causes = [] }) =>
    causes.map(({ thresholds, threshold }) =>
      threshold ? { ...thresholds, not: true } : thresholds,
    ),
  );
}

const x = '$input.a.x';

test.each([
  [`${x} > 5`, [[{ isGt: 5 }]]],
  [`5 > ${x}`, [[{ isLt: 5 }]]],
  [`${x} >= 5`, [[{ isLt: 5, not: true }]]],
  [`${x} <= -5`, [[{ isGt: -5, not: true }]]],
  [`!(${x} <= 5)`, [[{ isGt: 5 }]]],
  [`${x} == 5 || ${x} == 7`, [[{ isOneOf: [5, 7] }]]],
  [`currentInput("a") && (${x} > 3 || ${x} > 1)`, [[{ isGt: 1 }]]],
  [`currentInput("a") || ${x} > 3`, [[{ isAny: true }]]],
  [`${x} > 3 || $input.b.y > 1 || ${x} > 2`, [[{ isGt: 2 }], [{ isGt: 1 }]]],
  [`${x} != 5`, [[{ isNotIn: [5] }]]],
  [`${x} > 5 && ${x} < 9`, [[{ isGt: 5, isLt: 9 }]]],
  [
    `${x} >= 5 && ${x} <= 9`,
    [
      [
        { isLt: 5, not: true },
        { isGt: 9, not: true },
      ],
    ],
  ],
  [`${x} >= 5 && ${x} < 9`, [[{ isLt: 9 }, { isLt: 5, not: true }]]],
  [`${x} > 5 && ${x} != 7`, [[{ isGt: 5, isLt: 7 }], [{ isGt: 7 }]]],
  [`${x} > 9 && ${x} < 5`, []],
  [`convert(Decimal, ${x}) > 5`, [[{ isGt: 5 }]]],
  [`${x} == 'on'`, [[{ isOneOf: [1] }]]],
  [`${x} != "on" && ${x} != 'off'`, [[{ isOneOf: [0] }]]],
  [`${x} == true`, [[{ isOneOf: [1] }]]],
  [`!${x}`, [[{ isOneOf: [0] }]]],
  ['currentInput("a")', [[{ isAny: true }]]],
  ['5', []],
])('%s', async (condition, causes) => {
  expect(await causesOf(condition)).toEqual(causes);
});

test.each([
  ['$variable.count > 3', 'the condition reads the variable count, and a purpose has no variables'],
  [`${x} > $input.a.y`, 'the condition compares two values of inputs with each other'],
  [`${x} + 1 > 3`, 'the condition has arithmetic, which a purpose cannot do'],
  [`isUndefined(${x})`, 'the condition calls isUndefined()'],
  ['!timeout("t")', 'the condition negates timeout()'],
  ['timeout("t")', 'waits for the timer t, which is not set on entering this state'],
  [`${x} > 'a'`, 'the condition compares with > what is not a number'],
  [`${x} > 3 || ${x} == 'a'`, 'the condition compares $input.a.x with number and string'],
  [`${x} > 3 AND ${x} < 5`, 'the condition cannot be read from "AND $input.a.x < 5" on'],
  [`${x} > `, 'the condition cannot be read from its end on'],
])('%s has no counterpart', async (condition, text) => {
  const [one] = await read(modelOf(condition, `${x} > 30`));
  expect(one?.leftOut).toContainEqual({
    pointer: '/states/0/onInput/transitionEvents/0/condition',
    text,
  });
  expect(one?.verdict).not.toBe('whole');
});

test('operators bind as they do there', () => {
  const flat = (one: ReturnType<typeof parseExpression>): string =>
    one.kind === 'binary'
      ? `(${flat(one.left)}${one.operator}${flat(one.right)})`
      : 'of' in one
        ? `${one.kind}(${flat(one.of)})`
        : one.kind === 'literal'
          ? String(one.value)
          : one.kind;
  expect(flat(parseExpression('1 < 2 && !true || 3 == 1 + 2 * -4'))).toBe(
    '(((1<2)&&not(true))||(3==(1+(2*minus(4)))))',
  );
});

describe('it is honest about what is only similar', () => {
  test.each([
    ['two values of one message', [`${x} > 5`, `$input.a.y > 5`], /compared together/],
    ['two senses at once', [`${x} > 5 && $input.b.y > 5`], /last values of several senses/],
  ])('%s', async (_name, conditions, text) => {
    const [one] = await read(modelOf(...conditions));
    expect(one?.verdict).toBe('in part');
    expect(one?.differs.map((each) => each.text).join('\n')).toMatch(text);
  });

  test('a value that led to a state, when another input arrives or a timer ends', async () => {
    const model = (warm: string, cold: string) => ({
      key: 'id',
      initialStateName: 'cold',
      states: [
        {
          stateName: 'cold',
          onInput: { transitionEvents: [{ condition: warm, nextState: 'warm' }] },
        },
        {
          stateName: 'warm',
          onEnter: { events: [{ actions: [{ setTimer: { timerName: 't', seconds: 60 } }] }] },
          onInput: { transitionEvents: [{ condition: cold, nextState: 'cold' }] },
        },
      ],
    });
    const verdictOf = async (warm: string, cold: string) => (await read(model(warm, cold)))[0];
    expect(await verdictOf(`${x} > 8`, `${x} < 6`)).toMatchObject({ verdict: 'whole' });
    const guarded = `currentInput("a") && ${x} < 9`;
    expect(await verdictOf(`${x} > 8 && triggerType("Message")`, guarded)).toMatchObject({
      verdict: 'whole',
    });
    const again = (text: string) => ({
      verdict: 'in part',
      differs: expect.arrayContaining([
        { pointer: '/states/1/onInput/transitionEvents/0/condition', text },
      ]),
    });
    expect(await verdictOf(`${x} > 8`, `${x} < 9`)).toMatchObject(
      again('is looked at again when a timer ends; here only when its sense is measured'),
    );
    expect(await verdictOf(`${x} > 8`, `${x} < 9 || currentInput("b")`)).toMatchObject(
      again('is looked at again when another input arrives; here only when its sense is measured'),
    );
  });

  test('two timers that may end at once', async () => {
    const [one] = await read({
      key: 'id',
      initialStateName: 'one',
      states: [
        {
          stateName: 'one',
          onEnter: {
            events: ['s', 't'].map((timerName) => ({
              actions: [{ setTimer: { timerName, seconds: 60 } }],
            })),
          },
          onInput: {
            events: [
              { condition: 'currentInput("a")', actions: [{ resetTimer: { timerName: 's' } }] },
              {
                condition: 'timeout("s") || timeout("t")',
                actions: [{ sns: { targetArn: 'topic' } }],
              },
              {
                condition: 'timeout("t") || timeout("t")',
                actions: [{ sns: { targetArn: 'topic' } }],
              },
            ],
          },
        },
      ],
    });
    expect(one?.purpose?.states[0]?.events).toHaveLength(3);
    expect(one?.differs).toMatchObject([
      {
        pointer: '/states/0/onInput/events/1/condition',
        text: expect.stringMatching(/^waits for one of several timers/),
      },
    ]);
  });

  test('a model without a key is one detector for all devices', async () => {
    const { key: _key, ...model } = modelOf(`${x} > 5`);
    const [one] = await read(model);
    expect(one?.differs).toMatchObject([
      { pointer: '', text: expect.stringMatching(/^has no key/) },
    ]);
  });
});

test('a timer that tells people and begins again is a repeated alarm', async () => {
  const [one] = await read({
    key: 'id',
    initialStateName: 'open',
    states: [
      {
        stateName: 'open',
        onEnter: { events: [{ actions: [{ setTimer: { timerName: 't', seconds: 900 } }] }] },
        onInput: {
          events: [
            {
              eventName: 'still open',
              condition: 'timeout("t")',
              actions: [{ sns: { targetArn: 'topic' } }, { resetTimer: { timerName: 't' } }],
            },
          ],
        },
      },
    ],
  });
  expect(one?.purpose?.states[0]?.events).toMatchObject([
    {
      name: 'still open',
      actions: { cloud: { sendPush: true }, alarm: true, repeatMs: 900_000 },
      causes: [{ sId: '0x1', threshold: { noneForMs: 900_000 } }],
    },
  ]);
  expect(one?.verdict).toBe('in part');
});

describe('the command', () => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'import-rules-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function run(name: string, text: string, ...more: string[]) {
    const file = join(folder, name);
    await writeFile(file, text);
    const args = ['src/cli/import-rules.ts', 'aws-iot-events', file, ...more];
    const program = runProgram(process.execPath, args, { env: {} });
    const status = await program.ended();
    return { status, stdout: program.stdout(), stderr: program.stderr() };
  }

  test('writes the purposes, and says what to set up', async () => {
    const out = join(folder, 'purposes.json');
    const { status, stdout, stderr } = await run('pump.json', JSON.stringify(pump), '--out', out);
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
    expect(stderr).toContain('Pump: taken over as a whole\n  2 states, 3 events\n');
    expect(stderr).toContain('sense 0x1: $input.command.word (1 is "start", 0 is any other)');
    expect(stderr).toContain(
      'a contact for the topic arn:aws:sns:eu-central-1:000000000000:people',
    );
    expect(JSON.parse(await readFile(out, 'utf8'))).toMatchObject([{ puId: 1, name: 'Pump' }]);
  });

  test('gives senses the numbers that the devices have', async () => {
    const text = JSON.stringify(modelOf(`${x} > 5 && $input.a.y < 3 && $input.a.z > 1`));
    const { status, stdout, stderr } = await run('own.json', text, '--sense', 'y=0x1');
    expect(status).toBe(3);
    const [{ states }] = JSON.parse(stdout) as [{ states: { events: { causes: object[] }[] }[] }];
    expect(states[0]?.events[0]?.causes).toMatchObject([
      { sId: '0x2', thresholds: { isGt: 5 } },
      { sId: '0x1', thresholds: { isLt: 3 } },
      { sId: '0x3', thresholds: { isGt: 1 } },
    ]);
    expect(stderr).toContain('{"sId":"0x1","name":"y"}');
    const wrong = await run('own.json', text, '--sense', 'w=0x9');
    expect(wrong.status).toBe(2);
    expect(wrong.stderr).toContain('no sense is called w; there are x, y, z.');
    for (const sense of [['y=1'], ['x=0x1', '--sense', 'y=0x01'], ['x=0x1', '--sense', 'x=0x2']])
      expect((await run('own.json', text, '--sense', ...sense)).status).toBe(2);
  });

  test('reads templates in YAML, with the short forms, and gives places in them', async () => {
    const template = `
Resources:
  Heat:
    Type: AWS::IoTEvents::Input
    Properties: { InputName: heat, InputDefinition: { Attributes: [{ JsonPath: t }] } }
  Oven:
    Type: AWS::IoTEvents::DetectorModel
    Properties:
      Key: id
      RoleArn: !GetAtt Role.Arn
      DetectorModelDefinition:
        InitialStateName: cold
        States:
          - StateName: cold
            OnInput:
              TransitionEvents:
                - EventName: heats
                  Condition: !Sub '$input.\${Heat}.t > 200'
                  NextState: hot
                  Actions:
                    - Sns: { TargetArn: !Ref People }
                    - Lambda: { FunctionArn: !GetAtt Work.Arn }
          - StateName: hot
            OnInput:
              TransitionEvents:
                - EventName: cools
                  Condition: !Join ['', ['$input.', !Ref Heat, '.t <= 200']]
                  NextState: cold
                - EventName: unknown
                  Condition: !If [IsTest, 'true', 'false']
                  NextState: cold
`;
    const { status, stdout, stderr } = await run('oven.yaml', template);
    expect(status).toBe(3);
    const [purpose] = JSON.parse(stdout) as { name: string; states: { events: object[] }[] }[];
    expect(purpose).toMatchObject({
      name: 'Oven',
      states: [
        { events: [{ causes: [{ sId: '0x1', thresholds: { isGt: 200 } }] }] },
        { events: [{ causes: [{ sId: '0x1', thresholds: { isGt: 200 } }] }] },
      ],
    });
    const at = '/Resources/Oven/Properties/DetectorModelDefinition/States';
    expect(stderr).toContain(
      `  left out:
    ${at}/0/OnInput/TransitionEvents/0/Actions/1/Lambda: calls a Lambda function
    ${at}/1/OnInput/TransitionEvents/1/Condition: the condition is known only to CloudFormation
`,
    );
  });

  test.each([
    ['none.json', '{"Resources":{}}', 1, 'no resource is an AWS::IoTEvents::DetectorModel'],
    ['other.json', '{"hello":1}', 1, 'expected detectorModelDefinition or states'],
    ['broken.json', '{"states":[}', 1, 'broken.json:1:12: expected'],
    ['broken.yaml', 'a: [', 1, 'not YAML'],
    ['empty.json', '{"states":[]}', 4, 'the state "", in which a detector begins, is missing'],
    ['useless.json', JSON.stringify(modelOf('$variable.x > 1')), 4, 'not taken over'],
  ])('%s', async (name, text, status, said) => {
    const ran = await run(name, text);
    expect(ran).toMatchObject({ status, stderr: expect.stringContaining(said) });
  });

  test('all models of a file count', async () => {
    const resourceOf = ({ detectorModelDefinition, key }: typeof coldStore) => ({
      Type: 'AWS::IoTEvents::DetectorModel',
      Properties: { DetectorModelDefinition: detectorModelDefinition, Key: key },
    });
    const useless = { Type: 'AWS::IoTEvents::DetectorModel', Properties: modelOf('false') };
    const text = JSON.stringify({ Resources: { Good: resourceOf(coldStore), Useless: useless } });
    const { status, stderr, stdout } = await run('two.json', text);
    expect(status).toBe(4);
    expect(stderr).toMatch(/^Good: taken over as a whole\n[^]*\nUseless: not taken over\n/);
    expect(JSON.parse(stdout)).toHaveLength(1);
  });
});
