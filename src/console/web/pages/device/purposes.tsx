import { nameOfSense } from '../../api/devices.ts';
import type { Purpose, Sense } from '../../api/types.ts';
import { formatDuration, sayCondition, statisticOf } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { opensAlarm } from '../watch/numbers.ts';

type State = Purpose['states'][number];
type Event = State['events'][number];
type Cause = Event['causes'][number];
type Senses = ReadonlyMap<string, Sense>;

type PurposesProps = {
  purposes: readonly Purpose[];
  senses: Senses;
  /** Where the device stands; null: this is not its current profile. */
  now: { puId: number; stId: number } | null;
};

/** What a profile says, in words: its purposes, their states, when their events fire and what they do; as JSON, too. */
export function Purposes({ purposes, senses, now }: PurposesProps) {
  return (
    <>
      {purposes.map((purpose) => (
        <section key={purpose.puId} class="purpose">
          {purposes.length > 1 && <h3>{nameOfPurpose(purpose)}</h3>}
          {[...purpose.states]
            // What holds in every state stands above the others.
            .toSorted((a, b) => Number(b.isGlobal) - Number(a.isGlobal))
            .map((state) => (
              <StateView
                key={state.stId}
                state={state}
                purposes={purposes}
                purpose={purpose}
                senses={senses}
                isNow={now?.puId === purpose.puId && now.stId === state.stId}
              />
            ))}
        </section>
      ))}
      <details class="more watch-json">
        <summary>{t('profile.json')}</summary>
        <pre tabIndex={0}>{JSON.stringify(purposes, null, 2)}</pre>
      </details>
    </>
  );
}

/** Its name, or number. */
export const nameOfPurpose = ({ name, puId }: Purpose) =>
  name || t('profile.purpose', { id: puId });
export const nameOfState = ({ name, stId }: State) =>
  name || t('chart.state', { id: String(stId) });

type StateProps = Pick<PurposesProps, 'purposes' | 'senses'> & {
  purpose: Purpose;
  state: State;
  isNow: boolean;
};

function StateView({ purposes, purpose, state, senses, isNow }: StateProps) {
  const { stId, isGlobal, events } = state;
  const others = purpose.states.filter((each) => !each.isGlobal).length;
  const isFirst = stId === purpose.initStId && others > 1;
  return (
    <div class={isNow ? 'purpose-of-state is-now' : 'purpose-of-state'}>
      {(isGlobal || others > 1) && (
        <p class="purpose-name">
          {isGlobal ? t('profile.everyState') : nameOfState(state)}
          {isFirst && <span class="tag">{t('profile.first')}</span>}
          {isNow && <span class="tag">{t('profile.now')}</span>}
        </p>
      )}
      <ul>
        {events.map((event) => (
          <li key={event.evId}>
            <p class="event-title">{event.name || t('event.unknown', { id: event.evId })}</p>
            <p>{sayWhen(event, senses)}</p>
            <p class="fine">{sayDoes(event, stId, purpose, purposes)}</p>
          </li>
        ))}
        {events.length === 0 && <li class="fine">{t('profile.noEvents')}</li>}
      </ul>
    </div>
  );
}

/** When it fires: "Temperature above 8 °C, 2 of 2 values; and Door open: one of 1, for 10 min". */
export function sayWhen({ causes, anyOf }: Event, senses: Senses): string {
  const groups = (anyOf ?? [causes]).filter((group) => group.length > 0);
  if (groups.length === 0) return t('why.never');
  const said = groups.map((group) =>
    group
      .toSorted((a, b) => (a.orderId ?? 0) - (b.orderId ?? 0))
      .map((cause) => sayCause(cause, senses.get(cause.sId)))
      .join(t('profile.and')),
  );
  return said.join(t('profile.or'));
}

/** A condition in words. */
export function sayCause(
  { sId, threshold, thresholds, measurement }: Cause,
  sense?: Sense,
): string {
  const name = nameOfSense(sId, sense);
  const { noneForMs, negate, relative, forMs, count = 1, maxAgeMs } = threshold ?? {};
  if (noneForMs !== undefined) return t('alarms.silent', { name, time: formatDuration(noneForMs) });
  const said = sayCondition(thresholds, negate, sense);
  const condition = said === '' ? t('profile.anyValue') : said;
  const over = statisticOf(threshold ?? {});
  const subject = over
    ? t(`alarms.over.${over.stat}`, { name, time: formatDuration(over.ms), condition })
    : relative
      ? t('profile.relative', { name, condition })
      : `${name} ${condition}`;
  const of = Math.max(count, measurement?.count ?? count);
  return [
    subject,
    forMs === undefined ? '' : t('profile.forMs', { time: formatDuration(forMs) }),
    of > 1 ? t('profile.counts', { count: String(count), of: String(of) }) : '',
    maxAgeMs === undefined ? '' : t('profile.maxAge', { time: formatDuration(maxAgeMs) }),
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** What happens when an event of a state fires. */
export function sayDoes(
  event: Event,
  stId: number,
  purpose: Purpose,
  purposes: readonly Purpose[],
): string {
  const said = [...listDoes(event, stId, purpose, purposes).values()];
  return said.length === 0 ? t('profile.nothing') : said.join(' ');
}

/** The same: a sentence for each thing that is done, by what it is. */
export function listDoes(
  event: Event,
  stId: number,
  purpose: Purpose,
  purposes: readonly Purpose[],
): Map<string, string> {
  const { actions, eventLog } = event;
  const { cloud, sms, engine, display, severity = 'warning', keepMs, repeatMs } = actions;
  const { gotoStId, gotoPuId } = engine ?? {};
  const tells = cloud?.sendPush === true || sms !== undefined;
  const target = purposes.find(({ puId }) => puId === (gotoPuId ?? purpose.puId));
  const state = target?.states.find(({ stId }) => stId === (gotoStId ?? target.initStId));
  const isAlarm = opensAlarm(event, stId, purpose);
  const said: Record<string, string | false | 0 | undefined> = {
    alarm: isAlarm && t('profile.opensAlarm', { severity: t(`severity.${severity}`) }),
    keeps: isAlarm && keepMs && t('profile.keeps', { time: formatDuration(keepMs) }),
    tells: cloud?.sendPush === true && t('profile.tells'),
    sms: sms && t('profile.sms', { numbers: sms.phoneNumber.join(', ') }),
    repeats: tells && repeatMs && t('profile.repeats', { time: formatDuration(repeatMs) }),
    shows: display?.showText !== undefined && t('profile.shows', { text: display.showText }),
    moves:
      state &&
      engine !== undefined &&
      (target === purpose || !target
        ? t('profile.moves', { state: nameOfState(state) })
        : t('profile.movesTo', { state: nameOfState(state), purpose: nameOfPurpose(target) })),
    records:
      (eventLog || cloud?.sendEvent === true || cloud?.sendLog === true) && t('profile.records'),
  };
  return new Map(
    Object.entries(said).flatMap(([what, text]) =>
      typeof text === 'string' ? [[what, text]] : [],
    ),
  );
}
