import { jsonPointer } from '../../lib/json.ts';
import { InputError, readJson } from '../engine/options.ts';

/** An action: its kind as in the API (`setTimer`, `sns`), and what it has. */
export type Action = { kind: string; body: Node; pointer: string };
/** `condition`: null if only CloudFormation knows it. `next`: the state to which it leads; null for an event. */
export type Rule = {
  name: string;
  condition: string | null;
  conditionPointer: string;
  actions: Action[];
  next: string | null;
  nextPointer: string;
};
export type State = {
  name: string;
  pointer: string;
  onEnter: Rule[];
  events: Rule[];
  transitions: Rule[];
  onExit: Rule[];
};

/** A detector model. `pointer`: where its definition is. */
export type Model = {
  name: string;
  pointer: string;
  initial: string;
  initialPointer: string;
  hasKey: boolean;
  isSerial: boolean;
  /** All inputs that it reads: it is evaluated when one of them arrives. */
  inputs: string[];
  states: State[];
};

/**
 * The detector models of a file: the answer of `describe-detector-model`, the input of `create-detector-model`, a
 * definition alone, or a CloudFormation template, in JSON or YAML. `file`: its name. Throws `InputError`.
 */
export async function readModels(text: string, file: string): Promise<Model[]> {
  const isYaml = /\.ya?ml$/i.test(file) || !/^\s*[{[]/.test(text);
  const top = new Node(isYaml ? await readYaml(text, file) : readJson(text, file), '', {});
  const resources = top.get('resources');
  if (resources.isObject) {
    const found = resources.entries
      .filter(([, one]) => one.get('type').text === 'AWS::IoTEvents::DetectorModel')
      .map(([name, one]) => readModel(one.get('properties').within(resources.value), name));
    if (found.length > 0) return found;
    throw new InputError(`${file}: no resource is an AWS::IoTEvents::DetectorModel.`);
  }
  const described = top.get('detectorModel');
  const model = described.isObject ? described : top;
  const isModel = [model.get('detectorModelDefinition'), model].some(
    (one) => one.get('states').isList,
  );
  if (isModel) return [readModel(model, 'detector model')];
  throw new InputError(
    `${file}: expected detectorModelDefinition or states of a detector model, or Resources of a CloudFormation template.`,
  );
}

async function readYaml(text: string, file: string): Promise<unknown> {
  const yaml = await import('js-yaml').catch(() => {
    throw new InputError(`${file}: YAML needs js-yaml (npm ci without --omit=dev). Or use JSON.`);
  });
  // !Ref x, !Sub …: the short form of { Ref: x }, { "Fn::Sub": … }.
  const kinds = ['scalar', 'sequence', 'mapping'] as const;
  const types = kinds.map(
    (kind) =>
      new yaml.Type('!', {
        kind,
        multi: true,
        construct: (data: unknown, tag = '') => {
          const name = tag.slice(1);
          const value = name === 'GetAtt' && typeof data === 'string' ? data.split('.') : data;
          return { [name === 'Ref' || name === 'Condition' ? name : `Fn::${name}`]: value };
        },
      }),
  );
  try {
    return yaml.load(text, { schema: yaml.DEFAULT_SCHEMA.extend(types) });
  } catch (error) {
    throw new InputError(`${file}: not YAML: ${(error as Error).message.split('\n')[0]}`);
  }
}

function readModel(model: Node, named: string): Model {
  const inner = model.get('detectorModelDefinition');
  const definition = inner.isObject ? inner : model;
  const about = model.get('detectorModelConfiguration');
  const member = (name: string) => model.get(name).text ?? about.get(name).text;
  return {
    name: member('detectorModelName') ?? named,
    pointer: definition.pointer,
    initial: definition.get('initialStateName').text ?? '',
    initialPointer: definition.get('initialStateName').pointer,
    hasKey: member('key') !== null,
    isSerial: member('evaluationMethod') === 'SERIAL',
    inputs: [...new Set(inputsOf(definition))],
    states: definition.get('states').items.map((state) => {
      const rules = (when: string, which: string) => state.get(when).get(which).items.map(readRule);
      return {
        name: state.get('stateName').text ?? '',
        pointer: state.pointer,
        onEnter: rules('onEnter', 'events'),
        events: rules('onInput', 'events'),
        transitions: rules('onInput', 'transitionEvents'),
        onExit: rules('onExit', 'events'),
      };
    }),
  };
}

const inputName = /\$input\.(?:`([^`]+)`|(\w+))|currentInput\(\s*(?:"([^"]+)"|'([^']+)')/g;

function* inputsOf(node: Node): Generator<string> {
  if (node.text !== null)
    for (const [, ...names] of node.text.matchAll(inputName)) yield names.join('');
  else
    for (const one of [...node.items, ...node.entries.map(([, each]) => each)])
      yield* inputsOf(one);
}

function readRule(rule: Node): Rule {
  const condition = rule.get('condition');
  const next = rule.get('nextState');
  return {
    name: rule.get('eventName').text ?? '',
    condition: condition.isAbsent ? 'true' : condition.text,
    conditionPointer: condition.isAbsent ? rule.pointer : condition.pointer,
    actions: rule
      .get('actions')
      .items.flatMap((action) =>
        action.entries
          .filter(([, body]) => !body.isAbsent)
          .map(([name, body]) => ({ kind: lowerFirst(name), body, pointer: body.pointer })),
      ),
    next: next.isAbsent ? null : (next.text ?? ''),
    nextPointer: next.pointer,
  };
}

const lowerFirst = (name: string) => name.charAt(0).toLowerCase() + name.slice(1);

/** A value of the file, and its JSON Pointer. Names are as in the API; those of CloudFormation begin with a capital. */
class Node {
  readonly value: unknown;
  readonly pointer: string;
  readonly #resources: unknown;

  constructor(value: unknown, pointer: string, resources: unknown) {
    this.value = value;
    this.pointer = pointer;
    this.#resources = resources;
  }

  /** The same, in a template with these resources. */
  within(resources: unknown): Node {
    return new Node(this.value, this.pointer, resources);
  }

  get isAbsent(): boolean {
    return this.value === undefined || this.value === null;
  }

  get isObject(): boolean {
    return typeof this.value === 'object' && this.value !== null && !Array.isArray(this.value);
  }

  get isList(): boolean {
    return Array.isArray(this.value);
  }

  get entries(): [string, Node][] {
    if (!this.isObject) return [];
    return Object.keys(this.value as object).map((name) => [name, this.#at(name)]);
  }

  get items(): Node[] {
    return Array.isArray(this.value) ? this.value.map((_, index) => this.#at(index)) : [];
  }

  get(name: string): Node {
    const capital = name.charAt(0).toUpperCase() + name.slice(1);
    const has = (one: string) => this.isObject && Object.hasOwn(this.value as object, one);
    return this.#at(!has(name) && has(capital) ? capital : name);
  }

  /** As text; null if it has none, or only CloudFormation knows it. */
  get text(): string | null {
    return textOf(this.value, this.#resources);
  }

  #at(key: string | number): Node {
    const members = (typeof this.value === 'object' && this.value) || {};
    const value = (members as Record<string | number, unknown>)[key];
    return new Node(value, this.pointer + jsonPointer([key]), this.#resources);
  }
}

/** A value with CloudFormation's `Ref`, `Fn::Join`, `Fn::Sub` and `Fn::GetAtt`, as far as the file knows it. */
function textOf(value: unknown, resources: unknown): string | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value !== 'object' || value === null) return null;
  const [[name, of] = ['', null]] = Object.entries(value) as [string, unknown][];
  if (name === 'Ref' && typeof of === 'string') return nameOfResource(of, resources);
  if (name === 'Fn::GetAtt' && Array.isArray(of)) return of.join('.');
  if (name === 'Fn::Join' && Array.isArray(of) && Array.isArray(of[1])) {
    const parts = of[1].map((part) => textOf(part, resources));
    return parts.includes(null) ? null : parts.join(String(of[0]));
  }
  if (name !== 'Fn::Sub') return null;
  const [template, known] = (Array.isArray(of) ? of : [of, {}]) as [
    unknown,
    Record<string, unknown>,
  ];
  if (typeof template !== 'string') return null;
  return template.replaceAll(/\$\{(!?)([^}]+)\}/g, (whole, literal: string, key: string) => {
    if (literal) return `\${${key}}`;
    const given = Object.hasOwn(known, key) ? textOf(known[key], resources) : undefined;
    return given ?? (given === null ? whole : nameOfResource(key, resources));
  });
}

/** What `Ref` gives: the name of an input, if it has one; otherwise the name in the template. */
function nameOfResource(name: string, resources: unknown): string {
  const resource = new Node(resources, '', {}).get(name);
  const given = resource.get('properties').get('inputName').value;
  return typeof given === 'string' ? given : name;
}
