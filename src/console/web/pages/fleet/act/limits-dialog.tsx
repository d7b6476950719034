import { useState } from 'preact/hooks';
import { type Query, useQuery } from '../../../api/cache.ts';
import { getConfiguration, nameOfSense, previewAction, sensesOf } from '../../../api/devices.ts';
import { ApiError } from '../../../api/request.ts';
import type { ActionPreview, DeviceAction, Purpose, Sense } from '../../../api/types.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import { Form, Submit, useForm } from '../../../parts/form.tsx';
import { NumberField, numberOf, wrongNumber } from '../../../parts/number-field.tsx';
import { Answered, Problem } from '../../../parts/panel.tsx';
import { formatTyped } from '../../../text/format.ts';
import { count, t } from '../../../text/t.ts';
import {
  changesOf,
  contradictions,
  limitsIn,
  marginOf,
  type ProfileLimit,
} from '../../watch/numbers.ts';
import { rulesIn } from '../../watch/rules.ts';
import { clearSelection, selection, toTarget } from '../fleet-table.tsx';
import { begin } from '../jobs.tsx';
import { type ActionDialogProps, Affected } from './action-dialog.tsx';

type Target = Pick<DeviceAction, 'deviceAuthUuids' | 'filter'>;

/** Devices with the same profile. */
type Group = {
  /** Null: they have none. */
  pId: string | null;
  devices: number;
  /** The name of one of them. */
  example: string;
  purposes: readonly Purpose[];
  senses: ReadonlyMap<string, Sense>;
  /** Null: its numbers cannot be changed here. */
  limits: readonly ProfileLimit[] | null;
};

/** Other limits for many devices: those that have the same profile, and what the others have instead. */
export function LimitsDialog({ number, onClose }: ActionDialogProps) {
  // What was selected when it opened.
  const [target] = useState(() => toTarget(selection.value));
  const [place] = useState(() => (opened += 1));
  const query = useQuery(`limits/${place}`, (signal) => readGroups(target, signal));
  return (
    <Dialog
      title={t('act.limits.title', { devices: count('fleet.devices', number) })}
      onClose={onClose}
    >
      <Affected />
      <Groups query={query} target={target} onClose={onClose} />
    </Dialog>
  );
}

/** Each time it opens it asks anew. */
let opened = 0;

/** As many profiles as anybody looks through; the rarest are left out. */
const mostGroups = 12;
/** Only to be told which profiles there are: it is not installed. */
const nothing = { puId: 1, initStId: 1, states: [{ stId: 1, events: [] }] };

/** What the devices have, most of them first. */
async function readGroups(target: Target, signal: AbortSignal): Promise<Group[]> {
  const { profiles, devices } = await previewAction(
    { action: 'profile', purposes: [nothing] as unknown as Purpose[], ...target },
    signal,
  );
  return Promise.all(
    profiles.slice(0, mostGroups).map(async ({ pId, devices: number }, place) => {
      const bare = { pId, devices: number, purposes: [], senses: new Map(), limits: null };
      const first = devices.find(({ profile }) => profile === place)?.deviceAuthUuid;
      if (first === undefined) return { ...bare, example: '' };
      const found = await getConfiguration(first, signal).catch((error: unknown) => {
        // Removed a moment ago.
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      });
      const example = found?.device.name?.trim() || t('fleet.unnamed');
      const known = found ? [found.pendingProfile, found.currentProfile] : [];
      const profile = known.flatMap((each) => ('pId' in each && each.pId === pId ? [each] : []))[0];
      if (!found || !profile) return { ...bare, example };
      const { purposes } = profile;
      const senses = sensesOf(found);
      const isOwn = rulesIn(purposes, [...senses.values()]) !== null;
      return { ...bare, example, purposes, senses, limits: limitsIn(purposes, { isOwn }) };
    }),
  );
}

