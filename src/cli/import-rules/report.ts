import type { Translated } from './translate.ts';
import { nameOf } from './condition.ts';

/** What came of a model, for people: several lines. */
export function reportOf({ name, verdict, purpose, ...told }: Translated): string {
  const { senses, timer, setUp, leftOut, differs } = told;
  const events = purpose?.states.reduce((sum, { events: of = [] }) => sum + of.length, 0) ?? 0;
  const of = ({ pointer, text }: { pointer: string; text: string }) => `${pointer}: ${text}`;
  const numbered = senses.map(({ sId, name: called }) => ({ sId, name: called }));
  const values = senses.map(({ sId, value, texts, isFlag }) => {
    const coded = texts?.map((text, index) => `${index + 1} is ${JSON.stringify(text)}`).join(', ');
    const type = coded ? `${coded}, 0 is any other` : isFlag ? '1 is true, 0 is false' : 'a number';
    return `sense ${sId}: ${nameOf(value)} (${value.path === '' ? 'any number' : type})`;
  });
  if (timer !== null) {
    numbered.push({ sId: timer, name: 'timer' });
    values.push(`sense ${timer}: nothing measures it; for the time since a state was entered`);
  }
  if (numbered.length > 0) {
    const module = [{ moduleId: 'imported', senses: numbered }];
    values.unshift(`the configuration ${JSON.stringify({ device: {}, module })}`);
  }
  const parts: [string, string[]][] = [
    ['set up', [...values, ...setUp]],
    ['left out', leftOut.map(of)],
    ['differs', differs.map(of)],
  ];
  return [
    `${name}: ${{ whole: 'taken over as a whole', 'in part': 'taken over in part', not: 'not taken over' }[verdict]}`,
    ...(purpose ? [`  ${purpose.states.length} states, ${events} events`] : []),
    ...parts.flatMap(([title, lines]) =>
      lines.length > 0 ? [`  ${title}:`, ...lines.map((line) => `    ${line}`)] : [],
    ),
  ].join('\n');
}

/**
 * The same with these numbers for its senses, by their names (the one for timers is called `timer`). The others get
 * the next numbers that are free.
 */
export function renumber(translated: Translated, ids: ReadonlyMap<string, string>): Translated {
  const { senses, timer, purpose } = translated;
  const names = new Map([
    ...senses.map(({ sId, name }) => [sId, name] as const),
    ...(timer === null ? [] : [[timer, 'timer'] as const]),
  ]);
  const taken = new Set([...names.values()].map((name) => Number(ids.get(name))));
  let next = 0;
  const free = () => {
    do next += 1;
    while (taken.has(next));
    return `0x${next.toString(16)}`;
  };
  const numbers = new Map([...names].map(([sId, name]) => [sId, ids.get(name) ?? free()]));
  const numberOf = (sId: string) => numbers.get(sId) ?? sId;
  const states = purpose?.states.map((state) => ({
    ...state,
    events: state.events?.map((event) => ({
      ...event,
      causes: event.causes?.map((cause) => ({ ...cause, sId: numberOf(cause.sId) })),
    })),
  }));
  return {
    ...translated,
    purpose: purpose && states ? { ...purpose, states } : purpose,
    senses: senses.map((sense) => ({ ...sense, sId: numberOf(sense.sId) })),
    timer: timer === null ? null : numberOf(timer),
  };
}