type GroupsProps = {
  query: Query<Group[]>;
  target: Target;
  onClose: () => void;
};

function Groups({ query, target, onClose }: GroupsProps) {
  const [chosen, setChosen] = useState<number | null>(null);
  const [typed, setTyped] = useState<readonly number[] | null>(null);
  const [planned, setPlanned] = useState<Planned | null>(null);
  if (planned) return <Confirmed {...planned} onBack={() => setPlanned(null)} onClose={onClose} />;
  return (
    <Answered query={query} lines={4}>
      {(groups) => {
        const first = groups.findIndex(({ limits }) => limits !== null);
        const place = chosen ?? first;
        const group = groups[place];
        return (
          <>
            {(groups.length > 1 || first < 0) && (
              <fieldset class="groups">
                {groups.length > 1 && <legend>{t('limits.differ')}</legend>}
                {groups.map((each, n) => (
                  <label key={n} class="check">
                    <input
                      type="radio"
                      name="group"
                      checked={n === place}
                      disabled={each.limits === null}
                      onChange={() => {
                        setChosen(n);
                        setTyped(null);
                      }}
                    />
                    <span>
                      {t('limits.group', {
                        devices: count('fleet.devices', each.devices),
                        example: each.example,
                      })}
                      <span class="fine"> {sayGroup(each, n === place ? undefined : group)}</span>
                    </span>
                  </label>
                ))}
              </fieldset>
            )}
            {group?.limits && group.pId !== null ? (
              <Change
                key={place}
                group={group}
                limits={group.limits}
                pId={group.pId}
                target={target}
                typed={typed}
                onPlan={(plan, numbers) => {
                  setTyped(numbers);
                  setPlanned(plan);
                }}
                onClose={onClose}
              />
            ) : (
              <div class="dialog-buttons">
                <button type="button" class="button" onClick={onClose}>
                  {t('common.cancel')}
                </button>
              </div>
            )}
          </>
        );
      }}
    </Answered>
  );
}

/** The limits of a group; beside another one only what differs from that. */
function sayGroup({ pId, purposes, senses, limits }: Group, beside: Group | undefined): string {
  if (pId === null) return t('limits.noProfile');
  const names = purposes.map(({ name, puId }) => name || t('watch.purpose', { puId })).join(', ');
  if (limits === null) return `${names}: ${t('limits.notHere')}`;
  const others = beside?.limits ?? [];
  const isLike =
    others.length === limits.length &&
    limits.every(({ at, sId, which }, n) => {
      const other = others[n];
      return other?.sId === sId && other.which === which && other.at.join() === at.join();
    });
  const said = isLike ? limits.filter(({ value }, n) => value !== others[n]?.value) : limits;
  const text = said.map((limit) => sayLimit(limit, senses, limit.value)).join(', ');
  return beside === undefined || isLike ? text : `${names}: ${text}`;
}

function sayLimit(
  { sId, which }: Pick<ProfileLimit, 'sId' | 'which'>,
  senses: ReadonlyMap<string, Sense>,
  value: number,
): string {
  const sense = senses.get(sId);
  const limit = formatTyped(value, { unit: sense?.unit });
  return `${nameOfSense(sId, sense)} ${t(which === 'isGt' ? 'event.above' : 'event.below', { limit })}`;
}

type ChangeProps = {
  group: Group;
  limits: readonly ProfileLimit[];
  pId: string;
  target: Target;
  /** What was typed before, if somebody comes back. */
  typed: readonly number[] | null;
  onPlan: (plan: Planned, numbers: readonly number[]) => void;
  onClose: () => void;
};

type Planned = {
  action: DeviceAction;
  preview: ActionPreview;
  senses: ReadonlyMap<string, Sense>;
};

/** New numbers for the devices of a group; what comes of them is shown before it is done. */
function Change({ group, limits, pId, target, typed, onPlan, onClose }: ChangeProps) {
  const { purposes, senses } = group;
  const [shown, setShown] = useState(() => typed ?? limits.map(({ value }) => value));
  const [wrong, setWrong] = useState<readonly string[]>([]);
  const read = (values: FormData) => {
    const given = limits.map((_, place) => numberOf(values, `limit:${place}`));
    return { given, numbers: given.map((value, place) => value ?? limits[place]?.value ?? 0) };
  };
  const form = useForm(async (values) => {
    const { given, numbers } = read(values);
    const found = contradictions(limits, numbers).map((text, place) =>
      typeof given[place] === 'number' ? text : wrongNumber(),
    );
    const changes = changesOf({ purposes, limits, senses }, numbers);
    const isWrong = found.some((text) => text !== '');
    if (changes.length === 0 && !isWrong) found[0] = t('limits.same');
    setWrong(found);
    if (isWrong || changes.length === 0) return;
    const action: DeviceAction = { action: 'limits', ifPId: pId, changes, ...target };
    onPlan({ action, preview: await previewAction(action), senses }, numbers);
  });
  return (
    <Form
      form={form}
      onInput={({ currentTarget }) => setShown(read(new FormData(currentTarget)).numbers)}
    >
      {limits.map(({ sId, which, name, from, to, isAlone }, place) => {
        const sense = senses.get(sId);
        const margin = marginOf(limits, shown, place);
        return (
          <fieldset key={place} class="watch-sense">
            <legend>{name || nameOfSense(sId, sense)}</legend>
            <NumberField
              name={`limit:${place}`}
              label={t(which === 'isGt' ? 'watch.isAbove' : 'watch.isBelow', {
                name: nameOfSense(sId, sense),
              })}
              unit={sense?.unit}
              value={shown[place]}
              problem={wrong[place] ?? ''}
            />
            <p class="fine">
              {to !== null && t('watch.moves', { from, to })}
              {to === null && !isAlone && t('watch.inState', { from })}
              {margin !== null &&
                ` ${t('watch.margin', { value: formatTyped(margin, { unit: sense?.unit }) })}`}
            </p>
          </fieldset>
        );
      })}
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={onClose}>
          {t('common.cancel')}
        </button>
        <Submit form={form}>{t('limits.next')}</Submit>
      </div>
    </Form>
  );
}

type ConfirmedProps = Planned & {
  onBack: () => void;
  onClose: () => void;
};

/** What changes, on how many devices, and how many stay as they are. */
function Confirmed({ action, preview, senses, onBack, onClose }: ConfirmedProps) {
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const { differences, devices } = preview;
  const change = devices.filter(({ outcome }) => outcome === 'install').length;
  const keep = preview.of - change;
  const send = async () => {
    if (isSending) return;
    setSending(true);
    setError(null);
    try {
      await begin(action);
      onClose();
      clearSelection();
    } catch (thrown) {
      setError(thrown);
      setSending(false);
    }
  };
  return (
    <div class="form">
      <ul class="limit-changes">
        {differences.map(({ sId = '', limit, from, to }, place) =>
          from === undefined || to === undefined ? null : (
            <li key={place}>
              {sayLimit({ sId, which: limit === 'isLt' ? 'isLt' : 'isGt' }, senses, from)}
              {' → '}
              <strong>{formatTyped(to, { unit: senses.get(sId)?.unit })}</strong>
            </li>
          ),
        )}
      </ul>
      <p>
        {count('limits.change', change)} {keep > 0 && count('limits.keep', keep)}
      </p>
      <p class="fine">{t('limits.hint')}</p>
      {error !== null && <Problem error={error} />}
      <div class="dialog-buttons">
        <button type="button" class="button" onClick={onBack}>
          {t('limits.back')}
        </button>
        <button
          type="button"
          class="button button-main"
          disabled={isSending || change === 0}
          onClick={() => void send()}
        >
          {t('act.limits.do')}
        </button>
      </div>
    </div>
  );
}
